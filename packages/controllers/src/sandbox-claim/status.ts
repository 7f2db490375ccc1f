import {
  type Condition,
  type ConditionUpdate,
  findCondition,
  removeCondition,
  type Sandbox,
  type SandboxClaim,
  type SandboxClaimStatus,
  type Stored,
  setCondition,
} from '@corral/resources'
import type { ClaimProblem } from './claim-problem.js'

/** What a pass found out about a claim. */
export interface ClaimFinding {
  claim: Stored<SandboxClaim>
  sandbox?: Stored<Sandbox> | undefined
  problem?: ClaimProblem | undefined
  isExpired: boolean
  now: Date
}

/** The whole status after a pass. */
export function claimStatus(finding: ClaimFinding): SandboxClaimStatus {
  const { claim, sandbox, problem, isExpired, now } = finding
  const before = claim.status ?? {}
  // The sandbox is known to exist and merely not visible yet: what is recorded stays.
  if (!sandbox && problem?.kind === 'SandboxCreatePending' && before.sandbox?.name) return before
  let conditions = setCondition(before.conditions ?? [], readyCondition(finding), now)
  const finished = findCondition(sandbox?.status?.conditions, 'Finished')
  if (finished) conditions = setCondition(conditions, finished, now)
  else if (sandbox || !isExpired) conditions = removeCondition(conditions, 'Finished')
  // An unbound claim says so with an empty object, as upstream's does.
  return { conditions: sorted(conditions), sandbox: boundSandbox(before, sandbox, problem) ?? {} }
}

/** Ready=False/ClaimExpired put on top of whatever else is recorded. */
export function markClaimExpired(
  claim: Stored<SandboxClaim>,
  status: SandboxClaimStatus,
  now: Date,
): SandboxClaimStatus {
  const draft = readyCondition({ claim, isExpired: true, now })
  return { ...status, conditions: sorted(setCondition(status.conditions ?? [], draft, now)) }
}

/** A failed lookup must not unbind a claim; only knowing that there is no sandbox does. */
function boundSandbox(
  before: SandboxClaimStatus,
  sandbox: Stored<Sandbox> | undefined,
  problem: ClaimProblem | undefined,
): SandboxClaimStatus['sandbox'] {
  if (!sandbox) return problem && problem.kind !== 'NotOwned' ? before.sandbox : undefined
  const { podIPs, serviceFQDN } = sandbox.status ?? {}
  return {
    name: sandbox.metadata.name,
    ...(podIPs && podIPs.length > 0 && { podIPs }),
    ...(serviceFQDN && { serviceFQDN }),
  }
}

function readyCondition({ claim, sandbox, problem, isExpired }: ClaimFinding): ConditionUpdate {
  const say = (reason: string, message: string): ConditionUpdate => ({
    type: 'Ready',
    status: 'False',
    reason,
    message,
    observedGeneration: claim.metadata.generation ?? 0,
  })
  if (problem) return problemCondition(problem, say)
  if (isExpired) return say('ClaimExpired', 'Claim expired. Sandbox cleanup initiated.')
  if (!sandbox) return say('SandboxMissing', 'Sandbox does not exist')
  const ready = findCondition(sandbox.status?.conditions, 'Ready')
  if (ready?.reason === 'SandboxExpired') {
    return say('SandboxExpired', 'Underlying Sandbox resource has expired independently of the Claim.')
  }
  if (!ready) return say('SandboxNotReady', 'Sandbox is not ready')
  return { ...ready, observedGeneration: claim.metadata.generation ?? 0 }
}

function problemCondition(
  problem: ClaimProblem,
  say: (reason: string, message: string) => ConditionUpdate,
): ConditionUpdate {
  switch (problem.kind) {
    case 'AdoptionConflict':
      return say('AdoptionConflict', `${problem.shown}; the next pass retries from a converged view`)
    case 'SandboxCreatePending':
      return say('SandboxCreatePending', 'Sandbox already created; waiting for cache to converge')
    case 'NotOwned':
      return say('ClaimExpired', `Claim expired. ${problem.message}; deletion skipped.`)
    case 'ReconcilerError':
      return say('ReconcilerError', `Error seen: ${problem.message}`)
    default:
      return say(problem.kind, problem.shown)
  }
}

function sorted(conditions: readonly Condition[]): Condition[] {
  return [...conditions].sort((a, b) => (a.type < b.type ? -1 : 1))
}

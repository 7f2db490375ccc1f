import type { AgentTask, AgentTaskStatus, Stored } from '@corral/resources'
import { inPlaceReason } from '../held/hold.js'
import { resultRef } from '../repository/quarantine.js'
import { checkedOutMarker } from '../sandbox/checked-out-marker.js'
import { scratchFiles } from '../sandbox/collected-work.js'
import { runCommand } from '../sandbox/run-command.js'
import { branchOf } from '../task-state/branch-of.js'
import { collectName } from './collect-work.js'
import { inPlaceScript } from './in-place-script.js'
import type { StepContext, StepOutcome } from './step.js'

/**
 * Goes on in the work tree of the former task, in the sandbox that was taken over from it: nothing is fetched, cloned or
 * set up. Undefined where that is not possible; the repository is brought in as into a new sandbox then.
 */
export async function goOnInPlace(context: StepContext): Promise<StepOutcome | undefined> {
  const { task, repository, signal, log } = context
  const { continues } = task.spec
  if (!continues || !task.status?.sandbox?.takenFrom) return undefined
  const baseCommit = continues.commit ?? continues.baseCommit
  const former = await context.findFormer()
  if (!baseCommit || !former || !(await isStillGranted(former, context))) return undefined
  const { daemon } = await context.openSandbox()
  const { repository: workTree, scratch } = await context.findWorkspace()
  const isFree = await repository.isBranchAt({
    url: task.spec.repository.url,
    branch: branchOf(task),
    commit: baseCommit,
    signal,
  })
  if (!isFree) return undefined
  const { exit, tail } = await runCommand(
    daemon,
    `${task.metadata.uid}.in-place`,
    {
      argv: ['/bin/sh', '-c', inPlaceScript],
      env: {
        REPO: workTree,
        SCRATCH: scratch,
        FORMER: checkedOutMarker(scratch, continues.uid),
        MARKER: checkedOutMarker(scratch, task.metadata.uid),
        BASE_COMMIT: baseCommit,
        NEW_BRANCH: branchOf(task),
        RESULT: scratchFiles.resultBundle(scratch, collectName),
        RESULT_REF: resultRef,
        REFS: scratchFiles.refs(scratch),
      },
    },
    { signal, isRepeatable: true, timeoutMs: 60_000 },
  )
  if (exit.exit_code !== 0) {
    log.info('the work tree of a held sandbox is not used', { reason: tail })
    return undefined
  }
  const detail = `the work tree of ${continues.task} at ${baseCommit.slice(0, 12)}, on branch ${branchOf(task)}`
  const baseBranch = continues.baseBranch ?? former.status?.baseBranch
  return {
    condition: 'RepositoryReady',
    reason: inPlaceReason,
    message: detail,
    status: { ...(baseBranch ? { baseBranch } : {}), baseCommit, ...environmentOf(former) },
    events: [{ type: 'stage', stage: 'repository', state: 'finished', detail }],
  }
}

/** What the repository's environment file gave the former task: the sandbox was set up with it. */
function environmentOf({ status }: AgentTask): Pick<AgentTaskStatus, 'environment' | 'checks'> {
  const { environment, checks } = status ?? {}
  return {
    ...(environment ? { environment } : {}),
    ...(checks?.declared ? { checks: { declared: checks.declared } } : {}),
  }
}

/** A grant that was taken back meanwhile ends with the former task. */
async function isStillGranted({ status }: Stored<AgentTask>, context: StepContext): Promise<boolean> {
  const { egress = [], setupEgress = [] } = status?.environment ?? {}
  const asked = [...egress, ...setupEgress]
  if (asked.length === 0) return true
  const { spec } = context.task
  const granted = [
    ...(await context.grantedTo(spec.repository.url)).egress,
    ...(spec.egress ?? []),
    ...(spec.setupEgress ?? []),
  ].map((rule) => rule.toLowerCase())
  return asked.every((rule) => granted.includes(rule.toLowerCase()))
}

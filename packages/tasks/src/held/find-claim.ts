import type { KubeClient } from '@corral/kube'
import {
  type AgentTask,
  AgentTasks,
  findCondition,
  isNotFound,
  type SandboxClaim,
  SandboxClaims,
  type Stored,
} from '@corral/resources'
import { hasPassed, isActive } from '../task-state/stages.js'
import { holdLeftMs } from './hold.js'

/** The claim of a task's sandbox: named after the task, or after the one whose sandbox it took over. */
export function claimNameOf({ status, metadata }: Stored<AgentTask>): string {
  return status?.sandbox?.claimName ?? metadata.name
}

/** A claim is the task's whose uid its controlling owner has; passing it on is one write of that reference. */
export function isClaimOf({ metadata }: SandboxClaim, { uid }: { uid: string }): boolean {
  return metadata?.ownerReferences?.some((owner) => owner.controller === true && owner.uid === uid) === true
}

export interface FoundClaim {
  /** The task's own. */
  claim: Stored<SandboxClaim> | undefined
  /** One that the former task holds and this one may take over. */
  held: Stored<SandboxClaim> | undefined
  /** The name of the task's own claim is still in use: a follow-up of an earlier task of this name has it. */
  isNameTaken: boolean
}

/** Finds the claim a task has or may take. After a crash between any two writes the owner says whose it is. */
export async function findClaim(
  client: Pick<KubeClient, 'find'>,
  task: Stored<AgentTask>,
  now: Date,
  signal?: AbortSignal,
): Promise<FoundClaim> {
  const { namespace = 'default', uid } = task.metadata
  const call = signal ? { signal } : {}
  const find = (name: string): Promise<Stored<SandboxClaim> | undefined> =>
    client.find(SandboxClaims, { namespace, name }, call)
  const own = await find(claimNameOf(task))
  if (own && isClaimOf(own, { uid })) return { claim: own, held: undefined, isNameTaken: false }
  const rest = { claim: undefined, held: undefined, isNameTaken: own !== undefined }
  const { continues, retry } = task.spec
  if (continues?.claimName === undefined || retry) return rest
  const former = await find(continues.claimName)
  if (!former || former.metadata.deletionTimestamp) return rest
  if (isClaimOf(former, { uid })) return { ...rest, claim: former }
  const needsOne = isActive(task) && !hasPassed(task, 'SandboxReady') && !own
  if (!needsOne || !isClaimOf(former, continues) || !isReady(former)) return rest
  const holder = await client.find(AgentTasks, { namespace, name: continues.task }, call)
  const isHeld = holder?.metadata.uid === continues.uid && holdLeftMs(holder, now) !== undefined
  return isHeld ? { ...rest, held: former } : rest
}

/** Deletes a claim as it was read: one that passed to another task meanwhile is left alone. */
export async function deleteClaim(
  client: Pick<KubeClient, 'delete'>,
  { metadata }: Stored<SandboxClaim>,
  { onlyUnchanged = false }: { onlyUnchanged?: boolean } = {},
): Promise<void> {
  const { namespace = 'default', name, uid, resourceVersion } = metadata
  const preconditions = { uid, ...(onlyUnchanged ? { resourceVersion } : {}) }
  await client.delete(SandboxClaims, { namespace, name }, { preconditions }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error
  })
}

function isReady(claim: SandboxClaim): boolean {
  return findCondition(claim.status?.conditions ?? [], 'Ready')?.status === 'True' && !!claim.status?.sandbox?.name
}

import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import type { AgentTask, AgentTaskStatus } from '@corral/resources'
import type { PreparedRepository } from '../../repository/repository.js'
import type { SandboxContext } from '../sandbox-context.js'
import type { BuiltSnapshot } from './choose-snapshot.js'
import { mayUseSnapshot } from './with-snapshot.js'

/**
 * Snapshots of a plain checkout. Sending and checking out a large repository takes longer than many agents think; a sandbox
 * that has an earlier commit attached gets only what changed since. The platform builds them beside the first task on a
 * repository, from the same branch as every build, and no task waits for one.
 */

/** Smaller repositories are sent about as fast as a snapshot is attached. */
const worthBytes = 8 * 1024 * 1024
/** What is sent beyond a snapshot before a newer one is built. */
const staleBytes = 8 * 1024 * 1024
const requestPrefix = 'checkout-'

/** Whether a build was asked for by `requestCheckout`. */
export const isCheckoutBuild = (request: string): boolean => request.startsWith(requestPrefix)

/** The key of checkouts of a repository in sandboxes of one kind. The commit is no part of it. Pure. */
export function checkoutKey({ repository, sandbox = {} }: Pick<AgentTask['spec'], 'repository' | 'sandbox'>): string {
  const parts = ['checkout', 1, repository.url, sandbox.pool ?? '', sandbox.template ?? '']
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

/** The checkouts a task's sandbox can be given, the best first. */
export async function usableCheckouts(
  context: SandboxContext,
  environment: AgentTaskStatus['environment'],
): Promise<BuiltSnapshot[]> {
  const { environments, task } = context
  if (!environments || !(await mayUseCheckout(context, environment))) return []
  const key = checkoutKey(task.spec)
  const all = environments.withKey(key)
  // A pod keeps the snapshot it has: an earlier run of the step may have got that far.
  const attached = await environments.attached(context)
  return attached === undefined ? all : all.filter(({ name }) => name === attached)
}

/** The id of the process that checks a task's base out. */
export const checkoutProcess = (uid: string): string => `${uid}.checkout`

/**
 * Gives a checkout to the task's sandbox. False where it went away meanwhile, or where an earlier run of the step has begun to check
 * everything out: a repeat joins that process, which must not find another tree in the place of its own.
 */
export async function attachCheckout(
  context: SandboxContext,
  snapshot: string,
  { hasBegun }: { hasBegun: boolean },
): Promise<boolean> {
  const { environments } = context
  if (!environments) return false
  const isNew = (await environments.attached(context)) === undefined
  if (isNew && hasBegun) return false
  return environments.attach(context, snapshot)
}

async function mayUseCheckout(context: SandboxContext, environment: AgentTaskStatus['environment']): Promise<boolean> {
  const { spec, status } = context.task
  if (!context.environments?.givesCheckouts()) return false
  if (spec.useSnapshot === false || status?.sandbox?.takenFrom) return false
  if (spec.repository.lfs || (spec.repository.submodules ?? 'none') !== 'none') return false
  if (environment?.image !== undefined) return false
  return environment === undefined || !(await mayUseSnapshot(context, environment))
}

/** Asks for a checkout of the base for the tasks after this one, where that saves enough. */
export async function requestCheckout(
  context: SandboxContext,
  prepared: PreparedRepository,
  environment: AgentTaskStatus['environment'],
): Promise<void> {
  const { environments, task, log } = context
  const { repository, sandbox, continues } = task.spec
  if (!environments || continues?.commit !== undefined || prepared.branch === undefined) return
  if (prepared.branch !== prepared.trustedBranch || prepared.isPartial) return
  if (!(await mayUseCheckout(context, environment))) return
  const { size } = await stat(prepared.bundlePath)
  if (size < (prepared.since === undefined ? worthBytes : staleBytes)) return
  try {
    const found = await environments.ensure({
      repository,
      ref: prepared.branch,
      ...(task.spec.part ? { part: task.spec.part } : {}),
      ...(task.spec.environmentFile ? { file: task.spec.environmentFile } : {}),
      ...(sandbox ? { sandbox } : {}),
    })
    // Where it failed once it would fail for every commit; an explicit build tells why.
    if (found.status?.build?.state === 'Failed') return
    await environments.request(found, `${requestPrefix}${prepared.commit.slice(0, 16)}`)
  } catch (error) {
    log.warn('no snapshot of the checkout was asked for', { error })
  }
}

import { setTimeout as pause } from 'node:timers/promises'
import type { KubeClient } from '@corral/kube'
import {
  type AgentTask,
  AgentTasks,
  type Environment,
  Environments,
  isConflict,
  isNotFound,
  type ResourceKind,
  SandboxClaims,
  type Stored,
} from '@corral/resources'
import { environmentFinalizer } from './environment/build/plan.js'
import { claimNameOf } from './held/find-claim.js'
import { isFinished } from './task-state/stages.js'
import { taskFinalizer } from './task-state/task-marks.js'

export interface DrainOptions {
  client: KubeClient
  namespace: string
  /** Keeps the ended tasks as objects; without it they are deleted. */
  keepTasks?: boolean
  /** How long the servers of the namespace may take to end tasks; then their finalizers are taken away here. */
  timeoutMs: number
  /** Hears what is waited for. */
  say?: (line: string) => void
  pollMs?: number
  signal?: AbortSignal
}

export interface DrainResult {
  /** Tasks that their server ended, or that had ended before. */
  drained: number
  /** Names of tasks that no server ended in time: their sandboxes were given back and their finalizers taken away. */
  forced: string[]
  /** Environments that were removed. */
  environments: number
}

/**
 * Ends every task of a namespace so that nothing holds the namespace or the CRD: tasks that run are cancelled, with
 * their work kept as after any cancellation, and no task keeps the finalizer that only a running server would remove.
 * Tasks that come meanwhile are ended too, and then environments are removed, which are built again when they are needed.
 * Safe to repeat.
 */
export async function drainTasks(options: DrainOptions): Promise<DrainResult> {
  const deadlineMs = Date.now() + options.timeoutMs
  const ended = await endTasks(options, deadlineMs)
  return { ...ended, environments: await removeEnvironments(options, deadlineMs) }
}

async function endTasks(options: DrainOptions, deadlineMs: number): Promise<Omit<DrainResult, 'environments'>> {
  const { client, namespace, signal, say = () => {} } = options
  const seen = new Set<string>()
  let told = -1
  for (;;) {
    const tasks = (await client.list(AgentTasks, { namespace, ...(signal ? { signal } : {}) })).items
    for (const { metadata } of tasks) seen.add(metadata.uid)
    const open = tasks.filter((task) => !isDrained(task, options))
    if (open.length === 0) return { drained: seen.size, forced: [] }
    if (Date.now() >= deadlineMs) return { drained: seen.size - open.length, forced: await force(open, options) }
    if (open.length !== told) say(`waiting for ${open.length} task${open.length === 1 ? '' : 's'} to end`)
    told = open.length
    for (const task of open) await askToEnd(task, options)
    await pause(options.pollMs ?? 500, undefined, signal ? { signal } : {})
  }
}

/** A running server takes what they have built away; where there is none, nothing but the objects is left to go. */
async function removeEnvironments(options: DrainOptions, deadlineMs: number): Promise<number> {
  const { client, namespace, signal } = options
  const seen = new Set<string>()
  for (;;) {
    const found = (await client.list(Environments, { namespace, ...(signal ? { signal } : {}) })).items
    for (const { metadata } of found) seen.add(metadata.uid)
    if (found.length === 0) return seen.size
    for (const each of found)
      if (!each.metadata.deletionTimestamp) await client.delete(Environments, refOf(each)).catch(ignoreGone)
    if (Date.now() >= deadlineMs) {
      for (const each of found) await releaseFrom(Environments, environmentFinalizer, each, client)
      return seen.size
    }
    await pause(options.pollMs ?? 500, undefined, signal ? { signal } : {})
  }
}

function isDrained(task: Stored<AgentTask>, { keepTasks }: DrainOptions): boolean {
  return keepTasks === true && isFinished(task) && !task.metadata.finalizers?.includes(taskFinalizer)
}

async function askToEnd(task: Stored<AgentTask>, { client, keepTasks }: DrainOptions): Promise<void> {
  const ref = refOf(task)
  if (!keepTasks) {
    if (!task.metadata.deletionTimestamp) await client.delete(AgentTasks, ref).catch(ignoreGone)
  } else if (isFinished(task)) await release(task, client)
  else if (!task.spec.cancelRequested)
    await client.patch(AgentTasks, ref, { type: 'merge', body: { spec: { cancelRequested: true } } }).catch(ignoreGone)
}

/** No server is there to end these: their sandboxes go with their claims, and nothing holds the objects any more. */
async function force(tasks: readonly Stored<AgentTask>[], options: DrainOptions): Promise<string[]> {
  const { client } = options
  for (const task of tasks) {
    await client.delete(SandboxClaims, { ...refOf(task), name: claimNameOf(task) }).catch(ignoreGone)
    if (!options.keepTasks && !task.metadata.deletionTimestamp)
      await client.delete(AgentTasks, refOf(task)).catch(ignoreGone)
    await release(task, client)
  }
  return tasks.map(({ metadata }) => metadata.name)
}

const release = (task: Stored<AgentTask>, client: KubeClient): Promise<void> =>
  releaseFrom(AgentTasks, taskFinalizer, task, client)

/** Takes our finalizer away and leaves those of others. */
async function releaseFrom<T extends AgentTask | Environment>(
  kind: ResourceKind<T>,
  finalizer: string,
  object: Stored<T>,
  client: KubeClient,
): Promise<void> {
  for (;;) {
    const current = await client.find(kind, refOf(object))
    const finalizers = current?.metadata.finalizers ?? []
    if (!current || !finalizers.includes(finalizer)) return
    const metadata = { ...current.metadata, finalizers: finalizers.filter((name) => name !== finalizer) }
    try {
      await client.update(kind, { ...current, metadata })
      return
    } catch (error) {
      if (isNotFound(error)) return
      if (!isConflict(error)) throw error // a conflicting write: read again
    }
  }
}

function refOf({ metadata }: Pick<Stored<AgentTask | Environment>, 'metadata'>): { namespace: string; name: string } {
  return { namespace: metadata.namespace ?? 'default', name: metadata.name }
}

function ignoreGone(error: unknown): void {
  if (!isNotFound(error)) throw error
}

import { randomBytes } from 'node:crypto'
import { createInformer, type Informer, type KubeClient } from '@corral/kube'
import type { Logger } from '@corral/ports'
import { summaryOf, type TaskSummary } from '@corral/protocol'
import { type AgentTask, AgentTasks } from '@corral/resources'
import { phaseOf } from './task-state/stages.js'
import { taskView } from './task-view.js'

/** What changed in the list of tasks since a cursor. */
export interface TaskListChange {
  /** Where the next change continues. */
  cursor: string
  /** True: `changed` are all tasks there are, and everything known before is void. */
  reset: boolean
  changed: TaskSummary[]
  removed: string[]
}

/** The list of tasks as it changes, for any number of listeners. */
export interface TaskFeed {
  /**
   * Tells `listener` what changed since `cursor`, then of every change. Without a cursor, or with one that is too old or
   * of another process, the first change is a reset. Returns how to let go.
   */
  subscribe(cursor: string | undefined, listener: (change: TaskListChange) => void): () => void
  close(): Promise<void>
}

export interface TaskFeedOptions {
  client: Pick<KubeClient, 'observe'>
  namespace: string
  /** The waiting tasks by uid, where the controller runs in this process. */
  queue?: () => ReadonlyMap<string, { position: number; reason: string }>
  log: Logger
}

/** Changes that come together are told together. */
const gatherMs = 40
const keptRemovals = 1_000

interface Row {
  summary: TaskSummary
  /** To tell a change from a write that changes nothing people see. */
  text: string
  at: number
}

/** Watches tasks from the first subscription on, with one stream however many listen. */
export function createTaskFeed({ client, namespace, queue, log }: TaskFeedOptions): TaskFeed {
  const epoch = randomBytes(4).toString('hex')
  const rows = new Map<string, Row>()
  const listeners = new Map<(change: TaskListChange) => void, { isTold: boolean; cursor: string | undefined }>()
  let removals: { id: string; at: number }[] = []
  /** The oldest change from which removals are still known. */
  let oldest = 0
  let at = 0
  let dirty = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let informer: Informer<AgentTask> | undefined

  const cursor = (): string => `${epoch}.${at}`

  const since = (from: string | undefined): TaskListChange => {
    const [givenEpoch, text = ''] = from?.split('.') ?? []
    const given = givenEpoch === epoch && /^\d{1,15}$/.test(text) ? Number(text) : -1
    const reset = given < oldest || given > at
    const after = reset ? -1 : given
    const changed = [...rows.values()].filter((row) => row.at > after).map((row) => row.summary)
    const removed = reset ? [] : removals.filter((removal) => removal.at > after).map(({ id }) => id)
    return { cursor: cursor(), reset, changed, removed }
  }

  const flush = (): void => {
    timer = undefined
    if (!informer?.isSynced) {
      plan()
      return
    }
    const waiting = queue?.()
    const changed: TaskSummary[] = []
    const removed: string[] = []
    // The place of a waiting task moves when another one starts.
    const names = new Set(dirty)
    for (const [id, row] of rows) if (row.summary.status === 'QUEUED') names.add(id)
    dirty = new Set()
    for (const id of names) {
      const task = informer.get({ namespace, name: id })
      if (!task) {
        if (!rows.delete(id)) continue
        removals.push({ id, at: ++at })
        removed.push(id)
        continue
      }
      const place = phaseOf(task) === 'QUEUED' ? waiting?.get(task.metadata.uid) : undefined
      const summary = summaryOf(taskView(task, place))
      const text = JSON.stringify(summary)
      if (rows.get(id)?.text === text) continue
      rows.set(id, { summary, text, at: ++at })
      changed.push(summary)
    }
    if (removals.length > keptRemovals) {
      oldest = removals.at(-keptRemovals - 1)?.at ?? oldest
      removals = removals.slice(-keptRemovals)
    }
    for (const [listener, state] of listeners) {
      if (state.isTold && changed.length === 0 && removed.length === 0) continue
      const change = state.isTold ? { cursor: cursor(), reset: false, changed, removed } : since(state.cursor)
      state.isTold = true
      listener(change)
    }
  }

  const plan = (): void => {
    timer ??= setTimeout(flush, gatherMs)
  }

  const start = (): void => {
    informer = createInformer({ client, kind: AgentTasks, namespace, log })
    const touch = ({ metadata }: { metadata: { name: string } }): void => {
      dirty.add(metadata.name)
      plan()
    }
    informer.subscribe({ add: touch, update: touch, delete: touch })
  }

  return {
    subscribe(from, listener) {
      if (!informer) start()
      listeners.set(listener, { isTold: false, cursor: from })
      plan()
      return () => void listeners.delete(listener)
    },
    async close() {
      clearTimeout(timer)
      listeners.clear()
      await informer?.stop()
      clearTimeout(timer)
    },
  }
}

import { type LeaderElectionOptions, runLeaderElection } from '@corral/kube'
import type { AgentTask, Stored } from '@corral/resources'
import type { ArchiveDirectory } from './environment/archive/archive-directory.js'
import { startTaskController, type TaskController } from './task-controller.js'
import type { TaskControllerOptions } from './task-controller-options.js'

/** The Lease that decides which process reconciles the tasks of a namespace. */
export const taskLeaseName = 'corral-task-controller'

export interface ElectionOptions extends Pick<LeaderElectionOptions, 'leaseMs' | 'renewMs' | 'retryMs'> {
  /** Unique per process that may run at the same time. The same identity after a crash takes its own lease up at once. */
  identity: string
}

export interface ElectedOptions extends Omit<TaskControllerOptions, 'snapshots'> {
  /**
   * See `TaskControllerOptions`, but archives are opened each time this process begins to lead: opening sweeps what is half made,
   * which another process that leads may be making.
   */
  snapshots?:
    | Exclude<TaskControllerOptions['snapshots'], ArchiveDirectory>
    | { openArchives(): Promise<ArchiveDirectory> }
}

export interface ElectedTaskController {
  /** The controller while this process leads. */
  readonly current: TaskController | undefined
  /** Whether another process reconciles, as far as is known. */
  readonly isStandingBy: boolean
  /** The tasks that hold a sandbox, as far as this process knew when it last led; none once another one leads. */
  holders(): Stored<AgentTask>[]
  /** Settles once this process reconciles tasks, or knows that another one does. */
  readonly ready: Promise<void>
  /** Stops deciding and gives the lease up. Every task stays in its state. */
  stop(): Promise<void>
}

const pauseAfterFailureMs = 1_000

/**
 * Runs the controller of AgentTasks while this process holds the Lease of the namespace: of all servers on one API, one
 * reconciles. A process that loses the Lease stops its controller, which leaves tasks as they are, and stands by again.
 */
export function electTaskController(options: ElectedOptions, election: ElectionOptions): ElectedTaskController {
  const { snapshots, ...rest } = options
  const { client, namespace, clock, log } = rest
  const ending = new AbortController()
  const { signal } = ending
  let current: TaskController | undefined
  /** The one that was stopped by us: what it held is still held. */
  let last: TaskController | undefined
  let leads = false
  let settleReady: () => void = () => {}
  const ready = new Promise<void>((resolve) => {
    settleReady = resolve
  })

  async function lead(leading: AbortSignal): Promise<void> {
    const kept = typeof snapshots === 'object' ? await snapshots.openArchives() : snapshots
    const controller = startTaskController({ ...rest, ...(kept ? { snapshots: kept } : {}) })
    current = controller
    last = controller
    try {
      await Promise.race([controller.ready, aborted(leading)])
      leads = true
      settleReady()
      await aborted(leading)
    } finally {
      leads = false
      current = undefined
      await controller.stop()
      if (!signal.aborted) last = undefined
    }
  }

  async function campaign(): Promise<void> {
    while (!signal.aborted) {
      try {
        await runLeaderElection({
          ...election,
          client,
          namespace,
          name: taskLeaseName,
          onStarted: lead,
          onStandby: () => {
            log.info('another process reconciles tasks; standing by', { lease: taskLeaseName })
            settleReady()
          },
          signal,
          clock,
          log,
        })
      } catch (error) {
        log.error('the task controller failed', { error })
        await Promise.race([
          aborted(signal),
          new Promise((resolve) => setTimeout(resolve, pauseAfterFailureMs).unref()),
        ])
      }
    }
  }
  const campaigning = campaign()

  return {
    get current() {
      return current
    },
    get isStandingBy() {
      return !leads
    },
    holders: () => last?.holders() ?? [],
    ready,
    async stop() {
      ending.abort()
      settleReady()
      await campaigning
    },
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

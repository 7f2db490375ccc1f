import type { Clock, Logger } from '@corral/ports'
import { type Container, imageAnnotation, type Pod } from '@corral/resources'
import type { Cell, CellExit } from '../isolation/isolation.js'
import { IsolationError } from '../isolation/isolation-error.js'
import type { PodFacts } from '../launch/downward-api.js'
import { containerNamed } from '../launch/environment.js'
import { LaunchError } from '../launch/launch-error.js'
import { logFile, type PodPaths, terminationFile } from '../launch/launch-plan.js'
import { CriDecoder } from '../logs/cri-log.js'
import type { PodEvents } from '../pod-events.js'
import type { ContainerState, StopCause } from '../records/container-state.js'
import { type StarterPorts, startContainer } from './container-starter.js'
import { finishedRun, readTail, terminationMessage } from './finished-run.js'
import { crashesAfter, restartDelayMs } from './restart-backoff.js'
import { type RunningContainer, runContainer } from './running-container.js'

export interface PodContainersPorts extends StarterPorts {
  events: PodEvents
  clock: Clock
  log: Logger
}

export interface PodPlace {
  paths: PodPaths
  hostUid: number
  facts: PodFacts
}

const firstRetryMs = 200
const longestRetryMs = 30_000
const fallbackLogBytes = 16 * 1024

/** The containers of one pod: what is known of each, and the runs that are going on. */
export class PodContainers {
  readonly #running = new Map<string, RunningContainer>()
  readonly #ends = new Map<string, Promise<void>>()

  constructor(
    private readonly ports: PodContainersPorts,
    readonly states: Map<string, ContainerState>,
    private readonly place: PodPlace,
    private readonly pod: () => Pod,
    private readonly on: {
      /** After every change of a state. */
      changed(): void
      /**
       * The isolation no longer knows the pod: it has to be prepared again before anything can start in it. Comes before the
       * change of the state that tells it, whose pass would start the container in a pod that is not there.
       */
      lost(): void
    },
  ) {}

  cell(container: string): Cell | undefined {
    return this.#running.get(container)?.cell
  }

  anyCell(): Cell | undefined {
    return this.#running.values().next().value?.cell
  }

  /** Settles when the run that goes on now has ended; at once where none does. */
  ended(container: string): Promise<void> {
    return this.#ends.get(container) ?? Promise.resolve()
  }

  /** Starts a run. A pod that does not allow it is recorded as waiting and tried again later; nothing is thrown for it. */
  async start(name: string, attempt: number, signal: AbortSignal): Promise<void> {
    const container = this.#container(name)
    const state = this.#state(name)
    try {
      const pod = this.pod()
      const cell = await startContainer(this.ports, { ...this.place, pod, container, attempt, signal })
      this.#take(container, cell, { isAdopted: false, image: pod.metadata?.annotations?.[imageAnnotation] ?? '' })
      this.ports.events.event(this.pod(), 'Normal', 'Started', `Started container ${name}`, name)
    } catch (error) {
      if (!(error instanceof LaunchError)) throw error
      if (isPodLost(error.cause)) {
        this.on.lost()
        return
      }
      const tries = (state.waiting?.tries ?? 0) + 1
      const waitMs = Math.min(firstRetryMs * 2 ** (tries - 1), longestRetryMs)
      const retryAt = new Date(this.ports.clock.now().getTime() + waitMs).toISOString()
      this.#set(name, { ...state, waiting: { ...waitingFor(error), retryAt, tries } })
      const reason = error.code === 'FailedMount' ? 'FailedMount' : 'Failed'
      this.ports.events.event(this.pod(), 'Warning', reason, error.message, name)
    }
  }

  /** Takes over a run that an earlier node process started. */
  adopt(cell: Cell): void {
    const container = containerNamed(this.pod(), cell.container)
    if (container) this.#take(container, cell, { isAdopted: true })
  }

  stop(name: string, graceSeconds: number, cause: StopCause): void {
    const running = this.#running.get(name)
    const state = this.#state(name)
    if (!running) return
    if (!state.stopping) this.ports.events.event(this.pod(), 'Normal', 'Killing', stopMessage(name, cause), name)
    const deadline = new Date(this.ports.clock.now().getTime() + graceSeconds * 1000).toISOString()
    this.#set(name, { ...state, stopping: { cause, deadline } })
    running.stop(graceSeconds)
  }

  /** Lets go of everything without ending it; settles after the last probe and hook. */
  async detach(): Promise<void> {
    const running = [...this.#running.values()]
    this.#running.clear()
    for (const container of running) container.detach()
    await Promise.all(running.map((container) => container.settled))
  }

  #take(container: Container, cell: Cell, { isAdopted, image }: { isAdopted: boolean; image?: string }): void {
    const { name } = container
    const { waiting: _waiting, unhealthy: _unhealthy, stopping: _stopping, ...state } = this.#state(name)
    const wasStarted = isAdopted && state.started
    this.#set(name, {
      ...state,
      ...(image === undefined ? {} : { image }),
      launched: Math.max(state.launched, cell.attempt + 1),
      run: { startedAt: cell.startedAt },
      started: wasStarted,
      ready: isAdopted && state.ready,
    })
    this.#ends.set(
      name,
      cell.exited.then(() => {}),
    )
    const running = runContainer({
      cell,
      container,
      podIP: this.place.facts.podIP,
      now: () => this.ports.clock.now(),
      log: this.ports.log,
      isAdopted,
      wasStarted,
      on: {
        started: () => this.#update(name, (now) => ({ ...now, started: true })),
        ready: (isReady) => this.#update(name, (now) => ({ ...now, ready: isReady })),
        unhealthy: (kind, message) => {
          const grace = kind === 'postStart' ? undefined : container[`${kind}Probe`]?.terminationGracePeriodSeconds
          const unhealthy = { message, ...(grace === undefined ? {} : { graceSeconds: grace }) }
          this.#update(name, (now) => ({ ...now, unhealthy }))
        },
        probeFailed: (kind, message) => {
          const title = kind[0]!.toUpperCase() + kind.slice(1)
          this.ports.events.event(this.pod(), 'Warning', 'Unhealthy', `${title} probe failed: ${message}`, name)
        },
        hookFailed: (hook, message) =>
          this.ports.events.event(this.pod(), 'Warning', `Failed${hook}Hook`, message, name),
        exited: (exit) => this.#exited(container, cell.attempt, exit),
      },
    })
    this.#running.set(name, running)
  }

  #exited(container: Container, attempt: number, exit: CellExit): void {
    const { name } = container
    const { paths } = this.place
    const message = terminationMessage(container, exit.exitCode, terminationFile(paths, container, attempt), () =>
      logTail(logFile(paths, name, attempt)),
    )
    const finished = finishedRun(exit, attempt, message)
    this.#running.delete(name)
    const { run: _run, unhealthy: _unhealthy, stopping, ...state } = this.#state(name)
    // A run that was lost, or that the platform itself ended on its way down, says nothing about the container.
    const crashes =
      stopping?.cause === 'NodeStopping' || stopping?.cause === 'ImageChanged'
        ? 0
        : exit.lost
          ? state.crashes
          : crashesAfter(state.crashes, finished)
    if (exit.lost) this.on.lost()
    this.#set(name, { ...state, exit: finished, crashes, started: false, ready: false })
    const isBackingOff = restartDelayMs(crashes) > 0 && this.pod().spec?.restartPolicy !== 'Never' && !stopping
    if (isBackingOff && finished.exitCode !== 0) {
      const { name: podName, namespace, uid } = this.pod().metadata ?? {}
      const text = `Back-off restarting failed container ${name} in pod ${podName}_${namespace}(${uid})`
      this.ports.events.event(this.pod(), 'Warning', 'BackOff', text, name)
    }
  }

  #container(name: string): Container {
    const container = containerNamed(this.pod(), name)
    if (!container) throw new RangeError(`no container "${name}" in pod ${this.pod().metadata?.name}`)
    return container
  }

  #state(name: string): ContainerState {
    const state = this.states.get(name)
    if (!state) throw new RangeError(`no state of container "${name}"`)
    return state
  }

  #update(name: string, change: (state: ContainerState) => ContainerState): void {
    this.#set(name, change(this.#state(name)))
  }

  #set(name: string, state: ContainerState): void {
    this.states.set(name, state)
    this.on.changed()
  }
}

/** The cradle is gone, or another one that does not know the pod has taken its place. */
function isPodLost(cause: unknown): boolean {
  return cause instanceof IsolationError && (cause.code === 'CradleUnavailable' || cause.code === 'PodNotPrepared')
}

/** What a missing mount looks like in status: the container is still being created. */
function waitingFor(error: LaunchError): { reason: string; message: string } {
  return { reason: error.code === 'FailedMount' ? 'ContainerCreating' : error.code, message: error.message }
}

function stopMessage(name: string, cause: StopCause): string {
  return cause === 'Unhealthy'
    ? `Container ${name} failed its probe or hook, will be restarted`
    : cause === 'ImageChanged'
      ? `Container ${name} is to have another root file system, will be restarted`
      : `Stopping container ${name}`
}

function logTail(file: string): string {
  const raw = readTail(file, fallbackLogBytes, 'tail')
  return new CriDecoder({ timestamps: false }).push(Buffer.from(raw)).toString('utf8')
}

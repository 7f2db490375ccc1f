import type { KubeClient } from '@corral/kube'
import type { Clock, Logger } from '@corral/ports'
import { errorCode, imageAnnotation, type Pod, type PodStatus, type Stored } from '@corral/resources'
import type { PodFacts } from '../launch/downward-api.js'
import type { PodRecord } from '../records/pod-directories.js'
import type { PodSnapshot } from '../snapshots/pod-snapshot.js'
import { imageState } from './image-state.js'
import { withOwnConditions } from './own-conditions.js'
import type { PodContainers, PodContainersPorts } from './pod-containers.js'
import type { PodLimiter } from './pod-limits.js'
import type { PodLoss } from './pod-loss.js'
import type { PodEgress } from './pod-reach.js'
import { podStatus, type StatusInput } from './status.js'
import { type StatusWriter, statusWriter } from './status-writer.js'

export interface PodReportPorts {
  client: KubeClient
  clock: Pick<Clock, 'now'>
  events: PodContainersPorts['events']
  imported: PodContainersPorts['imported']
  facts: Omit<PodFacts, 'podIP'>
  log: Logger
}

/** What the status of a pod is made of. */
export interface ReportedPod {
  readonly pod: Stored<Pod>
  readonly isPrepared: boolean
  readonly record: PodRecord
  readonly containers: PodContainers
  readonly egress: PodEgress
  readonly snapshot: PodSnapshot
  readonly limits: PodLimiter
  readonly loss: PodLoss
}

/** What the API is told of a pod: its status, and events for what failed. */
export class PodReport {
  readonly #ports: PodReportPorts
  readonly #life: ReportedPod
  readonly #status: StatusWriter
  #lastStatus: PodStatus | undefined
  /** Why the pod's sandbox could not be made at the last try. */
  #obstacle: StatusInput['obstacle']

  constructor(ports: PodReportPorts, life: ReportedPod) {
    this.#ports = ports
    this.#life = life
    this.#status = statusWriter(ports.client)
  }

  /** Answers whether the object still exists. Throws where the server did not take the write. */
  async writeStatus(): Promise<boolean> {
    const { pod, record, containers, egress, snapshot, limits, loss } = this.#life
    const status = podStatus({
      pod: withOwnConditions(pod, this.#lastStatus),
      containers: containers.states,
      startTime: record.startTime,
      podIP: record.podIP,
      hostIP: this.#ports.facts.hostIP,
      prepared: this.#life.isPrepared,
      isLost: loss.isLost,
      obstacle: this.#obstacle,
      egress: egress.state,
      snapshot: snapshot.state,
      limits: limits.state,
      image: imageState(pod, containers.states, this.wantedImage(), this.#imageLacks()),
      failure: record.failure,
      disruption: record.halted?.message ?? evictionOf(record.failure),
      isEnding: pod.metadata.deletionTimestamp !== undefined,
      now: this.#ports.clock.now(),
    })
    this.#lastStatus = status
    return this.#status.write(pod, status)
  }

  /** As `writeStatus`, for what is about to fail with an error of its own. */
  async tryWriteStatus(): Promise<void> {
    await this.writeStatus().catch((failure: unknown) => this.#ports.log.debug('status not written', { failure }))
  }

  /** The image its annotation names, where it is there; a container goes on as it is for one that is not. */
  wantedImage(): string | undefined {
    const name = this.#imageName()
    return name === '' || this.#ports.imported.find(name) ? name : undefined
  }

  /** A pod that waits says in its status what for, not only in an event that goes away. */
  async passFailed(error: unknown): Promise<void> {
    const reason = this.#life.isPrepared ? 'FailedSync' : 'FailedCreatePodSandBox'
    this.warn(reason, error)
    if (this.#life.isPrepared) return
    this.#obstacle = { reason, message: error instanceof Error ? error.message : String(error) }
    await this.tryWriteStatus()
  }

  /** The pod's sandbox is made: what stood in its way is gone. */
  prepared(): void {
    this.#obstacle = undefined
  }

  /** An event of type Warning. */
  warn(reason: string, error: unknown): void {
    const text = error instanceof Error ? error.message : String(error)
    const message = isDiskFull(error) ? `the disk of the node's data directory is full (${text})` : text
    this.#ports.events.event(this.#life.pod, 'Warning', reason, message)
  }

  #imageName(): string {
    return this.#life.pod.metadata.annotations?.[imageAnnotation] ?? ''
  }

  #imageLacks(): readonly string[] | undefined {
    return this.#ports.imported.find(this.#imageName())?.lacks
  }
}

export const isDiskFull = (error: unknown): boolean => ['ENOSPC', 'EDQUOT'].includes(errorCode(error) ?? '')
const evictionOf = (failure: PodRecord['failure']): string | undefined =>
  failure?.reason === 'Evicted' ? failure.message : undefined

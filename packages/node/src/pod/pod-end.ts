import type { KubeClient } from '@corral/kube'
import type { Clock, Logger } from '@corral/ports'
import { isConflict, isNotFound, type Pod, Pods, type Stored } from '@corral/resources'
import type { GuardedPod } from '../disk/disk-guard.js'
import { storageLimits } from '../disk/storage-limits.js'
import type { PodDirectories, PodRecord } from '../records/pod-directories.js'
import type { PodContainers, PodContainersPorts } from './pod-containers.js'
import { reference } from './status-writer.js'

export interface PodEndPorts {
  client: Pick<KubeClient, 'delete'>
  directories: PodDirectories
  clock: Pick<Clock, 'now'>
  events: PodContainersPorts['events']
  log: Logger
}

/** What the end of a pod needs of its life. */
export interface LivingPod {
  readonly pod: Stored<Pod>
  readonly record: PodRecord
  readonly containers: PodContainers
  /** The pod has failed, and nothing of it runs or is prepared any more. */
  isOver(): boolean
  /** Puts the failure on record; the next pass ends the pod for it. */
  fail(reason: string, message: string): void
  /** The record has changed: it is saved and looked at in the next pass. */
  changed(): void
  wake(): void
  /** False where the object is gone. */
  writeStatus(): Promise<boolean>
}

/** The ways a pod comes to its end before its containers do: the guard of the disk, and callers that wait for it. */
export class PodEnd {
  readonly #ports: PodEndPorts
  readonly #life: LivingPod
  readonly #whenOver: (() => void)[] = []
  #isCleared = false

  constructor(ports: PodEndPorts, life: LivingPod) {
    this.#ports = ports
    this.#life = life
  }

  /** Settles when nothing of the pod runs any more, or when the node stops: `isOver` says which. */
  untilOver(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#whenOver.push(resolve)
      this.#life.wake()
      if (signal.aborted) resolve()
    })
  }

  /** Lets go of everything that waits in `untilOver`. */
  tellOver(): void {
    for (const tell of this.#whenOver.splice(0)) tell()
  }

  /** The pod as the guard of the disk sees it. */
  guarded(): GuardedPod {
    const { pod, record } = this.#life
    const { podUid, hostUid, halted, failure } = record
    const { directories } = this.#ports
    return {
      uid: podUid,
      containers: (pod.spec?.containers ?? []).map(({ name, resources }) => ({
        name,
        request: String(resources?.requests?.['ephemeral-storage'] ?? 0),
      })),
      limits: storageLimits(pod),
      directory: directories.paths(podUid).directory,
      hostUid: process.getuid?.() === 0 ? hostUid : undefined,
      halted: halted && { atMs: Date.parse(halted.at), message: halted.message },
      isOver: this.#life.isOver(),
      isCleared: this.#isCleared,
      halt: (message) => this.#halt(message),
      evict: (message) => {
        if (failure) return
        this.#life.fail('Evicted', message)
        this.#life.wake()
      },
      clear: async () => {
        await directories.clear(podUid)
        this.#isCleared = true
      },
    }
  }

  /** Ends all of the pod's processes but its containers' main ones. The status says so, for the step that collects the work. */
  async #halt(message: string): Promise<void> {
    const { clock, events, log } = this.#ports
    const { containers, record } = this.#life
    record.halted = { at: clock.now().toISOString(), message }
    // Written before the exit is reported, so that a client that sees the exit can read the reason; on a full disk it follows
    // once there is room.
    await this.#life.writeStatus().catch((error: unknown) => log.debug('eviction not told yet', { error }))
    await Promise.all([...containers.states.keys()].map(async (name) => containers.cell(name)?.halt()))
    events.event(this.#life.pod, 'Warning', 'Evicting', message)
    this.#life.changed()
  }

  /** The last status is on record before the object goes; another pod of the same name is never touched. */
  async deleteObject(): Promise<void> {
    if (!(await this.#life.writeStatus())) return
    const { pod } = this.#life
    try {
      const preconditions = { uid: pod.metadata.uid }
      await this.#ports.client.delete(Pods, reference(pod), { gracePeriodSeconds: 0, preconditions })
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error
    }
  }
}

import { join } from 'node:path'
import { isSnapshotName, type Pod, type SnapshotReason, snapshotAnnotation } from '@corral/resources'
import type { Isolation, SnapshotAttachment } from '../isolation/isolation.js'
import { IsolationError } from '../isolation/isolation-error.js'
import type { PodPaths } from '../launch/launch-plan.js'
import type { PodRecord } from '../records/pod-directories.js'
import { copyTree } from './copy-tree.js'
import { podPlace } from './pod-place.js'
import type { SnapshotDirectory, SnapshotHold, SnapshotRecord } from './snapshot-directory.js'

/** How a pod's snapshot stands, as its condition tells it. */
export interface SnapshotState {
  status: 'True' | 'False'
  reason: SnapshotReason
  message: string
}

export interface PodSnapshotPorts {
  isolation: Isolation
  snapshots: SnapshotDirectory
}

/** Gives a pod the snapshot its annotation names, once, and knows how that stands. */
export class PodSnapshot {
  #state: SnapshotState | undefined
  /** What the pod has, as its directory says; null before the first look. */
  #held: SnapshotHold | undefined | null = null
  /** How it was attached to the cells there are now. */
  #attached: SnapshotState | undefined

  constructor(
    private readonly ports: PodSnapshotPorts,
    private readonly place: Pick<PodRecord, 'podUid' | 'hostUid' | 'namespace'> & { paths: PodPaths },
  ) {}

  get state(): SnapshotState | undefined {
    return this.#state
  }

  /** Nothing is known of what is attached: the pod's cells are gone, or an earlier process started them. */
  forget(): void {
    this.#attached = undefined
  }

  /** Carries out what the annotation says; at once where that is done. Throws what stands in the way: it is tried again. */
  async follow(pod: Pod, signal: AbortSignal): Promise<void> {
    if (this.#held === null) this.#held = this.ports.snapshots.held(this.place.podUid)
    const wanted = pod.metadata?.annotations?.[snapshotAnnotation] || this.#held?.name
    if (wanted === undefined) return
    const name = this.#held?.name ?? wanted
    try {
      this.#attached ??= await this.#attach(pod, name, signal)
      this.#state = this.#attached
    } catch (error) {
      const reason = error instanceof SnapshotRefusal ? error.reason : 'Failed'
      this.#state = stateOf('False', reason, name, error instanceof Error ? error.message : String(error))
      throw error
    }
    if (wanted !== name)
      this.#state = stateOf('False', 'AlreadyAttached', wanted, `the pod has "${name}", which stays until the pod ends`)
  }

  async #attach(pod: Pod, name: string, signal: AbortSignal): Promise<SnapshotState> {
    const { snapshots } = this.ports
    const { podUid, namespace } = this.place
    const record = isSnapshotName(name) ? snapshots.find(name) : undefined
    if (!record) throw new SnapshotRefusal('NotFound', 'there is no such snapshot on this node')
    if (record.namespace !== namespace) throw new SnapshotRefusal('Forbidden', 'it belongs to another namespace')
    const before = this.#held ?? undefined
    if (before?.isCopied) return stateOf('True', 'Copied', name, 'copied when it was first attached')
    // Before anything else: from here on the garbage collection leaves it.
    if (!before) snapshots.hold(podUid, { name })
    try {
      const obstacle = await this.#overlay(record)
      if (obstacle !== undefined) await this.#copy(pod, record, signal)
      this.#held = { name, isCopied: obstacle !== undefined }
      if (obstacle === undefined) return stateOf('True', 'Overlay', name, 'attached copy-on-write')
      return stateOf('True', 'Copied', name, `copied: ${obstacle}`)
    } catch (error) {
      if (!before) snapshots.release(podUid)
      throw error
    }
  }

  /** Undefined when it is attached, else why this machine cannot. */
  async #overlay(record: SnapshotRecord): Promise<string | undefined> {
    const { snapshots, isolation } = this.ports
    const { podUid, hostUid, paths } = this.place
    if (process.getuid?.() !== 0 && record.ownerUid !== hostUid)
      throw new Error(`snapshot "${record.name}" was sealed by another user of this machine`)
    const attachment: SnapshotAttachment = {
      name: record.name,
      ownerUid: record.ownerUid,
      trees: record.paths.map((target, index) => ({
        source: snapshots.treePath(record.name, index),
        target,
        directory: join(paths.directory, 'snapshot', String(index)),
      })),
    }
    try {
      await isolation.attachSnapshot(podUid, attachment)
      return undefined
    } catch (error) {
      if (error instanceof IsolationError && error.code === 'Unsupported') return error.message
      throw error
    }
  }

  async #copy(pod: Pod, record: SnapshotRecord, signal: AbortSignal): Promise<void> {
    const { snapshots } = this.ports
    const { podUid, hostUid, paths } = this.place
    for (const [index, path] of record.paths.entries()) {
      const place = podPlace(pod, paths, path)
      const staging = join(paths.directory, 'snapshot', String(index))
      await copyTree({ source: snapshots.treePath(record.name, index), place, staging, hostUid, signal })
    }
    snapshots.hold(podUid, { name: record.name, isCopied: true })
  }
}

/** What an annotation may ask for and does not get. */
class SnapshotRefusal extends Error {
  override readonly name: string = 'SnapshotRefusal'
  constructor(
    readonly reason: SnapshotReason,
    message: string,
  ) {
    super(message)
  }
}

function stateOf(
  status: SnapshotState['status'],
  reason: SnapshotReason,
  name: string,
  message: string,
): SnapshotState {
  return { status, reason, message: `${name}: ${message}` }
}

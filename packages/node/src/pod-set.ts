import type { PodRef } from '@corral/ports'
import { KubeError, type NetworkPolicy, type PersistentVolumeClaim, type Pod, type Stored } from '@corral/resources'
import { admitPod } from './admission.js'
import type { GuardedPod } from './disk/disk-guard.js'
import { policyGap, selectsPod } from './egress/network-policies.js'
import type { BrakeReason, Cell, NetworkReport, OomReport } from './isolation/isolation.js'
import { imageRepository } from './launch/image-map.js'
import { logFile } from './launch/launch-plan.js'
import { hostUidPool, type NumberPool, podAddress, podAddressIndex, podAddressPool } from './pod/allocator.js'
import { reportOomKills } from './pod/oom-reporter.js'
import { PodWorker, type PodWorkerPorts } from './pod/pod-worker.js'
import { recoverContainers } from './pod/recovered-state.js'
import { RefusalReporter } from './pod/refusal-reporter.js'
import type { PodRecord } from './records/pod-directories.js'
import type { SealedPod } from './snapshots/seal-pod.js'
import type { StreamTargets } from './streams/pod-streams.js'

/** What an earlier agent left behind. */
export interface Leftovers {
  records: readonly PodRecord[]
  cells: readonly Cell[]
}

export interface PodSetPorts extends Omit<PodWorkerPorts, 'isUidInUse'> {
  findClaim(namespace: string, name: string): Stored<PersistentVolumeClaim> | undefined
  policies(): readonly NetworkPolicy[]
}

const brakeEvents: Record<BrakeReason, { reason: string; message: string }> = {
  full: {
    reason: 'ForksRefused',
    message: 'this pod has as many processes as it may have; more are refused until some have ended',
  },
  slowed: {
    reason: 'ForksSlowed',
    message:
      'processes of this pod start others without end, or fail to; a few of them run at a time, so that other pods can work',
  },
  terminals: {
    reason: 'TerminalsTaken',
    message:
      'processes of this pod had most of the terminals of the machine open; they were ended, so that other pods can open one',
  },
  files: {
    reason: 'FilesTaken',
    message:
      'processes of this pod had too many of the files open that the machine can have; they were ended, so that other pods can open some',
  },
}

/** The pods of this node, one worker each, and the numbers they hold. */
export class PodSet implements StreamTargets {
  readonly #workers = new Map<string, PodWorker>()
  /** Pods that are over here and whose object has not been seen to go yet. */
  readonly #over = new Set<string>()
  readonly #records: Map<string, PodRecord>
  readonly #cells = new Map<string, Cell[]>()
  readonly #uids: NumberPool = hostUidPool()
  readonly #addresses: NumberPool = podAddressPool()
  readonly #refusals: RefusalReporter
  /** Told before their pods were observed. */
  readonly #earlyReports = new Map<string, NetworkReport>()
  readonly #earlyKills = new Map<string, OomReport>()

  constructor(
    private readonly ports: PodSetPorts,
    leftovers: Leftovers,
  ) {
    this.#refusals = new RefusalReporter(ports)
    this.#records = new Map(leftovers.records.map((record) => [record.podUid, record]))
    for (const cell of leftovers.cells) this.#cells.set(cell.podUid, [...(this.#cells.get(cell.podUid) ?? []), cell])
    for (const record of leftovers.records) {
      this.#uids.hold(record.hostUid)
      this.#addresses.hold(podAddressIndex(record.podIP))
    }
  }

  /** The pod is there, or changed. */
  observe(pod: Stored<Pod>): void {
    const { uid } = pod.metadata
    if (this.#over.has(uid)) return
    const worker = this.#workers.get(uid)
    if (worker) worker.update(pod)
    else this.#begin(pod)
  }

  gone(uid: string): void {
    this.#over.delete(uid)
    this.#workers.get(uid)?.objectGone()
  }

  /** Ends what belongs to no pod of the API. Called once everything there is has been observed. */
  async sweep(): Promise<void> {
    const strangers = new Set([...this.#records.keys(), ...this.#cells.keys()])
    this.#records.clear()
    this.#cells.clear()
    this.#earlyReports.clear()
    this.#earlyKills.clear()
    for (const podUid of strangers) {
      this.ports.log.info('pod without an object ended', { podUid })
      await this.ports.isolation.releasePod(podUid)
      await this.ports.directories.remove(podUid)
    }
  }

  /** A policy came or changed: the pods it selects are told what of it is not done here. */
  policyChanged(policy: NetworkPolicy): void {
    for (const { pod } of this.#workers.values()) this.#reportGap(pod, policy)
  }

  /** Something of the network was refused to a pod. */
  networkRefused(report: NetworkReport): void {
    const worker = this.#workers.get(report.podUid)
    if (worker) this.#refusals.report(worker.pod, report)
    else if (this.#records.has(report.podUid)) this.#earlyReports.set(report.podUid, report)
  }

  /** A pod has all the processes it may have, or does little but start processes and is slowed down. */
  braked(podUid: string, why: BrakeReason): void {
    const pod = this.#workers.get(podUid)?.pod
    const { reason, message } = brakeEvents[why]
    if (pod) this.ports.events.event(pod, 'Warning', reason, message)
  }

  /** The kernel ended processes of a pod. */
  oomKilled(report: OomReport): void {
    const worker = this.#workers.get(report.podUid)
    if (worker) void reportOomKills(worker.pod, report, this.ports)
    else if (this.#records.has(report.podUid)) this.#earlyKills.set(report.podUid, report)
  }

  /** Called now and then, see `PodWorker.upkeep`. */
  async upkeep(): Promise<void> {
    for (const worker of this.#workers.values()) {
      await worker.upkeep().catch((error: unknown) => this.ports.log.warn('pod upkeep failed', { error }))
    }
  }

  /** A pod whose directories may become a snapshot. */
  sealable(podUid: string): SealedPod | undefined {
    const worker = this.#workers.get(podUid)
    if (!worker) return undefined
    const { pod, record } = worker
    const paths = this.ports.directories.paths(podUid)
    return { pod, record, paths, endFor: (reason, message) => worker.endFor(reason, message) }
  }

  /** The pods that have files on this node's disk. */
  guarded(): GuardedPod[] {
    return [...this.#workers.values()].flatMap((worker) => worker.guarded() ?? [])
  }

  /** Stops deciding: pods that are kept go on by themselves, the others are ended for the time being. */
  async leave(graceSeconds: number, isKept: (pod: Stored<Pod>) => boolean): Promise<void> {
    await Promise.all(
      [...this.#workers.values()].map((worker) =>
        isKept(worker.pod) ? worker.detach() : worker.shutDown(graceSeconds),
      ),
    )
  }

  cell(pod: PodRef, container: string): Cell | undefined {
    return this.#find(pod)?.containers.cell(container)
  }

  anyCell(pod: PodRef): Cell | undefined {
    return this.#find(pod)?.containers.anyCell()
  }

  log(pod: PodRef, container: string, previous: boolean): ReturnType<StreamTargets['log']> {
    const worker = this.#find(pod)
    if (!worker)
      throw new KubeError('NotFound', `pod ${pod.name}_${pod.namespace} is not on this node`, { status: 404 })
    const launched = worker.containers.states.get(container)?.launched ?? 0
    const attempt = launched - (previous ? 2 : 1)
    if (attempt < 0) return undefined
    const file = logFile(this.ports.directories.paths(worker.record.podUid), container, attempt)
    return { file, ended: previous ? Promise.resolve() : worker.containers.ended(container) }
  }

  /** Whether a pod other than this one runs as that user. */
  #isUidInUse(hostUid: number, exceptPodUid: string): boolean {
    return [...this.#workers.values()].some(
      ({ record }) => record.hostUid === hostUid && record.podUid !== exceptPodUid,
    )
  }

  #find(pod: PodRef): PodWorker | undefined {
    if (pod.uid) return this.#workers.get(pod.uid)
    return [...this.#workers.values()].find(
      ({ pod: { metadata } }) => metadata.name === pod.name && metadata.namespace === pod.namespace,
    )
  }

  #begin(pod: Stored<Pod>): void {
    const { uid } = pod.metadata
    const known = this.#records.get(uid)
    // A cell that was lost with its cradle has no pod around it any more: the pod is prepared anew.
    const cells = (this.#cells.get(uid) ?? []).filter(({ knownExit }) => !knownExit?.lost)
    this.#records.delete(uid)
    this.#cells.delete(uid)
    const { refusal } = admitPod(pod)
    const record = known ?? this.#newRecord(pod)
    if (refusal && !known) record.failure = refusal
    const hasCell = (container: string): boolean => cells.some((cell) => cell.container === container)
    const containers = recoverContainers(pod, known, hasCell, this.ports.clock.now())
    const worker = new PodWorker(
      {
        ...this.ports,
        isUidInUse: (hostUid) => this.#isUidInUse(hostUid, uid),
        log: this.ports.log.child({ pod: `${pod.metadata.namespace}/${pod.metadata.name}` }),
      },
      { pod, record, containers, cells, hasDirectory: known !== undefined, onEnded: () => this.#ended(uid) },
    )
    this.#workers.set(uid, worker)
    if (!known && !pod.metadata.deletionTimestamp) this.#welcome(pod, refusal)
    worker.wake()
    const report = this.#earlyReports.get(uid)
    this.#earlyReports.delete(uid)
    if (report) this.#refusals.report(pod, report)
    const kills = this.#earlyKills.get(uid)
    this.#earlyKills.delete(uid)
    if (kills) void reportOomKills(pod, kills, this.ports)
  }

  #welcome(pod: Stored<Pod>, refusal: { reason: string; message: string } | undefined): void {
    if (refusal) {
      this.ports.events.event(pod, 'Warning', refusal.reason, refusal.message)
      return
    }
    for (const policy of this.ports.policies()) this.#reportGap(pod, policy)
    const images = new Set((pod.spec?.containers ?? []).map((container) => container.image ?? ''))
    const mapped = [...images].filter(
      (image) => !Object.hasOwn(this.ports.images, imageRepository(image)) && !this.ports.imported.find(image),
    )
    if (mapped.length === 0) return
    const what = mapped.map((image) => `"${image}"`).join(', ')
    this.ports.events.event(
      pod,
      'Normal',
      'ImageMapped',
      `${what} runs with the tools of this machine, read-only; nothing is pulled`,
    )
  }

  #reportGap(pod: Stored<Pod>, policy: NetworkPolicy): void {
    if (!selectsPod(policy, pod)) return
    const gap = policyGap(policy, admitPod(pod).egress.rules)
    if (gap) this.ports.events.event(pod, 'Warning', 'NetworkPolicyNotEnforced', gap)
  }

  #newRecord(pod: Stored<Pod>): PodRecord {
    const { uid, namespace = '', name } = pod.metadata
    return {
      podUid: uid,
      namespace,
      name,
      hostUid: this.#takeUid(pod),
      podIP: podAddress(this.#addresses.take()),
      startTime: pod.status?.startTime ?? this.ports.clock.now().toISOString(),
      containers: [],
    }
  }

  /** The user that owns the pod's claims already, else a new one. Without root there is one user for all, ourselves. */
  #takeUid(pod: Stored<Pod>): number {
    const self = process.getuid?.() ?? 0
    if (self !== 0) return self
    const owner = (pod.spec?.volumes ?? [])
      .flatMap((volume) => volume.persistentVolumeClaim?.claimName ?? [])
      .flatMap((name) => this.ports.findClaim(pod.metadata.namespace ?? '', name)?.metadata.uid ?? [])
      .flatMap((claimUid) => this.ports.claims.ownerOf(claimUid) ?? [])[0]
    if (owner === undefined) {
      const owners = new Set(this.ports.claims.owners())
      return this.#uids.take((uid) => owners.has(uid))
    }
    this.#uids.hold(owner)
    return owner
  }

  #ended(uid: string): void {
    const worker = this.#workers.get(uid)
    if (!worker) return
    const { record } = worker
    this.#workers.delete(uid)
    this.#refusals.forget(uid)
    if (!worker.isObjectGone) this.#over.add(uid)
    this.#uids.release(record.hostUid)
    this.#addresses.release(podAddressIndex(record.podIP))
    // The pod's files are gone: others may have waited for the room.
    for (const other of this.#workers.values()) other.retry()
  }
}

import { join } from 'node:path'
import type { Pod, Stored } from '@corral/resources'
import type { GuardedPod } from '../disk/disk-guard.js'
import type { Cell, HostService } from '../isolation/isolation.js'
import { podLimits } from '../launch/amounts.js'
import type { PodFacts } from '../launch/downward-api.js'
import { podHostname } from '../launch/launch-plan.js'
import type { ContainerState } from '../records/container-state.js'
import type { PodDirectories, PodRecord } from '../records/pod-directories.js'
import { PodSnapshot } from '../snapshots/pod-snapshot.js'
import type { SnapshotDirectory } from '../snapshots/snapshot-directory.js'
import { isSandboxTier } from '../tiers/pick-isolation.js'
import { hasUpkeep, refreshVolumes } from '../volumes/upkeep.js'
import { fillDirectory } from './fill-directory.js'
import { PassLoop } from './pass-loop.js'
import { isWorkOver, type PodAction, type PodWorld, planPod } from './plan.js'
import { PodContainers, type PodContainersPorts } from './pod-containers.js'
import { type LivingPod, PodEnd } from './pod-end.js'
import { limitedPod, PodLimiter } from './pod-limits.js'
import { PodLoss } from './pod-loss.js'
import { PodEgress, reachOf } from './pod-reach.js'
import { isDiskFull, PodReport, type ReportedPod } from './pod-report.js'
import { requireRuntime } from './runtime-handler.js'

export interface PodWorkerPorts extends PodContainersPorts {
  directories: PodDirectories
  snapshots: SnapshotDirectory
  services: readonly HostService[]
  facts: Omit<PodFacts, 'podIP'>
}

export interface PodWorkerOptions {
  pod: Stored<Pod>
  record: PodRecord
  containers: Map<string, ContainerState>
  /** Runs of an earlier node process. */
  cells: readonly Cell[]
  /** The pod's directory is there already, with its record. */
  hasDirectory: boolean
  /** Called once, when the object is gone and nothing of the pod is left. */
  onEnded(): void
}

const saveRetryMs = 2_000
const lostMessage =
  "The process that kept the pod's containers has ended. The pod's sandbox is made again; its volumes are kept."

/** Keeps one pod as its object asks: one pass at a time, woken by every change. */
export class PodWorker {
  readonly containers: PodContainers
  readonly #ports: PodWorkerPorts
  readonly #options: PodWorkerOptions
  readonly #record: PodRecord
  readonly #passes: PassLoop
  readonly #report: PodReport
  readonly #egress: PodEgress
  readonly #snapshot: PodSnapshot
  readonly #limits: PodLimiter
  readonly #end: PodEnd
  readonly #loss: PodLoss
  readonly #life = new AbortController()
  #pod: Stored<Pod>
  #limitsRefusal: ReturnType<typeof limitedPod>['refusal']
  #isObjectGone = false
  #isObjectSeenGone = false
  #isPrepared: boolean
  /** The isolation may hold something of the pod. */
  #isHeld: boolean
  #hasDirectory: boolean
  #isSaved = true

  constructor(ports: PodWorkerPorts, options: PodWorkerOptions) {
    this.#ports = ports
    this.#options = options
    this.#pod = this.#limited(options.pod)
    this.#record = options.record
    this.#passes = new PassLoop({
      signal: this.#life.signal,
      pass: () => this.#pass(),
      onFailed: (error) => this.#passFailed(error),
    })
    this.#egress = new PodEgress(ports)
    const { hostUid, podIP, podUid } = options.record
    this.#limits = new PodLimiter(ports)
    this.#snapshot = new PodSnapshot(ports, { ...options.record, paths: ports.directories.paths(podUid) })
    const place = { hostUid, paths: ports.directories.paths(podUid), facts: { ...ports.facts, podIP } }
    this.containers = new PodContainers(ports, options.containers, place, () => this.#pod, {
      changed: () => this.#changed(),
      lost: () => this.#lose(),
    })
    this.#end = new PodEnd(ports, this.#living())
    this.#isPrepared = options.cells.length > 0
    this.#hasDirectory = this.#isHeld = options.hasDirectory
    const hasRun = [...options.containers.values()].some(({ launched }) => launched > 0)
    this.#loss = new PodLoss(hasRun && !this.#isPrepared, ports.log)
    this.#report = new PodReport(ports, this.#reported())
    for (const cell of options.cells) this.containers.adopt(cell)
  }

  get pod(): Stored<Pod> {
    return this.#pod
  }

  /** Whether the object has been seen to go. */
  get isObjectGone(): boolean {
    return this.#isObjectSeenGone
  }

  get record(): PodRecord {
    return this.#record
  }

  /** The object changed. */
  update(pod: Stored<Pod>): void {
    this.#pod = this.#limited(pod)
    this.wake()
  }

  /** The object is gone: whatever still runs is ended at once. */
  objectGone(): void {
    this.#isObjectSeenGone = true
    this.#isObjectGone = true
    this.wake()
  }

  /** Another pass soon; many calls before it are one. */
  wake(): void {
    this.#passes.wake()
  }

  /** Room or something else that passes failed for may be there now. */
  retry(): void {
    this.#passes.retry()
  }

  /** Stops deciding. Cells go on; settles after the last pass. */
  async detach(): Promise<void> {
    this.#life.abort()
    await this.#passes.stop()
    await this.containers.detach()
    this.#end.tellOver()
  }

  /** Ends every container for the time the platform is down; the restart policy decides what comes back later. */
  async shutDown(graceSeconds: number): Promise<void> {
    this.#life.abort()
    await this.#passes.stop()
    const running = [...this.containers.states.values()].filter((state) => state.run)
    for (const state of running) this.containers.stop(state.name, graceSeconds, 'NodeStopping')
    await Promise.all(running.map((state) => this.containers.ended(state.name)))
    await this.containers.detach()
    await this.#ports.isolation.releasePod(this.#record.podUid)
    this.#end.tellOver()
    this.#save()
    await this.#report
      .writeStatus()
      .catch((error: unknown) => this.#ports.log.warn('last status not written', { error }))
  }

  /** What changes without an event: files that come from the API. */
  async upkeep(): Promise<void> {
    if (this.#life.signal.aborted || !this.#isPrepared || !hasUpkeep(this.#pod.spec)) return
    const { podUid, hostUid, podIP } = this.#record
    const { client, directories, facts } = this.#ports
    const directory = join(directories.paths(podUid).directory, 'volumes')
    const place = { directory, hostUid, facts: { ...facts, podIP }, signal: this.#life.signal }
    await refreshVolumes({ ...place, pod: this.#pod, client })
  }

  /**
   * Ends every process of the pod, which has failed then unless its work was over; settles when none is left. Its files
   * stay. Safe to repeat; rejects where the node stops first.
   */
  async endFor(reason: string, message: string): Promise<void> {
    if (isWorkOver(this.#world())) return
    if (!this.#record.failure) this.#fail(reason, message, 'Normal')
    await this.#end.untilOver(this.#life.signal)
    if (!this.#isOver()) throw new Error('the node stops')
  }

  /** The pod as the guard of the disk sees it; undefined before it has a directory and once its end is under way. */
  guarded(): GuardedPod | undefined {
    if (!this.#hasDirectory || this.#isObjectGone || this.#life.signal.aborted) return undefined
    return this.#end.guarded()
  }

  #living(): LivingPod {
    const pod = (): Stored<Pod> => this.#pod
    return {
      get pod() {
        return pod()
      },
      record: this.#record,
      containers: this.containers,
      isOver: () => this.#isOver(),
      fail: (reason, message) => this.#fail(reason, message),
      changed: () => this.#changed(),
      wake: () => this.wake(),
      writeStatus: () => this.#report.writeStatus(),
    }
  }

  #reported(): ReportedPod {
    const pod = (): Stored<Pod> => this.#pod
    const isPrepared = (): boolean => this.#isPrepared
    return {
      get pod() {
        return pod()
      },
      get isPrepared() {
        return isPrepared()
      },
      record: this.#record,
      containers: this.containers,
      egress: this.#egress,
      snapshot: this.#snapshot,
      limits: this.#limits,
      loss: this.#loss,
    }
  }

  /** The object with the limits its annotation asks for, where it can have them. */
  #limited(pod: Stored<Pod>): Stored<Pod> {
    const { pod: limited, refusal } = limitedPod(pod, this.#ports.facts.allocatable)
    this.#limitsRefusal = refusal
    return limited
  }

  #isOver(): boolean {
    const isRunning = [...this.containers.states.values()].some((state) => state.run)
    return !this.#isPrepared && this.#record.failure !== undefined && !isRunning
  }

  async #passFailed(error: unknown): Promise<void> {
    this.#ports.log.warn('pod pass failed', { error })
    if (!this.#isObjectGone) await this.#report.passFailed(error)
  }

  async #pass(): Promise<void> {
    // What happened meanwhile, such as the loss of another container, is told first as well.
    if ((await this.#loss.tell(() => this.#report.writeStatus())) && this.#passes.isDirty) return
    const decision = planPod(this.#world())
    await Promise.all(decision.actions.map((action) => this.#perform(action)))
    this.#save()
    if (decision.actions.length > 0) return this.wake()
    if (this.#passes.isDirty) return
    if (this.#isObjectGone) return this.#remove()
    if (this.#isPrepared && !this.#pod.metadata.deletionTimestamp && !this.#record.failure) await this.#followPod()
    if (this.#isOver()) this.#end.tellOver()
    if (!(await this.#report.writeStatus())) {
      this.#isObjectGone = true
      this.wake()
    }
    const waitsMs = [decision.requeueAfterMs ?? [], this.#isSaved ? [] : saveRetryMs].flat()
    if (waitsMs.length > 0) this.#passes.wakeIn(Math.min(...waitsMs))
  }

  #world(): PodWorld {
    const spec = this.#pod.spec!
    const { deletionTimestamp, deletionGracePeriodSeconds } = this.#pod.metadata
    const grace = deletionGracePeriodSeconds ?? spec.terminationGracePeriodSeconds ?? 30
    const deletion = this.#isObjectGone
      ? { graceSeconds: 0, objectGone: true }
      : deletionTimestamp
        ? { graceSeconds: grace, objectGone: false }
        : undefined
    return {
      spec,
      containers: this.containers.states,
      startTime: this.#record.startTime,
      deletion,
      failure: this.#record.failure,
      prepared: this.#isPrepared,
      image: this.#report.wantedImage(),
      now: this.#ports.clock.now(),
    }
  }

  async #perform(action: PodAction): Promise<void> {
    switch (action.kind) {
      case 'prepare':
        return this.#prepare()
      case 'start':
        await this.containers.start(action.container, action.attempt, this.#life.signal)
        if (this.containers.cell(action.container)) this.#loss.over()
        return
      case 'stop':
        return this.containers.stop(action.container, action.graceSeconds, action.cause)
      case 'fail':
        return this.#fail(action.reason, action.message)
      case 'release':
        await this.#ports.isolation.releasePod(this.#record.podUid)
        this.#isPrepared = this.#isHeld = false
        return
      case 'deleteObject':
        await this.#end.deleteObject()
        this.#isObjectGone = true
        return
    }
  }

  async #prepare(): Promise<void> {
    const { podUid, hostUid, podIP, namespace, name } = this.#record
    const pod = this.#pod
    const spec = pod.spec!
    const { client, isolation } = this.#ports
    await requireRuntime(spec, { client, tier: isolation.tier, signal: this.#life.signal })
    // The record comes first: with it the next agent knows of the pod whatever happens from here on.
    const { directory } = this.#ports.directories.begin(this.#record)
    this.#hasDirectory = this.#isHeld = true
    const preparing = this.#ports.isolation.preparePod({
      podUid,
      namespace,
      name,
      podIP,
      hostname: podHostname(pod),
      hostUid,
      ...reachOf(pod, this.#ports.services),
      limits: podLimits(spec, this.#ports.pidsLimit),
      directory,
    })
    const filling = fillDirectory(this.#ports.directories, pod, this.#record)
    const failed = (await Promise.allSettled([preparing, filling])).find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
    // As with a volume: what the pod was made for may be in it, so nothing starts without it.
    await this.#snapshot.follow(pod, this.#life.signal)
    this.#isPrepared = true
    this.#egress.prepared(pod, isSandboxTier(isolation.tier))
    this.#report.prepared()
  }

  /** Carries out annotations that change while the pod runs. */
  async #followPod(): Promise<void> {
    try {
      await this.#limits.follow(this.#pod, this.#record.podUid, this.#limitsRefusal)
      await this.#egress.follow(this.#pod, this.#record.podUid)
      await this.#snapshot.follow(this.#pod, this.#life.signal)
    } catch (error) {
      // The status says why the network or the files are not there; the next pass tries again.
      await this.#report.tryWriteStatus()
      throw error
    }
  }

  #fail(reason: string, message: string, type: 'Normal' | 'Warning' = 'Warning'): void {
    this.#record.failure = { reason, message }
    this.#isSaved = false
    this.#ports.events.event(this.#pod, type, reason, message)
  }

  /** The object is gone: nothing of the pod stays. */
  async #remove(): Promise<void> {
    this.#life.abort()
    await this.containers.detach()
    if (this.#isHeld) await this.#ports.isolation.releasePod(this.#record.podUid)
    await this.#ports.directories.remove(this.#record.podUid)
    this.#end.tellOver()
    this.#options.onEnded()
  }

  /** As a kubelet does when a pod's sandbox is gone: its files stay, network and containers are made anew. */
  #lose(): void {
    if (this.#isPrepared) this.#ports.events.event(this.#pod, 'Warning', 'SandboxChanged', lostMessage)
    this.#isPrepared = false
    this.#loss.happened()
    this.#egress.forget()
    this.#limits.forget()
    this.#snapshot.forget()
  }

  #changed(): void {
    this.#isSaved = false
    this.wake()
  }

  /** A full disk must not stop a pass: what ends a pod is what makes room again. The record is written later. */
  #save(): void {
    if (this.#isSaved || !this.#hasDirectory) return
    this.#record.containers = [...this.containers.states.values()]
    try {
      this.#ports.directories.save(this.#record)
      this.#isSaved = true
    } catch (error) {
      if (!isDiskFull(error)) throw error
      this.#ports.log.warn('pod record not saved', { error })
      if (!this.#isObjectGone) this.#report.warn('DiskFull', error)
    }
  }
}

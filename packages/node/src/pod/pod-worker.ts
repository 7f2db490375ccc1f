import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorCode, isConflict, isNotFound, type Pod, type PodStatus, Pods, type Stored } from '@corral/resources'
import type { Cell, EgressRule, HostService } from '../isolation/isolation.js'
import { podLimits } from '../launch/amounts.js'
import type { PodFacts } from '../launch/downward-api.js'
import { hasAliases, hostsFile, podHostname } from '../launch/launch-plan.js'
import { exceededVolume, hasUpkeep, refreshVolumes } from '../volumes/upkeep.js'
import type { ContainerState } from './container-state.js'
import { type PodAction, type PodWorld, planPod } from './plan.js'
import { PodContainers, type PodContainersPorts } from './pod-containers.js'
import type { PodDirectories, PodRecord } from './pod-directories.js'
import { podStatus } from './status.js'
import { reference, type StatusWriter, statusWriter } from './status-writer.js'

export interface PodWorkerPorts extends PodContainersPorts {
  directories: PodDirectories
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
  egress: readonly EgressRule[]
  /** Called once, when the object is gone and nothing of the pod is left. */
  onEnded(): void
}

const firstRetryMs = 200
const longestRetryMs = 30_000
const saveRetryMs = 2_000

/** Keeps one pod as its object asks: one pass at a time, woken by every change. */
export class PodWorker {
  readonly containers: PodContainers
  readonly #ports: PodWorkerPorts
  readonly #options: PodWorkerOptions
  readonly #record: PodRecord
  readonly #status: StatusWriter
  readonly #life = new AbortController()
  #pod: Stored<Pod>
  #lastStatus: PodStatus | undefined
  #isObjectGone = false
  #isObjectSeenGone = false
  #isPrepared: boolean
  #hasDirectory: boolean
  #isDirty = false
  #isSaved = true
  #loop: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #failures = 0

  constructor(ports: PodWorkerPorts, options: PodWorkerOptions) {
    this.#ports = ports
    this.#options = options
    this.#pod = options.pod
    this.#record = options.record
    this.#status = statusWriter(ports.client)
    const { hostUid, podIP, podUid } = options.record
    const place = { hostUid, paths: ports.directories.paths(podUid), facts: { ...ports.facts, podIP } }
    this.containers = new PodContainers(
      ports,
      options.containers,
      place,
      () => this.#pod,
      () => this.#changed(),
    )
    this.#isPrepared = options.cells.length > 0
    this.#hasDirectory = options.hasDirectory
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
    this.#pod = pod
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
    if (this.#life.signal.aborted) return
    this.#isDirty = true
    this.#loop ??= this.#run().finally(() => {
      this.#loop = undefined
    })
  }

  /** Room or something else that passes failed for may be there now. */
  retry(): void {
    if (this.#failures > 0) this.wake()
  }

  /** Stops deciding. Cells go on; settles after the last pass. */
  async detach(): Promise<void> {
    this.#life.abort()
    clearTimeout(this.#timer)
    await this.#loop
    await this.containers.detach()
  }

  /** Ends every container for the time the platform is down; the restart policy decides what comes back later. */
  async shutDown(graceSeconds: number): Promise<void> {
    this.#life.abort()
    clearTimeout(this.#timer)
    await this.#loop
    const running = [...this.containers.states.values()].filter((state) => state.run)
    for (const state of running) this.containers.stop(state.name, graceSeconds, 'NodeStopping')
    await Promise.all(running.map((state) => this.containers.ended(state.name)))
    await this.containers.detach()
    await this.#ports.isolation.releasePod(this.#record.podUid)
    this.#save()
    await this.#writeStatus().catch((error: unknown) => this.#ports.log.warn('last status not written', { error }))
  }

  /** What changes without an event: files that come from the API, and how full the pod's directories are. */
  async upkeep(): Promise<void> {
    if (this.#life.signal.aborted || !this.#isPrepared || !hasUpkeep(this.#pod.spec)) return
    const { podUid, hostUid, podIP } = this.#record
    const { client, directories, facts } = this.#ports
    const directory = join(directories.paths(podUid).directory, 'volumes')
    const place = { directory, hostUid, facts: { ...facts, podIP }, signal: this.#life.signal }
    await refreshVolumes({ ...place, pod: this.#pod, client })
    const exceeded = await exceededVolume(this.#pod.spec, directory)
    if (!exceeded || this.#life.signal.aborted) return
    const message = `Usage of EmptyDir volume "${exceeded.name}" exceeds the limit "${exceeded.limit}".`
    this.#fail('Evicted', message)
    this.wake()
  }

  async #run(): Promise<void> {
    clearTimeout(this.#timer)
    try {
      while (this.#isDirty && !this.#life.signal.aborted) {
        this.#isDirty = false
        await this.#pass()
      }
      this.#failures = 0
    } catch (error) {
      if (this.#life.signal.aborted) return
      this.#ports.log.warn('pod pass failed', { error })
      if (!this.#isObjectGone) this.#report(this.#isPrepared ? 'FailedSync' : 'FailedCreatePodSandBox', error)
      this.#wakeIn(Math.min(firstRetryMs * 2 ** this.#failures++, longestRetryMs))
    }
  }

  async #pass(): Promise<void> {
    const decision = planPod(this.#world())
    await Promise.all(decision.actions.map((action) => this.#perform(action)))
    this.#save()
    if (decision.actions.length > 0) {
      this.#isDirty = true
      return
    }
    if (this.#isDirty) return
    if (this.#isObjectGone) return this.#end()
    if (!(await this.#writeStatus())) this.#isObjectGone = this.#isDirty = true
    const waitsMs = [decision.requeueAfterMs ?? [], this.#isSaved ? [] : saveRetryMs].flat()
    if (waitsMs.length > 0) this.#wakeIn(Math.min(...waitsMs))
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
      now: this.#ports.clock.now(),
    }
  }

  async #perform(action: PodAction): Promise<void> {
    switch (action.kind) {
      case 'prepare':
        return this.#prepare()
      case 'start':
        return this.containers.start(action.container, action.attempt, this.#life.signal)
      case 'stop':
        return this.containers.stop(action.container, action.graceSeconds, action.cause)
      case 'fail':
        return this.#fail(action.reason, action.message)
      case 'release':
        await this.#ports.isolation.releasePod(this.#record.podUid)
        this.#isPrepared = false
        return
      case 'deleteObject':
        return this.#deleteObject()
    }
  }

  async #prepare(): Promise<void> {
    const { podUid, hostUid, podIP, namespace, name } = this.#record
    const spec = this.#pod.spec!
    // The record comes first: with it the next agent knows of the pod whatever happens from here on.
    const { directory } = this.#ports.directories.begin(this.#record)
    this.#hasDirectory = true
    const preparing = this.#ports.isolation.preparePod({
      podUid,
      namespace,
      name,
      podIP,
      hostname: podHostname(this.#pod),
      hostUid,
      egress: this.#options.egress,
      services: this.#ports.services,
      limits: podLimits(spec, this.#ports.pidsLimit),
      directory,
    })
    const filling = this.#fillDirectory()
    const failed = (await Promise.allSettled([preparing, filling])).find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
    this.#isPrepared = true
  }

  /** While the isolation is at work: a turn later, so that the request to it has left. */
  async #fillDirectory(): Promise<void> {
    const { podUid, hostUid, podIP } = this.#record
    await new Promise((resolve) => setImmediate(resolve))
    this.#ports.directories.fill(podUid, hostUid)
    if (hasAliases(this.#pod)) {
      writeFileSync(this.#ports.directories.paths(podUid).hosts, hostsFile(this.#pod, podIP))
    }
  }

  #fail(reason: string, message: string): void {
    this.#record.failure = { reason, message }
    this.#isSaved = false
    this.#ports.events.event(this.#pod, 'Warning', reason, message)
  }

  /** The last status is on record before the object goes; another pod of the same name is never touched. */
  async #deleteObject(): Promise<void> {
    if (await this.#writeStatus()) {
      try {
        const preconditions = { uid: this.#pod.metadata.uid }
        await this.#ports.client.delete(Pods, reference(this.#pod), { gracePeriodSeconds: 0, preconditions })
      } catch (error) {
        if (!isNotFound(error) && !isConflict(error)) throw error
      }
    }
    this.#isObjectGone = true
  }

  async #end(): Promise<void> {
    this.#life.abort()
    await this.containers.detach()
    await this.#ports.directories.remove(this.#record.podUid)
    this.#options.onEnded()
  }

  async #writeStatus(): Promise<boolean> {
    const status = podStatus({
      pod: this.#podWithOwnConditions(),
      containers: this.containers.states,
      startTime: this.#record.startTime,
      podIP: this.#record.podIP,
      hostIP: this.#ports.facts.hostIP,
      prepared: this.#isPrepared,
      failure: this.#record.failure,
      isEnding: this.#pod.metadata.deletionTimestamp !== undefined,
      now: this.#ports.clock.now(),
    })
    this.#lastStatus = status
    return this.#status.write(this.#pod, status)
  }

  /** The cached object may be older than our last write: our own conditions come from there, the others from it. */
  #podWithOwnConditions(): Pod {
    if (!this.#lastStatus) return this.#pod
    const own = this.#lastStatus.conditions ?? []
    const others = (this.#pod.status?.conditions ?? []).filter(
      (theirs) => !own.some((ours) => ours.type === theirs.type),
    )
    const merged = own.map(
      (ours) => this.#pod.status?.conditions?.find((c) => isForeign(c.type) && c.type === ours.type) ?? ours,
    )
    return { ...this.#pod, status: { ...this.#pod.status, conditions: [...merged, ...others] } }
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
      if (!this.#isObjectGone) this.#report('DiskFull', error)
    }
  }

  #report(reason: string, error: unknown): void {
    const text = error instanceof Error ? error.message : String(error)
    const message = isDiskFull(error) ? `the disk of the node's data directory is full (${text})` : text
    this.#ports.events.event(this.#pod, 'Warning', reason, message)
  }

  #wakeIn(delayMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.wake(), Math.max(1, delayMs))
  }
}

const isDiskFull = (error: unknown): boolean => ['ENOSPC', 'EDQUOT'].includes(errorCode(error) ?? '')
const nodeConditions = new Set(['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'])
const isForeign = (type: string): boolean => !nodeConditions.has(type)

import { statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '@corral/ports'
import { type DiskAction, type DiskPod, type DiskState, planDisk } from './disk-plan.js'
import { isMeasurementDue } from './measurement-due.js'
import type { MeasureRequest, PodUsage, Usage } from './pod-usage.js'
import { type ReserveFile, reserveInodes, reserveSize } from './reserve-file.js'
import { headroom, type StorageLimits } from './storage-limits.js'
import type { UsageMeter } from './usage-meter.js'

/** A pod as the guard sees it and what it can do to it. */
export interface GuardedPod {
  readonly uid: string
  readonly containers: DiskPod['containers']
  readonly limits: StorageLimits
  readonly directory: string
  readonly hostUid: number | undefined
  readonly halted: { atMs: number; message: string } | undefined
  readonly isOver: boolean
  readonly isCleared: boolean
  halt(message: string): Promise<void>
  evict(message: string): void
  clear(): Promise<void>
}

export interface DiskGuardOptions {
  dataDir: string
  pods: () => readonly GuardedPod[]
  meter: UsageMeter
  reserve: ReserveFile
  /** Called when the disk becomes low and when it no longer is; `problem` says what is wrong. */
  onPressure?: ((problem: string | undefined) => void) | undefined
  /** Called once, after the first pass that left nothing to find out. */
  onChecked?: (() => void) | undefined
  log: Logger
  signal: AbortSignal
}

interface Measured {
  /** Absent for a pod that was only seen: a new one is empty, and counting would take time from its start. */
  usage?: PodUsage
  atMs: number
  /** What the whole disk held then: no pod can have grown by more than it has since. */
  disk: Usage
}

interface Disk extends DiskState {
  used: Usage
  /** The data directory lies on the same disk. */
  isShared: boolean
}

const empty: PodUsage = { total: { bytes: 0, inodes: 0 }, parts: {}, tookMs: 0 }
const calmMs = 500
const busyMs = 100
/** Growth between two looks after which the next one comes sooner. */
const busyBytes = 16 * 2 ** 20
/** How long a look waits for what is being counted. Most pods take milliseconds, one with a million names a quarter of a minute. */
const countMs = 250

/** Watches the disk of the data directory and of the pods, and keeps the pods to their limits. */
export class DiskGuard {
  readonly #options: DiskGuardOptions
  readonly #measured = new Map<string, Measured>()
  /** Pods that are being counted; each settles when it is done, whatever came of it. */
  readonly #counting = new Map<string, Promise<void>>()
  #pressureSinceMs: number | undefined
  #used: Usage | undefined
  #problem: string | undefined
  #isChecked = false

  constructor(options: DiskGuardOptions) {
    this.#options = options
  }

  /** What is wrong with the data directory's disk, while something is. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Settles after `signal` has aborted and the last pass is over. */
  async run(): Promise<void> {
    const { signal, log, meter } = this.#options
    while (!signal.aborted) {
      const waitMs = await this.pass().catch((error: unknown) => {
        if (!signal.aborted) log.warn('disk not checked', { error })
        return calmMs
      })
      await sleep(waitMs, undefined, { signal }).catch(() => {}) // aborted: the loop ends by its condition
    }
    await meter.close()
  }

  /** One look at disk and pods, and what follows from it. Answers when the next one is due. */
  async pass(): Promise<number> {
    const disk = await this.#disk()
    const pods = this.#options.pods()
    for (const uid of this.#measured.keys()) if (!pods.some((pod) => pod.uid === uid)) this.#measured.delete(uid)
    for (const pod of pods) {
      // A pod may have written before it was first seen: it counts from the look before.
      if (!this.#measured.has(pod.uid)) this.#measured.set(pod.uid, { atMs: Date.now(), disk: this.#used ?? disk.used })
      if (!pod.isOver && this.#isDue(pod, disk)) this.#measure(pod, disk.used)
    }
    // What takes longer is decided about by a later look: the limits of other pods do not wait for it.
    await this.#counted(countMs)
    const nowMs = Date.now()
    const decision = planDisk({
      nowMs,
      disk,
      wasUnderPressure: this.#pressureSinceMs !== undefined,
      pods: pods.map((pod) => this.#facts(pod)),
    })
    this.#tell(decision.isUnderPressure, disk, nowMs)
    for (const action of decision.actions) await this.#perform(action, pods, disk)
    if (!this.#isChecked && this.#counting.size === 0 && !decision.actions.some(({ kind }) => kind === 'measure')) {
      this.#isChecked = true
      this.#options.onChecked?.()
    }
    const isBusy = decision.isUnderPressure || disk.used.bytes - (this.#used?.bytes ?? disk.used.bytes) > busyBytes
    this.#used = disk.used
    return isBusy ? busyMs : calmMs
  }

  async #disk(): Promise<Disk> {
    const { dataDir, reserve } = this.#options
    const { bavail, blocks, bfree, bsize, files, ffree } = await statfs(join(dataDir, 'pods'))
    const totalBytes = blocks * bsize
    const isShared = statSync(dataDir).dev === statSync(join(dataDir, 'pods')).dev
    // Some file systems make inodes as they need them and tell of none.
    const hasInodes = files > 0
    const reserveBytes = reserveSize(totalBytes)
    return {
      freeBytes: bavail * bsize,
      freeInodes: hasInodes ? ffree : Number.POSITIVE_INFINITY,
      lowBytes: reserveBytes,
      lowInodes: hasInodes ? Math.min(10_000, Math.max(128, files / 32)) : 0,
      reserveBytes,
      reserveInodes: hasInodes ? reserveInodes(files) : 0,
      hasReserve: !isShared || reserve.isThere(),
      used: { bytes: (blocks - bfree) * bsize, inodes: files - ffree },
      isShared,
    }
  }

  #isDue(pod: GuardedPod, disk: Disk): boolean {
    const last = this.#measured.get(pod.uid)
    if (!last) return true
    const usage = last.usage ?? empty
    return isMeasurementDue({
      sinceMs: Date.now() - last.atMs,
      tookMs: usage.tookMs,
      headroom: headroom(pod.limits, usage),
      grown: { bytes: disk.used.bytes - last.disk.bytes, inodes: disk.used.inodes - last.disk.inodes },
    })
  }

  /** Begins to count the pod, where that is not under way. */
  #measure({ uid, directory, hostUid, limits }: GuardedPod, disk: Usage): void {
    if (this.#counting.has(uid)) return
    const { meter, log, signal } = this.#options
    const atMs = Date.now()
    const request: MeasureRequest = {
      directory,
      enough: { bytes: 2 * limits.pod.bytes, inodes: 2 * limits.inodes },
      ...(hostUid === undefined ? {} : { hostUid }),
    }
    const counting = meter
      .measure(request)
      .then((usage) => {
        // Of a pod that is gone meanwhile the next look forgets it.
        this.#measured.set(uid, { usage, atMs, disk })
      })
      .catch((error: unknown) => {
        if (!signal.aborted) log.warn('a pod was not counted', { podUid: uid, error })
      })
      .finally(() => this.#counting.delete(uid))
    this.#counting.set(uid, counting)
  }

  /** Settles when all that is being counted is done, or the time is over. */
  async #counted(withinMs: number): Promise<void> {
    if (this.#counting.size === 0) return
    const over = new AbortController()
    const late = sleep(withinMs, undefined, { signal: over.signal }).catch(() => {}) // all were done before
    await Promise.race([Promise.all(this.#counting.values()), late])
    over.abort()
  }

  #facts(pod: GuardedPod): DiskPod {
    const { uid, containers, limits, halted, isOver, isCleared } = pod
    const measured = this.#measured.get(uid)
    const isFresh =
      measured?.usage !== undefined && measured.atMs >= (this.#pressureSinceMs ?? Number.POSITIVE_INFINITY)
    return { uid, containers, limits, halted, isOver, isCleared, isFresh, usage: measured?.usage }
  }

  async #perform(action: DiskAction, pods: readonly GuardedPod[], disk: Disk): Promise<void> {
    const { reserve, log } = this.#options
    const pod = 'uid' in action ? pods.find(({ uid }) => uid === action.uid) : undefined
    switch (action.kind) {
      case 'releaseReserve':
        log.warn('the reserve of the disk is used', { bytes: disk.reserveBytes })
        return reserve.release()
      case 'restoreReserve':
        return reserve.make(disk.reserveBytes, disk.reserveInodes)
      case 'measure':
        return pod && this.#measure(pod, disk.used)
      case 'halt':
        return pod?.halt(action.message)
      case 'evict':
        return pod?.evict(action.message)
      case 'clear':
        return pod?.clear()
    }
  }

  #tell(isUnderPressure: boolean, disk: Disk, nowMs: number): void {
    const { dataDir, onPressure, log } = this.#options
    if (isUnderPressure === (this.#pressureSinceMs !== undefined)) return
    this.#pressureSinceMs = isUnderPressure ? nowMs : undefined
    const free = `${Math.floor(disk.freeBytes / 2 ** 20)} MiB and ${disk.freeInodes} inodes left`
    this.#problem = isUnderPressure && disk.isShared ? `the disk of ${dataDir} is full (${free})` : undefined
    log.warn(isUnderPressure ? 'the disk is low' : 'the disk has room again', { freeBytes: disk.freeBytes })
    onPressure?.(this.#problem)
  }
}

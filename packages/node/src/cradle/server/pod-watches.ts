import { availableParallelism } from 'node:os'
import type { BrakeReason, OomReport, PodPlan, ResourceLimits } from '../../isolation/isolation.js'
import { type CellRecord, cellKeyText } from '../protocol/messages.js'
import type { CellRun } from './cell-run.js'
import type { Cgroup } from './cgroups.js'
import { CpuOrder } from './cpu-order.js'
import { Crowd } from './crowd.js'
import { crowdedFrom, ForkBrake } from './fork-brake.js'
import type { KeepApart } from './keep-apart.js'
import { isFull } from './launch-command.js'
import { type CountedCell, OomWatch } from './oom-watch.js'
import { type Holder, machineFiles, machineTerminals, openFilesOf, ScarceWatch, terminalsOf } from './scarce-watch.js'

export interface PodWatchesPorts {
  /** The cells there are, with their runs while they have one. */
  cells(): Iterable<WatchedCell>
  halt(cell: CellRecord): Promise<void>
  kill(cell: CellRecord): Promise<void>
  /** Undefined where the machine cannot keep pods to a part of its processors. */
  keepApart: KeepApart | undefined
  onOom(report: OomReport): void
  onBraked(podUid: string, reason: BrakeReason): void
  now(): Date
}

export interface WatchedCell {
  readonly record: CellRecord
  readonly run: CellRun | undefined
}

const oomLookMs = 500
const forkLookMs = 500
const scarceLookMs = 500
const cpuLookMs = 500
/** Far more than a container opens, and few enough that the others find some. */
const fairTerminals = 256
const fairFiles = 100_000

/** Watches pods for what one may take from all: memory (the kernel ends processes for it), processes, terminals, open files, CPU. */
export class PodWatches {
  readonly #ports: PodWatchesPorts
  readonly #oom: OomWatch
  readonly #brake: ForkBrake
  readonly #scarce: readonly ScarceWatch[]
  readonly #cpuOrder = new CpuOrder({ everyMs: cpuLookMs, nowMs: () => performance.now() })

  constructor(ports: PodWatchesPorts) {
    this.#ports = ports
    this.#oom = new OomWatch({
      cells: () => this.#counted(),
      onReport: (report) => ports.onOom(report),
      now: ports.now,
      everyMs: oomLookMs,
    })
    this.#brake = new ForkBrake({
      onBraked: (podUid, reason) => ports.onBraked(podUid, reason),
      everyMs: forkLookMs,
      atOnce: Math.max(4, 2 * availableParallelism()),
    })
    const scarce = [
      {
        reason: 'terminals',
        machine: machineTerminals,
        fair: fairTerminals,
        of: (run: CellRun) => terminalsOf(run.pid),
      },
      { reason: 'files', machine: machineFiles, fair: fairFiles, of: (run: CellRun) => openFilesOf(run.pids) },
    ] as const
    this.#scarce = scarce.map(
      ({ reason, machine, fair, of }) =>
        new ScarceWatch({
          holders: () => this.#holders(of),
          machine: () => machine(),
          fair,
          onEnded: (podUid) => ports.onBraked(podUid, reason),
          everyMs: scarceLookMs,
        }),
    )
  }

  /** What the kernel ended in the pods that are here. */
  get oomReports(): OomReport[] {
    return this.#oom.reports
  }

  /** Slows the pod down while it forks more than it may. */
  watchForks({ podUid, limits }: PodPlan, cgroup: Cgroup): void {
    const crowd = new Crowd(crowdedFrom)
    this.#brake.watch({
      podUid,
      look: () => ({
        refused: this.#refusedForks(podUid, cgroup),
        ...crowd.look(cgroup),
        isFull: isFull(cgroup.processCount(), limits.pids),
      }),
      takeTurn: async (running) => {
        await Promise.all(this.#runsOf(podUid).map((run) => run.takeTurn(running)))
      },
      freeze: () => cgroup.freeze(true),
      goOn: () => {
        cgroup.freeze(false)
        for (const run of this.#runsOf(podUid)) run.continueRest()
      },
    })
  }

  /** Puts the pod behind the others while it uses more CPU than it asked for, and beside them while it is busy in the kernel. */
  watchCpu(podUid: string, cgroup: Cgroup, limits: ResourceLimits): void {
    this.#cpuOrder.watch({
      podUid,
      requestMillis: limits.cpuWeightMillis ?? 0,
      used: () => cgroup.usedCpu(),
      setBehind: (isBehind) => cgroup.setIdle(isBehind, limits),
      setApart: (isApart) => this.#ports.keepApart?.set(cgroup, isApart),
    })
  }

  /** Back among the others, and no longer looked at: before its limits change, and before it ends. */
  forgetCpu(podUid: string): void {
    this.#cpuOrder.forget(podUid)
  }

  /**
   * Before a pod that is stopped for its forks is ended: its supervisors are asked to do that, which they cannot hear while
   * they are stopped, and among a thousand processes that fork they would hear it late. So those go first.
   */
  async unbrake(podUid: string): Promise<void> {
    const runs = this.#brake.isBraked(podUid) ? this.#runsOf(podUid) : []
    await Promise.all(runs.map((run) => run.halt()))
    this.#brake.ease(podUid)
  }

  /** The pod is about to end: its forks are no longer looked at. */
  forgetForks(podUid: string): void {
    this.#brake.forget(podUid)
  }

  /** The pod has ended. */
  forget(podUid: string, cellKeys: readonly string[]): void {
    this.#oom.forget(podUid, cellKeys)
    for (const watch of this.#scarce) watch.forget(cellKeys)
  }

  close(): void {
    this.#oom.close()
    this.#brake.close()
    for (const watch of this.#scarce) watch.close()
    this.#cpuOrder.close()
  }

  *#holders(count: (run: CellRun) => number): Generator<Holder> {
    for (const { record, run } of this.#ports.cells()) {
      if (!run) continue
      const halt = (): Promise<void> => this.#ports.halt(record)
      const kill = (): Promise<void> => this.#ports.kill(record)
      yield { podUid: record.podUid, key: cellKeyText(record), held: () => count(run), halt, kill }
    }
  }

  *#counted(): Generator<CountedCell> {
    for (const { record, run } of this.#ports.cells())
      if (run) yield { podUid: record.podUid, key: cellKeyText(record), oomKills: () => run.oomKills }
  }

  #runsOf(podUid: string): CellRun[] {
    return [...this.#ports.cells()].flatMap(({ record, run }) => (record.podUid === podUid && run ? run : []))
  }

  /** Which group counts a refusal, that of the cell or the one whose limit it is, differs between kernels. */
  #refusedForks(podUid: string, group: Cgroup): number {
    return this.#runsOf(podUid).reduce((sum, run) => sum + run.refusedForks, group.refusedForks())
  }
}

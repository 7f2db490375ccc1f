import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type {
  BrakeReason,
  CellExit,
  LaunchPlan,
  NetworkReport,
  OomReport,
  PodLimits,
  PodPlan,
  PodReach,
  SnapshotAttachment,
} from '../../isolation/isolation.js'
import { IsolationError } from '../../isolation/isolation-error.js'
import { socketPath } from '../client/socket-path.js'
import { ConnectionBudget, networkLimits, readOpenFilesLimit } from '../network/connection-budget.js'
import { NameLookup } from '../network/name-lookup.js'
import { PodNetwork, type PodNetworkPorts } from '../network/pod-network.js'
import { SpareNamespaces } from '../network/spare-namespaces.js'
import { type CellKey, type CellRecord, type CradleConfig, cellKeyText } from '../protocol/messages.js'
import { makeCellDirectories } from './cell-directories.js'
import { cellEnvironment } from './cell-files.js'
import { CellRun, spawnLauncher } from './cell-run.js'
import type { CellStrategy, LaunchInput } from './cell-strategy.js'
import type { Cgroup, CgroupSupport } from './cgroups.js'
import { ContainerLog } from './container-log.js'
import { HeldSnapshot } from './held-snapshot.js'
import type { KeepApart } from './keep-apart.js'
import { placedPlan } from './placed-plan.js'
import { PodWatches } from './pod-watches.js'
import { prepareLaunch } from './prepare-launch.js'
import { killUid } from './process-table.js'
import { discard, type Slot, Slots } from './slots.js'
import type { StateFiles } from './state-files.js'

export interface PodHostPorts {
  config: Pick<CradleConfig, 'supervisor'>
  strategy: CellStrategy
  cgroups: CgroupSupport
  keepApart: KeepApart | undefined
  stateFiles: StateFiles
  socketDirectory: string
  onExit(key: CellKey, exit: CellExit): void
  onNetwork(report: NetworkReport): void
  onOom(report: OomReport): void
  /** A pod has all the processes it may have, or few of them run at a time. */
  onBraked(podUid: string, reason: BrakeReason): void
  now(): Date
}

interface Pod {
  plan: PodPlan
  network: PodNetwork | undefined
  slot: Slot
  snapshot?: HeldSnapshot | undefined
}

interface Cell {
  record: CellRecord
  run: CellRun | undefined
  /** Settles after its end has been written down and announced. */
  recorded: Promise<void>
}

/** Everything the cradle holds: pods with their namespaces and cells with their runs. One launch per cell key, ever. */
export class PodHost {
  readonly #pods = new Map<string, Promise<Pod>>()
  readonly #cells = new Map<string, Cell>()
  readonly #launching = new Map<string, Promise<CellRecord>>()
  readonly #releasing = new Map<string, Promise<void>>()
  readonly #isRoot = process.getuid?.() === 0
  readonly #slots: Slots
  readonly #namespaces: SpareNamespaces
  readonly #network: PodNetworkPorts
  readonly #watches: PodWatches
  #sockets = 0

  constructor(private readonly ports: PodHostPorts) {
    const { config, cgroups, socketDirectory } = ports
    const launcherPath = config.supervisor.kind === 'native' ? config.supervisor.path : undefined
    this.#slots = new Slots({ cgroups, launcherPath, socketDirectory, spares: 2 })
    this.#namespaces = new SpareNamespaces({ supervisor: config.supervisor, spares: 2 })
    this.#network = {
      supervisor: config.supervisor,
      namespaces: this.#namespaces,
      budget: new ConnectionBudget(networkLimits(readOpenFilesLimit())),
      lookup: new NameLookup(),
      now: ports.now,
      onReport: (report) => ports.onNetwork(report),
    }
    this.#watches = new PodWatches({
      cells: () => this.#cells.values(),
      halt: (cell) => this.halt(cell),
      kill: (cell) => this.kill(cell),
      keepApart: ports.keepApart,
      onOom: (report) => ports.onOom(report),
      onBraked: (podUid, reason) => ports.onBraked(podUid, reason),
      now: ports.now,
    })
    for (const record of ports.stateFiles.cells())
      this.#cells.set(cellKeyText(record), { record, run: undefined, recorded: Promise.resolve() })
  }

  /** Safe to repeat: the second call waits for the first. */
  async preparePod(plan: PodPlan): Promise<void> {
    this.ports.strategy.checkPod(plan)
    const known = this.#pods.get(plan.podUid)
    const pod = known ?? this.#makePod(plan)
    this.#pods.set(plan.podUid, pod)
    try {
      await pod
    } catch (error) {
      if (this.#pods.get(plan.podUid) === pod) this.#pods.delete(plan.podUid)
      throw error
    }
  }

  /** One change at a time for a pod, in the order they were asked for. */
  async setNetwork(podUid: string, network: PodReach): Promise<{ restricted: boolean }> {
    const pod = await this.#pods.get(podUid)
    if (!pod) throw new IsolationError('PodNotPrepared', `pod ${podUid} has not been prepared`)
    await pod.network?.change(network)
    return { restricted: pod.network !== undefined }
  }

  /** See `Isolation.setLimits`. The cells' groups lie below the pod's: it grows before them. */
  async setLimits(podUid: string, limits: PodLimits): Promise<{ enforced: boolean }> {
    const pod = await this.#pods.get(podUid)
    if (!pod) throw new IsolationError('PodNotPrepared', `pod ${podUid} has not been prepared`)
    this.#watches.forgetCpu(podUid)
    pod.slot.cgroup.limit(limits.pod, { hasChildren: true })
    this.#watches.watchCpu(podUid, pod.slot.cgroup, limits.pod)
    for (const { record, run } of this.#cells.values())
      if (record.podUid === podUid) run?.limit(limits.containers[record.container] ?? {})
    return { enforced: this.ports.cgroups.limits === 'enforced' }
  }

  /** See `Isolation.attachSnapshot`. */
  async attachSnapshot(podUid: string, attachment: SnapshotAttachment): Promise<void> {
    const pod = await this.#pods.get(podUid)
    if (!pod) throw new IsolationError('PodNotPrepared', `pod ${podUid} has not been prepared`)
    const { strategy, config } = this.ports
    if (!strategy.hasMounts) throw new IsolationError('Unsupported', 'this isolation has no mounts of its own')
    const { hostUid } = pod.plan
    const userFd = pod.network?.userFd
    pod.snapshot ??= new HeldSnapshot({ supervisor: config.supervisor, attachment, hostUid, userFd })
    const held = pod.snapshot
    if (held.name !== attachment.name)
      throw new IsolationError('Invalid', `the pod has snapshot "${held.name}" until it ends`)
    try {
      await held.ready()
    } catch (error) {
      pod.snapshot = undefined
      throw error
    }
    // A launch that began before does not know of the snapshot; every later one attaches it itself.
    const launches = [...this.#launching].filter(([key]) => key.startsWith(`${podUid}/`)).map(([, launch]) => launch)
    await Promise.allSettled(launches)
    await Promise.all(this.#runsOf(podUid).map((run) => held.attach(run)))
  }

  /** Safe to repeat: the same attempt of the same container is launched once, and every caller gets that one. */
  async launch(plan: LaunchPlan): Promise<CellRecord> {
    const key = cellKeyText(plan)
    const known = this.#cells.get(key)
    if (known) return known.record
    const launching = this.#launching.get(key) ?? this.#launch(plan)
    this.#launching.set(key, launching)
    return await launching.finally(() => this.#launching.delete(key))
  }

  async #launch(plan: LaunchPlan): Promise<CellRecord> {
    const pod = await this.#pods.get(plan.podUid)
    if (!pod) throw new IsolationError('PodNotPrepared', `pod ${plan.podUid} has not been prepared`)
    const key = cellKeyText(plan)
    const { config, strategy, socketDirectory } = this.ports
    const directories = makeCellDirectories(pod.plan, plan, this.#isRoot)
    const placed = strategy.hasMounts ? placedPlan(plan, directories) : plan
    const ready = pod.slot.first
    pod.slot.first = undefined
    const cgroup = ready?.cgroup ?? pod.slot.cgroup.child(`${plan.container}-${plan.attempt}`)
    cgroup.create(plan.limits, { hasChildren: false })
    const socket = `c${process.pid.toString(36)}-${(this.#sockets++).toString(36)}`
    const input: LaunchInput = {
      supervisor: config.supervisor,
      pod: pod.plan,
      plan: placed,
      cgroupFiles: cgroup.joinFiles(),
      memoryEventsFile: cgroup.memoryEventsFile(),
      ...(pod.network ? { network: pod.network } : {}),
      socketDirectory,
      socketName: socket,
      ...directories,
      isRoot: this.#isRoot,
    }
    const seen = strategy.planInside(plan, pod.plan, directories)
    const cleanUp = (): void => {
      rmSync(join(socketDirectory, socket), { force: true })
      cgroup.remove()
    }
    let run: CellRun
    const { snapshot } = pod
    let launcher = ready?.launcher
    let prepared: Awaited<ReturnType<typeof prepareLaunch>> | undefined
    try {
      prepared = await prepareLaunch(input, strategy)
      launcher ??= spawnLauncher(prepared.command)
      run = await CellRun.start({
        launcher,
        description: prepared.command.description,
        spec: {
          tty: plan.tty,
          stdin: plan.stdin,
          workingDir: seen.workingDir,
          podIP: strategy.hasOwnNetwork ? pod.plan.podIP : '',
          env: cellEnvironment(seen, pod.plan),
          argv: seen.argv,
        },
        beforeMain:
          snapshot && ((launcher) => snapshot.attachBeforeMain(launcher, socketPath(socketDirectory, socket))),
        log: new ContainerLog(plan.logPath),
        cgroup,
        now: this.ports.now,
      })
    } catch (error) {
      // A launcher without a description, or a supervisor without a main process, would wait for it until the pod ends.
      launcher?.kill('SIGKILL')
      await cgroup.kill()
      cleanUp()
      throw error
    } finally {
      prepared?.release()
    }
    const record: CellRecord = {
      podUid: plan.podUid,
      container: plan.container,
      attempt: plan.attempt,
      startedAt: run.startedAt,
      socket,
      stdin: plan.stdin,
      tty: plan.tty,
      directory: pod.plan.directory,
    }
    const cell: Cell = { record, run, recorded: Promise.resolve() }
    this.#cells.set(key, cell)
    this.ports.stateFiles.writeCell(record)
    cell.recorded = this.#recordExit(cell, run, cgroup, cleanUp)
    return record
  }

  list(): CellRecord[] {
    return [...this.#cells.values()].map(({ record }) => record)
  }

  /** What was refused to the pods that are here. */
  async networkReports(): Promise<NetworkReport[]> {
    const pods = await Promise.all([...this.#pods.values()].map((pod) => pod.catch(() => undefined)))
    return pods.flatMap((pod) => pod?.network?.report ?? [])
  }

  /** What the kernel ended in the pods that are here. */
  oomReports(): OomReport[] {
    return this.#watches.oomReports
  }

  find(key: CellKey): CellRun | undefined {
    return this.#cells.get(cellKeyText(key))?.run
  }

  async kill(key: CellKey): Promise<void> {
    await this.#watches.unbrake(key.podUid)
    await this.find(key)?.kill()
  }

  async halt(key: CellKey): Promise<void> {
    await this.#watches.unbrake(key.podUid)
    await this.find(key)?.halt()
  }

  /** The main knows how this cell ended; nothing about it need be kept. */
  acknowledge(key: CellKey): void {
    const cell = this.#cells.get(cellKeyText(key))
    if (!cell?.record.exit) return
    this.#cells.delete(cellKeyText(key))
    this.ports.stateFiles.removeCell(key)
  }

  /** Absent is done; who asks while it is under way waits for the same end. */
  async releasePod(podUid: string): Promise<void> {
    const releasing = this.#releasing.get(podUid) ?? this.#release(podUid)
    this.#releasing.set(podUid, releasing)
    await releasing.finally(() => this.#releasing.delete(podUid))
  }

  async #release(podUid: string): Promise<void> {
    const pod = await this.#pods.get(podUid)?.catch(() => undefined)
    const cells = [...this.#cells.values()].filter(({ record }) => record.podUid === podUid)
    this.#watches.forgetCpu(podUid)
    await this.#watches.unbrake(podUid)
    this.#watches.forgetForks(podUid)
    await Promise.all(cells.map(async ({ run }) => await run?.kill()))
    if (pod) {
      await discard(pod.slot)
      if (this.#isRoot && pod.plan.hostUid !== 0) await killUid(pod.plan.hostUid)
    }
    await Promise.all(cells.map(({ recorded }) => recorded))
    await pod?.snapshot?.close()
    pod?.network?.close()
    pod?.slot.cgroup.remove()
    this.#pods.delete(podUid)
    for (const { record } of cells) this.#cells.delete(cellKeyText(record))
    this.#watches.forget(
      podUid,
      cells.map(({ record }) => cellKeyText(record)),
    )
    this.ports.stateFiles.removePod(podUid)
  }

  async releaseAll(): Promise<void> {
    const uids = new Set([...this.#pods.keys(), ...this.list().map(({ podUid }) => podUid)])
    await Promise.all([...uids].map((podUid) => this.releasePod(podUid)))
  }

  /** No more pods: ends everything, what was kept ready included. */
  async close(): Promise<void> {
    this.#namespaces.close()
    this.#watches.close()
    await Promise.all([this.releaseAll(), this.#slots.close()])
  }

  #runsOf(podUid: string): CellRun[] {
    return [...this.#cells.values()].flatMap(({ record, run }) => (record.podUid === podUid && run ? run : []))
  }

  async #makePod(plan: PodPlan): Promise<Pod> {
    const { strategy, stateFiles } = this.ports
    stateFiles.writePod(plan)
    const slot = this.#slots.take()
    slot.cgroup.create(plan.limits, { hasChildren: true })
    const warmUp = (pid: number): void => {
      if (!slot.first) slot.cgroup.warmUp(pid)
    }
    try {
      const network = strategy.hasOwnNetwork ? await PodNetwork.create(plan, this.#network, warmUp) : undefined
      this.#watches.watchForks(plan, slot.cgroup)
      this.#watches.watchCpu(plan.podUid, slot.cgroup, plan.limits)
      return { plan, network, slot }
    } catch (error) {
      await discard(slot)
      throw error
    }
  }

  async #recordExit(cell: Cell, run: CellRun, cgroup: Cgroup, cleanUp: () => void): Promise<void> {
    const exit = await run.exited
    await cgroup.kill()
    cleanUp()
    cell.record = { ...cell.record, exit }
    cell.run = undefined
    if (this.#cells.has(cellKeyText(cell.record))) this.ports.stateFiles.writeCell(cell.record)
    this.ports.onExit(cell.record, exit)
  }
}

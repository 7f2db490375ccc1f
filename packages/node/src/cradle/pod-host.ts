import { chmodSync, chownSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readHostLayout } from '../isolation/host-layout.js'
import type { CellExit, LaunchPlan, PodPlan } from '../isolation/isolation.js'
import { IsolationError } from '../isolation/isolation-error.js'
import { cellEnvironment, etcContents } from '../isolation/profile.js'
import { seccompProgram } from '../isolation/seccomp.js'
import { CellRun, spawnLauncher } from './cell-run.js'
import type { Cgroup, CgroupSupport } from './cgroups.js'
import { ContainerLog } from './container-log.js'
import type { Journal } from './journal.js'
import type { LaunchInput } from './launch-command.js'
import { PodNetwork } from './pod-network.js'
import { prepareLaunch } from './prepare-launch.js'
import { withHostPaths } from './process-paths.js'
import { killUid } from './process-table.js'
import { type CellKey, type CellRecord, type CradleConfig, cellKeyText } from './protocol.js'
import { discard, type Slot, Slots } from './slots.js'
import { SpareNamespaces } from './spare-namespaces.js'

export interface PodHostPorts {
  config: CradleConfig
  cgroups: CgroupSupport
  journal: Journal
  socketDirectory: string
  onExit(key: CellKey, exit: CellExit): void
  now(): Date
}

interface Pod {
  plan: PodPlan
  network: PodNetwork | undefined
  slot: Slot
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
  readonly #host = readHostLayout()
  readonly #isRoot = process.getuid?.() === 0
  readonly #seccompPath: string
  readonly #slots: Slots
  readonly #namespaces: SpareNamespaces
  #sockets = 0

  constructor(private readonly ports: PodHostPorts) {
    const { config, cgroups, socketDirectory } = ports
    const launcherPath = config.supervisor.kind === 'native' ? config.supervisor.path : undefined
    this.#slots = new Slots({ cgroups, launcherPath, socketDirectory, spares: 2 })
    this.#namespaces = new SpareNamespaces({ supervisor: config.supervisor, spares: 2 })
    this.#seccompPath = join(config.dataDir, 'cradle', 'seccomp.bpf')
    writeFileSync(this.#seccompPath, seccompProgram(process.arch === 'arm64' ? 'arm64' : 'x64'))
    for (const record of ports.journal.cells())
      this.#cells.set(cellKeyText(record), { record, run: undefined, recorded: Promise.resolve() })
  }

  /** Safe to repeat: the second call waits for the first. */
  async preparePod(plan: PodPlan): Promise<void> {
    if (this.#isRoot && this.ports.config.tier === 'bubblewrap' && plan.hostUid === 0) {
      throw new IsolationError('Forbidden', 'a pod must not run as host uid 0: it could write to /proc/sys')
    }
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
    const ready = pod.slot.first
    pod.slot.first = undefined
    const cgroup = ready?.cgroup ?? pod.slot.cgroup.child(`${plan.container}-${plan.attempt}`)
    cgroup.create(plan.limits, { hasChildren: false })
    const socket = `c${process.pid.toString(36)}-${(this.#sockets++).toString(36)}`
    const directories = this.#makeDirectories(pod.plan, plan)
    const { config, socketDirectory } = this.ports
    const input: LaunchInput = {
      config,
      pod: pod.plan,
      plan,
      host: this.#host,
      cgroupFiles: cgroup.joinFiles(),
      ...(pod.network ? { network: pod.network } : {}),
      socketDirectory,
      socketName: socket,
      ...directories,
      seccompPath: this.#seccompPath,
      isRoot: this.#isRoot,
    }
    const seen = config.tier === 'process' ? withHostPaths(plan, pod.plan, directories) : plan
    const cleanUp = (): void => {
      rmSync(join(socketDirectory, socket), { force: true })
      cgroup.remove()
    }
    let run: CellRun
    const prepared = await prepareLaunch(input)
    try {
      run = await CellRun.start({
        launcher: ready?.launcher ?? spawnLauncher(prepared.command),
        description: prepared.command.description,
        spec: {
          tty: plan.tty,
          stdin: plan.stdin,
          workingDir: seen.workingDir,
          // Without a network of its own the pod's address belongs to somebody else.
          podIP: config.tier === 'process' ? '' : pod.plan.podIP,
          env: cellEnvironment(seen, pod.plan),
          argv: seen.argv,
        },
        log: new ContainerLog(plan.logPath),
        cgroup,
        now: this.ports.now,
      })
    } catch (error) {
      cleanUp()
      throw error
    } finally {
      prepared.release()
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
    this.ports.journal.writeCell(record)
    cell.recorded = this.#recordExit(cell, run, cgroup, cleanUp)
    return record
  }

  list(): CellRecord[] {
    return [...this.#cells.values()].map(({ record }) => record)
  }

  find(key: CellKey): CellRun | undefined {
    return this.#cells.get(cellKeyText(key))?.run
  }

  async kill(key: CellKey): Promise<void> {
    await this.find(key)?.kill()
  }

  /** The main knows how this cell ended; nothing about it need be kept. */
  acknowledge(key: CellKey): void {
    const cell = this.#cells.get(cellKeyText(key))
    if (!cell?.record.exit) return
    this.#cells.delete(cellKeyText(key))
    this.ports.journal.removeCell(key)
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
    await Promise.all(cells.map(async ({ run }) => await run?.kill()))
    if (pod) {
      await discard(pod.slot)
      if (this.#isRoot && pod.plan.hostUid !== 0) await killUid(pod.plan.hostUid)
    }
    await Promise.all(cells.map(({ recorded }) => recorded))
    pod?.network?.close()
    pod?.slot.cgroup.remove()
    this.#pods.delete(podUid)
    for (const { record } of cells) this.#cells.delete(cellKeyText(record))
    this.ports.journal.removePod(podUid)
  }

  async releaseAll(): Promise<void> {
    const uids = new Set([...this.#pods.keys(), ...this.list().map(({ podUid }) => podUid)])
    await Promise.all([...uids].map((podUid) => this.releasePod(podUid)))
  }

  /** No more pods: ends everything, what was kept ready included. */
  async close(): Promise<void> {
    this.#namespaces.close()
    await Promise.all([this.releaseAll(), this.#slots.close()])
  }

  async #makePod(plan: PodPlan): Promise<Pod> {
    const { config, journal } = this.ports
    journal.writePod(plan)
    const slot = this.#slots.take()
    slot.cgroup.create(plan.limits, { hasChildren: true })
    const warmUp = (pid: number): void => {
      if (!slot.first) slot.cgroup.warmUp(pid)
    }
    try {
      const network =
        config.tier === 'bubblewrap'
          ? await PodNetwork.create(plan, config.supervisor, this.#namespaces, warmUp)
          : undefined
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
    if (this.#cells.has(cellKeyText(cell.record))) this.ports.journal.writeCell(cell.record)
    this.ports.onExit(cell.record, exit)
  }

  #makeDirectories(pod: PodPlan, plan: LaunchPlan): { etcDirectory: string; homeSource: string; tmpSource: string } {
    const etcDirectory = join(pod.directory, 'etc', plan.container)
    mkdirSync(etcDirectory, { recursive: true })
    for (const [name, text] of Object.entries(etcContents(pod, plan))) writeFileSync(join(etcDirectory, name), text)
    const own = { homeSource: join(pod.directory, 'home'), tmpSource: join(pod.directory, 'tmp') }
    for (const directory of Object.values(own)) {
      if (mkdirSync(directory, { recursive: true }) === undefined || !this.#isRoot) continue
      chownSync(directory, pod.hostUid, pod.hostUid)
    }
    chmodSync(own.tmpSource, 0o1777)
    return { etcDirectory, ...own }
  }
}

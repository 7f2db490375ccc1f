import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import type { ResourceLimits } from '../../isolation/isolation.js'
import { delay } from './delay.js'

/** One mounted hierarchy of control groups in which we may make our own. */
export interface Hierarchy {
  /** Our base directory in it; groups of pods are made below. */
  base: string
  version: 1 | 2
  /** The controllers it carries for us: memory, pids, cpu, cpuset. */
  controllers: readonly string[]
}

export interface CgroupSupport {
  hierarchies: readonly Hierarchy[]
  limits: 'enforced' | 'partial' | 'none'
}

interface Mount {
  path: string
  type: 'cgroup' | 'cgroup2'
  options: readonly string[]
}

/** The control group mounts of a machine, from the text of /proc/self/mounts. */
export function parseCgroupMounts(text: string): Mount[] {
  return text
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, , type]) => type === 'cgroup' || type === 'cgroup2')
    .map(([, path = '', type = '', options = '']) => ({
      path,
      type: type as Mount['type'],
      options: options.split(','),
    }))
}

/** Our own group in each hierarchy, from the text of /proc/self/cgroup: controller (or '' for version 2) to path. */
export function parseOwnCgroups(text: string): Map<string, string> {
  const own = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
    if (controllers === undefined || path === undefined) continue
    for (const controller of controllers.split(',')) own.set(controller, path)
  }
  return own
}

/** What limits need; version 2 also has `cpuset` at no cost for the start of a process. */
const wanted = ['memory', 'pids', 'cpu']
const wantedV2 = [...wanted, 'cpuset']

/**
 * Makes our base group wherever that is allowed: version 2 where the controllers are there, version 1 beside it as
 * root, and the bare version 2 tree of a hybrid machine for its kill file. Answers how much of the limits will hold.
 */
export function detectCgroups(name: string): CgroupSupport {
  const mounts = parseCgroupMounts(readText('/proc/self/mounts'))
  const own = parseOwnCgroups(readText('/proc/self/cgroup'))
  const hierarchies: Hierarchy[] = []
  for (const mount of mounts) {
    const found = mount.type === 'cgroup2' ? baseV2(mount.path, own.get('') ?? '/', name) : baseV1(mount, own, name)
    if (found) hierarchies.push(found)
  }
  const covered = new Set(hierarchies.flatMap(({ controllers }) => controllers))
  const count = wanted.filter((controller) => covered.has(controller)).length
  return { hierarchies, limits: count === wanted.length ? 'enforced' : count > 0 ? 'partial' : 'none' }
}

function baseV2(mount: string, own: string, name: string): Hierarchy | undefined {
  // The root group may have both processes and children with controllers; any other only one of the two.
  const parent = process.getuid?.() === 0 ? mount : join(mount, own)
  try {
    const available = readText(join(parent, 'cgroup.controllers')).trim().split(' ')
    const controllers = wantedV2.filter((controller) => available.includes(controller))
    if (controllers.length > 0 && !enableControllers(parent, controllers)) {
      moveProcesses(parent, join(parent, 'corral-host'))
      if (!enableControllers(parent, controllers)) return undefined
    }
    const base = join(parent, name)
    mkdirSync(base, { recursive: true })
    if (controllers.length > 0) enableControllers(base, controllers)
    return weighted({ base, version: 2, controllers })
  } catch {
    // Not ours to write: a container, or a session without delegation. Another hierarchy may do.
    return undefined
  }
}

function enableControllers(group: string, controllers: readonly string[]): boolean {
  return writeText(join(group, 'cgroup.subtree_control'), controllers.map((each) => `+${each}`).join(' '))
}

function moveProcesses(from: string, to: string): void {
  mkdirSync(to, { recursive: true })
  for (const pid of readText(join(from, 'cgroup.procs')).split('\n').filter(Boolean)) {
    writeText(join(to, 'cgroup.procs'), pid)
  }
}

function baseV1(mount: Mount, own: Map<string, string>, name: string): Hierarchy | undefined {
  const controllers = wanted.filter((controller) => mount.options.includes(controller))
  const first = controllers[0]
  if (first === undefined) return undefined
  const inside = join(mount.path, own.get(first) ?? '/')
  const base = join(existsSync(inside) ? inside : mount.path, name)
  try {
    mkdirSync(base, { recursive: true })
    return weighted({ base, version: 1, controllers })
  } catch {
    // Mounted read-only, or we are not root: the limits this hierarchy carries do not hold then.
    return undefined
  }
}

function weighted(hierarchy: Hierarchy): Hierarchy {
  for (const [file, value] of shareOfAll(hierarchy, availableParallelism()))
    writeText(join(hierarchy.base, file), value)
  return hierarchy
}

/**
 * What all pods together weigh against the machine's other processes: as much as one process on each processor, as the
 * kubelet gives its pods. By default it would be one process in all, and a pod that uses little would wait behind the
 * processes of a busy machine as soon as another pod uses much.
 */
export function shareOfAll(
  { version, controllers }: Pick<Hierarchy, 'version' | 'controllers'>,
  processors: number,
): [file: string, value: string][] {
  if (!controllers.includes('cpu')) return []
  if (version === 1) return [['cpu.shares', String(Math.min(262_144, 1024 * processors))]]
  return [['cpu.weight', String(Math.min(10_000, 100 * processors))]]
}

/** Processor time so far, and the part of it that passed in the kernel. */
export interface CpuUse {
  usedMs: number
  kernelMs: number
}

/** The group of a pod or of one of its cells: one directory per hierarchy. */
export class Cgroup {
  constructor(
    private readonly support: CgroupSupport,
    private readonly path: string,
  ) {}

  child(name: string): Cgroup {
    return new Cgroup(this.support, join(this.path, name))
  }

  /** Makes it and sets its limits. Safe to repeat. */
  create(limits: ResourceLimits, options: { hasChildren: boolean }): void {
    for (const hierarchy of this.support.hierarchies) {
      const directory = join(hierarchy.base, this.path)
      mkdirSync(directory, { recursive: true })
      for (const [file, value] of limitFiles(limits, hierarchy, options)) writeText(join(directory, file), value)
      if (hierarchy.version === 2 && options.hasChildren && hierarchy.controllers.length > 0) {
        enableControllers(directory, hierarchy.controllers)
      }
    }
  }

  /** Changes the limits of one that is in use, up or down. */
  limit(limits: ResourceLimits, options: { hasChildren: boolean }): void {
    for (const hierarchy of this.support.hierarchies) {
      const files = [...limitFiles(limits, hierarchy, options), ...liftedFiles(limits, hierarchy)]
      // Version 1 refuses a memory limit above the one on memory and swap: the second round sets what the first could not.
      for (const [file, value] of [...files, ...files]) writeText(join(hierarchy.base, this.path, file), value)
    }
  }

  /** The files a process writes itself into to join. */
  joinFiles(): string[] {
    return this.support.hierarchies.map(({ base }) => join(base, this.path, 'cgroup.procs'))
  }

  /**
   * Moving the first process after a pause waits for a grace period of the kernel, many milliseconds; further moves
   * right after it do not. Moving some process that is about to end anyway takes that wait out of a cell's start.
   */
  warmUp(pid: number): void {
    const old = this.support.hierarchies.find(({ version }) => version === 1)
    // Nothing depends on it: a process already gone just leaves the wait to the cell.
    if (old) void writeFile(join(old.base, this.path, 'cgroup.procs'), String(pid)).catch(() => undefined)
  }

  /** How often the kernel has killed a process here for want of memory. */
  oomKills(): number {
    const file = this.memoryEventsFile()
    return Number(/^oom_kill (\d+)$/m.exec(file === undefined ? '' : readText(file))?.[1] ?? 0)
  }

  /** Where the kernel counts them. */
  memoryEventsFile(): string | undefined {
    const counting = this.support.hierarchies.find(({ controllers }) => controllers.includes('memory'))
    const name = counting?.version === 2 ? 'memory.events' : 'memory.oom_control'
    return counting && join(counting.base, this.path, name)
  }

  /** How often the kernel has refused a process here, or below where it counts so. */
  refusedForks(): number {
    const counting = this.support.hierarchies.find(({ controllers }) => controllers.includes('pids'))
    if (!counting) return 0
    return Number(/^max (\d+)$/m.exec(readText(join(counting.base, this.path, 'pids.events')))?.[1] ?? 0)
  }

  /** How many processes and threads are in it and below; 0 where the kernel does not count them. */
  processCount(): number {
    const counting = this.support.hierarchies.find(({ controllers }) => controllers.includes('pids'))
    return counting ? Number(readText(join(counting.base, this.path, 'pids.current'))) : 0
  }

  /** Processor time of everything in it and below; `undefined` where the kernel has no such count for a group. */
  usedCpu(): CpuUse | undefined {
    const counting = this.support.hierarchies.find(({ version }) => version === 2)
    if (!counting) return undefined
    const text = readText(join(counting.base, this.path, 'cpu.stat'))
    const ms = (name: string): number => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]) / 1000
    const used = { usedMs: ms('usage_usec'), kernelMs: ms('system_usec') }
    return Number.isNaN(used.usedMs) || Number.isNaN(used.kernelMs) ? undefined : used
  }

  /** Keeps everything in it and below to some processors, or to none in particular; for a hierarchy that has `cpuset`. */
  setProcessors(processors: readonly number[] | undefined): void {
    const placing = this.support.hierarchies.find(({ controllers }) => controllers.includes('cpuset'))
    if (placing) writeText(join(placing.base, this.path, 'cpuset.cpus'), processors?.join(',') ?? '\n')
  }

  /** Whether its processes run only while those of its siblings do not. The kernel forgets the weight meanwhile. */
  setIdle(isIdle: boolean, weight: Pick<ResourceLimits, 'cpuWeightMillis'>): void {
    const weighing = this.support.hierarchies.find(({ controllers }) => controllers.includes('cpu'))
    if (!weighing) return
    const directory = join(weighing.base, this.path)
    writeText(join(directory, 'cpu.idle'), isIdle ? '1' : '0')
    if (isIdle) return
    for (const [file, value] of cpuWeightFiles(weight, weighing)) writeText(join(directory, file), value)
  }

  /** Ends every process in it and below, however fast they fork. Resolves when it is empty or after `timeoutMs`. */
  async kill(timeoutMs = 5000): Promise<boolean> {
    const deadline = Date.now() + timeoutMs
    for (;;) {
      const atOnce = this.support.hierarchies.some(
        ({ base, version }) => version === 2 && writeText(join(base, this.path, 'cgroup.kill'), '1'),
      )
      if (!atOnce) for (const pid of this.pids()) killQuietly(pid)
      if (this.pids().length === 0) return true
      if (Date.now() > deadline) return false
      await delay(2)
    }
  }

  /** Asks the kernel to stop every process in it and below, or to let them go on. Answers whether it can do that here. */
  freeze(isFrozen: boolean): boolean {
    return this.support.hierarchies.some(
      ({ base, version }) => version === 2 && writeText(join(base, this.path, 'cgroup.freeze'), isFrozen ? '1' : '0'),
    )
  }

  /** Whether all of them have stopped. */
  isFrozen(): boolean {
    return this.support.hierarchies.some(
      ({ base, version }) => version === 2 && /^frozen 1$/m.test(readText(join(base, this.path, 'cgroup.events'))),
    )
  }

  /** Every process in it and below. */
  pids(): number[] {
    const first = this.support.hierarchies[0]
    if (!first) return []
    return pidsBelow(join(first.base, this.path))
  }

  /** Removes it with its children. Absent is done; a process still there makes it answer false. */
  remove(): boolean {
    return this.support.hierarchies.map(({ base }) => removeTree(join(base, this.path))).every(Boolean)
  }

  /** The names of the groups directly below. */
  children(): string[] {
    const names = new Set<string>()
    for (const { base } of this.support.hierarchies) {
      for (const name of directoriesIn(join(base, this.path))) names.add(name)
    }
    return [...names]
  }
}

/**
 * What the sockets of a pod may hold. Version 2 counts that to the pod's memory. Version 1 counts it apart and only where
 * it has a limit: without one, what a pod sends to itself and does not read fills `net.ipv4.tcp_mem`, of which the machine
 * has one for all.
 */
const socketMemoryBytes = 128 << 20

/** Which files of a group a set of limits becomes. */
export function limitFiles(
  limits: ResourceLimits,
  hierarchy: Pick<Hierarchy, 'version' | 'controllers'>,
  options: { hasChildren: boolean },
): [file: string, value: string][] {
  const files: [string, string][] = []
  const { version, controllers } = hierarchy
  const { memoryBytes, cpuMillis, pids } = limits
  if (controllers.includes('memory') && version === 1) {
    const bytes = Math.min(socketMemoryBytes, memoryBytes ?? socketMemoryBytes)
    files.push(['memory.kmem.tcp.limit_in_bytes', String(bytes)])
  }
  if (controllers.includes('memory') && memoryBytes !== undefined) {
    if (version === 2) {
      files.push(['memory.max', String(memoryBytes)], ['memory.swap.max', '0'])
      if (!options.hasChildren) files.push(['memory.oom.group', '1'])
    } else {
      // A limit on memory and swap together may not lie below the one on memory, so the order matters.
      files.push(['memory.limit_in_bytes', String(memoryBytes)], ['memory.memsw.limit_in_bytes', String(memoryBytes)])
    }
  }
  if (controllers.includes('pids') && pids !== undefined) files.push(['pids.max', String(pids)])
  files.push(...cpuWeightFiles(limits, hierarchy))
  if (controllers.includes('cpu') && cpuMillis !== undefined) {
    const quotaMicros = Math.max(1000, cpuMillis * 100)
    if (version === 2) files.push(['cpu.max', `${quotaMicros} 100000`])
    else files.push(['cpu.cfs_period_us', '100000'], ['cpu.cfs_quota_us', String(quotaMicros)])
  }
  return files
}

/** As the kubelet converts a request into shares, and shares into a weight. */
function cpuWeightFiles(
  { cpuWeightMillis }: Pick<ResourceLimits, 'cpuWeightMillis'>,
  { version, controllers }: Pick<Hierarchy, 'version' | 'controllers'>,
): [file: string, value: string][] {
  if (!controllers.includes('cpu') || cpuWeightMillis === undefined) return []
  const shares = Math.min(262_144, Math.max(2, Math.floor((cpuWeightMillis * 1024) / 1000)))
  if (version === 1) return [['cpu.shares', String(shares)]]
  return [['cpu.weight', String(1 + Math.floor(((shares - 2) * 9999) / 262_142))]]
}

/** The files that lift the limits a set of limits does not have. */
function liftedFiles(
  { memoryBytes, cpuMillis }: ResourceLimits,
  { version, controllers }: Pick<Hierarchy, 'version' | 'controllers'>,
): [file: string, value: string][] {
  const files: [string, string][] = []
  if (controllers.includes('memory') && memoryBytes === undefined)
    files.push(
      ...((version === 2
        ? [['memory.max', 'max']]
        : [
            ['memory.memsw.limit_in_bytes', '-1'],
            ['memory.limit_in_bytes', '-1'],
          ]) as [string, string][]),
    )
  if (controllers.includes('cpu') && cpuMillis === undefined)
    files.push(version === 2 ? ['cpu.max', 'max 100000'] : ['cpu.cfs_quota_us', '-1'])
  return files
}

function pidsBelow(directory: string): number[] {
  const here = readText(join(directory, 'cgroup.procs')).split('\n').filter(Boolean).map(Number)
  return [...here, ...directoriesIn(directory).flatMap((name) => pidsBelow(join(directory, name)))]
}

function removeTree(directory: string): boolean {
  for (const name of directoriesIn(directory)) removeTree(join(directory, name))
  try {
    rmdirSync(directory)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
  return true
}

function directoriesIn(directory: string): string[] {
  if (!existsSync(dirname(directory))) return []
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
  } catch {
    // It went away in between: nothing is below it any more.
    return []
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // Already gone, which is what we want.
  }
}

export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // A group that is gone has no processes and no events.
    return ''
  }
}

export function writeText(path: string, text: string): boolean {
  try {
    writeFileSync(path, text)
    return true
  } catch {
    // The kernel does not offer this file (swap accounting, say); the caller knows what else holds.
    return false
  }
}

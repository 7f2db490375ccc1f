import { readdirSync, readFileSync } from 'node:fs'
import type { Cgroup } from './cgroups.js'
import { delay } from './delay.js'

/** A living process as /proc tells of it. */
export interface ProcessEntry {
  pid: number
  parent: number
  /** Its own number in every pid namespace it is in, the outermost first. */
  namespacePids: readonly number[]
  /** By a signal. */
  isStopped?: boolean
}

/**
 * The processes below `launcher` that are not the container itself: all but its main process, of which `main` is the
 * number in its own pid namespace, and what lies between it and the launcher (the supervisor, and with the Node one the
 * shell that is the cell's first process). Pure.
 */
export function sideProcesses(launcher: number, main: number, table: readonly ProcessEntry[]): number[] {
  const childrenOf = (pid: number): ProcessEntry[] => table.filter(({ parent }) => parent === pid)
  const below = (pid: number): ProcessEntry[] => childrenOf(pid).flatMap((child) => [child, ...below(child.pid)])
  const all = below(launcher)
  const kept = new Set<number>()
  for (let each = all.find(({ namespacePids }) => namespacePids.at(-1) === main); each; each = parentIn(all, each))
    kept.add(each.pid)
  return all.map(({ pid }) => pid).filter((pid) => !kept.has(pid))
}

const parentIn = (table: readonly ProcessEntry[], { parent }: ProcessEntry): ProcessEntry | undefined =>
  table.find(({ pid }) => pid === parent)

/** The process a cell's mounts belong to, and when it began; undefined once the cell has ended. */
export function supervisorOf(launcher: number): { pid: number; startTime: string } | undefined {
  const depth = readProcess(launcher)?.namespacePids.length ?? Number.MAX_SAFE_INTEGER
  const waiting = [launcher]
  for (let pid = waiting.shift(); pid !== undefined; pid = waiting.shift()) {
    const found = readProcess(pid)
    const startTime = found && startTimeOf(pid)
    if (found && startTime && found.namespacePids.length > depth && found.namespacePids.at(-1) === 1)
      return { pid, startTime }
    waiting.push(...childrenOf(pid))
  }
  return undefined
}

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  } catch {
    // The process has ended, or the kernel keeps no such list.
    return readProcesses().flatMap((entry) => (entry.parent === pid ? entry.pid : []))
  }
}

function startTimeOf(pid: number): string | undefined {
  try {
    // Fields are counted behind the command's name, which may hold anything.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[19]
  } catch {
    return undefined
  }
}

const timeoutMs = 2_000
const freezeMs = 200

/**
 * Ends them, however fast they fork. Where the kernel can freeze a group nothing moves between the look and the signal, and
 * once is enough: what the main process starts afterwards is left alone. Else it is repeated until none is left, for at
 * most two seconds; what survives that goes with the pod.
 */
export async function killSideProcesses(launcher: number, main: number, cgroup: Cgroup): Promise<void> {
  const deadline = Date.now() + timeoutMs
  const killAll = (): number => {
    const found = sideProcesses(launcher, main, readProcesses())
    for (const pid of found) signalQuietly(pid, 'SIGKILL')
    return found.length
  }
  try {
    if (await isFrozen(cgroup)) {
      killAll()
      return
    }
  } finally {
    cgroup.freeze(false)
  }
  while (killAll() > 0 && Date.now() < deadline) await delay(5)
}

/**
 * Processes that run a few at a time, by signals: all but the container itself, and but those that something else has
 * stopped. The main process goes on, so that it answers its clients and can end what it started.
 */
export class ProcessTurns {
  readonly #stopped = new Set<number>()
  /** The turn in which each of them has run last. */
  #lastRun = new Map<number, number>()
  #turn = 0

  private constructor(
    private readonly kept: ReadonlySet<number>,
    private readonly cgroup: Cgroup,
  ) {}

  static async begin(launcher: number, main: number, cgroup: Cgroup): Promise<ProcessTurns> {
    try {
      await isFrozen(cgroup)
      const table = readProcesses()
      const side = new Set(sideProcesses(launcher, main, table))
      const stopped = table.flatMap(({ pid, isStopped }) => (isStopped ? pid : []))
      return new ProcessTurns(new Set([...stopped, ...cgroup.pids().filter((pid) => !side.has(pid))]), cgroup)
    } finally {
      cgroup.freeze(false)
    }
  }

  /** Lets so many run, those that have waited longest, and stops the rest. */
  next(running: number): void {
    const pids = this.cgroup.pids().filter((pid) => !this.kept.has(pid))
    this.#turn += 1
    // What is new has run since the last turn.
    this.#lastRun = new Map(pids.map((pid) => [pid, this.#lastRun.get(pid) ?? this.#turn - 1]))
    const chosen = new Set(
      [...this.#lastRun]
        .sort((a, b) => a[1] - b[1] || a[0] - b[0])
        .slice(0, running)
        .map(([pid]) => pid),
    )
    for (const pid of pids) if (!chosen.has(pid)) this.#stop(pid)
    for (const pid of chosen) this.#continue(pid)
  }

  /** Lets those of them go on that are still in the group: another process may have the number by now. */
  end(): void {
    if (this.#stopped.size === 0) return
    const present = new Set(this.cgroup.pids())
    for (const pid of [...this.#stopped]) if (present.has(pid)) this.#continue(pid)
    this.#stopped.clear()
  }

  /** Again and again: another process of the pod may have woken it. */
  #stop(pid: number): void {
    this.#stopped.add(pid)
    signalQuietly(pid, 'SIGSTOP')
  }

  #continue(pid: number): void {
    this.#lastRun.set(pid, this.#turn)
    if (this.#stopped.delete(pid)) signalQuietly(pid, 'SIGCONT')
  }
}

async function isFrozen(cgroup: Cgroup): Promise<boolean> {
  if (!cgroup.freeze(true)) return false
  const deadline = Date.now() + freezeMs
  while (!cgroup.isFrozen() && Date.now() < deadline) await delay(1)
  return cgroup.isFrozen()
}

function readProcesses(): ProcessEntry[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readProcess(Number(name)) ?? [])
}

function readProcess(pid: number): ProcessEntry | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch {
    return undefined // It has ended.
  }
  if (/^State:\s+[ZX]/m.test(text)) return undefined
  const field = (name: string): string => new RegExp(`^${name}:\\s+(.*)$`, 'm').exec(text)?.[1] ?? ''
  const namespacePids = field('NSpid').split(/\s+/).map(Number)
  const isStopped = field('State').startsWith('T')
  return { pid, parent: Number(field('PPid')), namespacePids: namespacePids[0] ? namespacePids : [pid], isStopped }
}

function signalQuietly(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It ended between the look and the signal.
  }
}

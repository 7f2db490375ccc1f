import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

export interface ProcessFact {
  readonly pid: number
  readonly parent: number
  /** With the pid it tells a process from a later one of the same number. */
  readonly startedAt: string
  readonly command: string
  /** Whether it has the run's mark in its environment. */
  readonly isMarked: boolean
}

/** What a machine has at one moment, as far as a run may leave it behind. */
export interface Snapshot {
  readonly processes: readonly ProcessFact[]
  readonly mounts: readonly string[]
  readonly controlGroups: readonly string[]
}

/** Programs that work for us and are started without the run's environment. */
const ours = /^(corral[-\w]*|bwrap|kubectl[.\d]*|etcd|kube-[a-z-]+|kubelet|agent-sandbox-controller|go-client)$/

/**
 * What is there after a run and was not before, one line each. Of a process it has to be certain that the run started
 * it: it carries the mark, or it is one of our programs whose parents are gone. A control group that a
 * process of another run names or is a member of belongs to that run.
 */
export function whatIsLeft(before: Snapshot, after: Snapshot): string[] {
  const known = new Set(before.processes.map(identity))
  const byPid = new Map(after.processes.map((each) => [each.pid, each]))
  const left = after.processes.filter((each) => !known.has(identity(each)) && (each.isMarked || isOrphan(each, byPid)))
  const others = after.processes.filter((each) => !left.includes(each))
  const groups = news(before.controlGroups, after.controlGroups)
  return [
    ...left.map(({ pid, command }) => `process ${pid}: ${command}`),
    ...news(before.mounts, after.mounts).map((path) => `mount: ${path}`),
    ...groups
      .filter((path) => !others.some(({ command }) => command.includes(basename(path))))
      .map((path) => `control group: ${path}`),
  ]
}

const identity = ({ pid, startedAt }: ProcessFact): string => `${pid} ${startedAt}`

const news = (before: readonly string[], after: readonly string[]): string[] =>
  after.filter((each) => !before.includes(each))

const programOf = ({ command }: ProcessFact): string => basename(command.split(' ')[0] ?? '')

/** Whether every process between one of ours and the first process of the machine is ours too. */
function isOrphan(process: ProcessFact, byPid: ReadonlyMap<number, ProcessFact>): boolean {
  if (!ours.test(programOf(process))) return false
  const parent = byPid.get(process.parent)
  return process.parent <= 1 || (parent !== undefined && isOrphan(parent, byPid))
}

export interface MachinePaths {
  readonly proc: string
  readonly controlGroups: string
  readonly temporary: string
}

/** Looks at the machine. What ends while it looks is left out. */
export function takeSnapshot({ proc, controlGroups, temporary }: MachinePaths, mark: string): Snapshot {
  const pids = readdirSync(proc).filter((name) => /^\d+$/.test(name))
  const mounts = textOf(join(proc, 'self/mountinfo')).split('\n')
  return {
    processes: pids.flatMap((pid) => processAt(join(proc, pid), mark)),
    mounts: mounts.flatMap((line) => line.split(' ')[4] ?? []).filter((path) => path.startsWith(`${temporary}/`)),
    controlGroups: groupsIn(controlGroups),
  }
}

function processAt(directory: string, mark: string): ProcessFact[] {
  // The name may hold spaces and brackets; what follows the last bracket does not.
  const stat = textOf(join(directory, 'stat'))
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state, parent, startedAt] = [fields[0], Number(fields[1]), fields[19]]
  const command = textOf(join(directory, 'cmdline')).replaceAll('\0', ' ').trim()
  if (!state || state === 'Z' || startedAt === undefined || command === '') return []
  const isMarked = mark !== '' && textOf(join(directory, 'environ')).includes(mark)
  return [{ pid: Number(basename(directory)), parent, startedAt, command, isMarked }]
}

/** Groups of ours in the one hierarchy of version 2 or in those of version 1. */
function groupsIn(root: string): string[] {
  const names = directoriesIn(root)
  const hierarchies = [root, ...names.map((name) => join(root, name))]
  return hierarchies.flatMap((path) =>
    directoriesIn(path)
      .filter((name) => name.startsWith('corral-'))
      .map((name) => join(path, name)),
  )
}

function directoriesIn(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
  } catch {
    return [] // Gone, or not there on this machine.
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return '' // A process that has ended, or one of another user.
  }
}

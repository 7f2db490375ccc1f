import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Processes that name this directory in their command line, environment or working directory. */
export function processesOf(directory: string): { pid: number; command: string }[] {
  const found: { pid: number; command: string }[] = []
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue
    const command = readProc(name, 'cmdline').replaceAll('\0', ' ').trim()
    const mentions =
      command.includes(directory) ||
      readProc(name, 'environ').includes(directory) ||
      readCwd(name).startsWith(directory)
    if (mentions) found.push({ pid: Number(name), command })
  }
  return found
}

/** What a platform left on the machine: processes, mounts, control groups and sockets that belong to its directory. */
export function leftoversOf(directory: string, since: HostSnapshot): string[] {
  const now = hostSnapshot()
  const added = (kind: keyof HostSnapshot): string[] => [...now[kind]].filter((entry) => !since[kind].has(entry))
  const mine = (entry: string): boolean => entry.includes(directory) || entry.includes(lockName(directory))
  return [
    ...processesOf(directory).map(({ pid, command }) => `process ${pid}: ${command}`),
    ...added('mounts').filter(mine),
    ...added('sockets').filter(mine),
    ...[...now.cgroups].filter((entry) => entry.includes(cgroupName(directory))),
  ]
}

export interface HostSnapshot {
  mounts: Set<string>
  sockets: Set<string>
  cgroups: Set<string>
}

export function hostSnapshot(): HostSnapshot {
  return {
    mounts: new Set(readFileSync('/proc/self/mountinfo', 'utf8').split('\n')),
    sockets: new Set(
      readFileSync('/proc/net/unix', 'utf8')
        .split('\n')
        .map((line) => line.split(' ').at(-1) ?? ''),
    ),
    cgroups: new Set(corralGroups('/sys/fs/cgroup', 4)),
  }
}

/** Pids of every process whose real user is one of the sandboxes'. */
export function sandboxProcesses(directory: string): number[] {
  const group = cgroupName(directory)
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && readProc(name, 'cgroup').includes(group))
    .map(Number)
}

/** Pids of the daemons in the sandboxes of a platform. One for each sandbox that runs; helpers come and go beside them. */
export function sandboxDaemons(directory: string): number[] {
  return sandboxProcesses(directory).filter((pid) => readProc(String(pid), 'comm').trim() === 'corral-daemon')
}

function corralGroups(directory: string, depth: number): string[] {
  if (depth === 0) return []
  let names: string[]
  try {
    names = readdirSync(directory)
  } catch {
    // No control groups here, or a group that went meanwhile.
    return []
  }
  return names.flatMap((name) => {
    const path = join(directory, name)
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return []
    return name.startsWith('corral-') ? [path] : corralGroups(path, depth - 1)
  })
}

function cgroupName(directory: string): string {
  return `corral-${createHash('sha256').update(directory).digest('hex').slice(0, 10)}`
}

function lockName(directory: string): string {
  return `corral-${createHash('sha256').update(directory).digest('hex').slice(0, 32)}`
}

function readProc(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch {
    // It ended, or belongs to another user.
    return ''
  }
}

function readCwd(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    // It ended.
    return ''
  }
}

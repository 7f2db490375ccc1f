import { existsSync, readdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

const cgroups = '/sys/fs/cgroup'
/** containerd names the cgroup of a container after its id. */
const isContainer = (name: string): boolean => /^[0-9a-f]{64}$/.test(name) || name === 'k8s.io' || name === 'kubepods'

/** Every cgroup of containers that exists now. */
export function snapshotCgroups(): ReadonlySet<string> {
  return new Set(containerCgroups())
}

function containerCgroups(): string[] {
  const hierarchies = [cgroups, ...directories(cgroups)]
  return hierarchies.flatMap((parent) =>
    directories(parent).filter((path) => isContainer(path.split('/').at(-1) ?? '')),
  )
}

/** Removes the cgroups that came since; the kernel takes a moment to let go of processes that were killed. */
export async function removeCgroups(before: ReadonlySet<string>): Promise<void> {
  const deadlineMs = Date.now() + 5_000
  for (;;) {
    for (const path of cgroupsLeft(before)) remove(path)
    if (cgroupsLeft(before).length === 0 || Date.now() > deadlineMs) return
    await pause(50)
  }
}

export function cgroupsLeft(before: ReadonlySet<string>): string[] {
  return containerCgroups().filter((path) => !before.has(path))
}

function remove(path: string): void {
  try {
    for (const below of directories(path)) remove(below)
    rmdirSync(path)
  } catch {
    // still busy: the caller looks again
  }
}

/** What of a node is still to be seen on this machine: processes, mounts, its bridge, named network namespaces. */
export function hostTraces(directory: string, bridge: string): string[] {
  const traces: string[] = []
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const command = readQuietly(`/proc/${pid}/cmdline`)
    if (command.includes(directory)) traces.push(`process ${pid}: ${command.replaceAll('\0', ' ').slice(0, 120)}`)
  }
  for (const line of readQuietly('/proc/self/mountinfo').split('\n'))
    if (line.includes(directory)) traces.push(`mount ${line.split(' ')[4]}`)
  if (existsSync(`/sys/class/net/${bridge}`)) traces.push(`interface ${bridge}`)
  if (existsSync('/run/netns'))
    for (const name of readdirSync('/run/netns').filter((entry) => entry.startsWith('cni-')))
      traces.push(`network namespace ${name}`)
  if (existsSync(directory)) traces.push(`directory ${directory}`)
  return traces
}

function readQuietly(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return '' // a process that ended meanwhile
  }
}

function directories(parent: string): string[] {
  try {
    return readdirSync(parent, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(parent, entry.name))
  } catch {
    return []
  }
}

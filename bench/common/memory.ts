import { readdirSync, readFileSync } from 'node:fs'

/** Proportional set size of one process in MB (10^6 bytes): shared pages count by share. 0 for one that is gone. */
export function pssMb(pid: number): number {
  const rollup = readProc(`/proc/${pid}/smaps_rollup`)
  const kib = Number(/^Pss:\s+(\d+) kB/m.exec(rollup ?? '')?.[1] ?? 0)
  return (kib * 1024) / 1e6
}

/** The process and everything below it. */
export function processTree(root: number): number[] {
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const stat = readProc(`/proc/${name}/stat`)
    // The name in parentheses may hold anything; what follows the last one is regular.
    const parent = Number(stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[1] ?? Number.NaN)
    children.set(parent, [...(children.get(parent) ?? []), Number(name)])
  }
  const found = [root]
  for (let at = 0; at < found.length; at += 1) found.push(...(children.get(found[at] ?? 0) ?? []))
  return found
}

/** Every process whose command line or environment names `text`; how sandboxes of one data directory are found. */
export function processesNaming(text: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => readProc(`/proc/${name}/cmdline`)?.includes(text))
    .map(Number)
}

/** Processor time a process has used so far, in seconds. */
export function cpuSeconds(pid: number): number {
  const fields = statFields(pid)
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / ticksPerSecond
}

/** How long ago a process was started, to a hundredth of a second. */
export function ageMs(pid: number): number {
  const uptimeSeconds = Number(readProc('/proc/uptime')?.split(' ')[0])
  return (uptimeSeconds - Number(statFields(pid)[19]) / ticksPerSecond) * 1000
}

/** Fixed on every Linux that Node runs on. */
const ticksPerSecond = 100

/** The fields of /proc/<pid>/stat from `state` on. */
function statFields(pid: number): string[] {
  const stat = readProc(`/proc/${pid}/stat`) ?? ''
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined // processes come and go
  }
}

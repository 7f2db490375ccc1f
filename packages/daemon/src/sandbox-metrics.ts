import { readdir, readFile, statfs } from 'node:fs/promises'
import type { SandboxMetricsRecord } from '@corral/protocol'

const clockTicksPerSecond = 100
const cgroup = '/sys/fs/cgroup'

/** What the sandbox uses: from its cgroup where it sees its own, else added up over its processes. */
export async function sandboxMetrics(disk: string): Promise<SandboxMetricsRecord> {
  const [processes, own, network, space, uptime] = await Promise.all([
    processUsage(),
    cgroupUsage(),
    networkUsage(),
    statfs(disk),
    text('/proc/1/stat'),
  ])
  const startTicks = Number(afterName(uptime)[19] ?? 0)
  const sinceBootSeconds = Number((await text('/proc/uptime')).split(' ')[0] ?? 0)
  return {
    cpu_usage_seconds: own.cpuSeconds ?? processes.cpuSeconds,
    memory_usage_bytes: own.memoryBytes ?? processes.memoryBytes,
    ...(own.memoryLimitBytes === undefined ? {} : { memory_limit_bytes: own.memoryLimitBytes }),
    disk_usage_bytes: (space.blocks - space.bfree) * space.bsize,
    disk_total_bytes: space.blocks * space.bsize,
    network_received_bytes: network.received,
    network_sent_bytes: network.sent,
    uptime_seconds: Math.max(0, sinceBootSeconds - startTicks / clockTicksPerSecond),
    processes: processes.count,
  }
}

async function cgroupUsage(): Promise<{ cpuSeconds?: number; memoryBytes?: number; memoryLimitBytes?: number }> {
  // The root cgroup has no memory.current: what is read there belongs to the machine, not to us.
  const memory = Number((await text(`${cgroup}/memory.current`)) || Number.NaN)
  if (!Number.isSafeInteger(memory)) return {}
  const cpu = /usage_usec (\d+)/.exec(await text(`${cgroup}/cpu.stat`))?.[1]
  const limit = Number(await text(`${cgroup}/memory.max`))
  return {
    memoryBytes: memory,
    ...(cpu === undefined ? {} : { cpuSeconds: Number(cpu) / 1e6 }),
    ...(Number.isSafeInteger(limit) && limit > 0 ? { memoryLimitBytes: limit } : {}),
  }
}

async function processUsage(): Promise<{ cpuSeconds: number; memoryBytes: number; count: number }> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  let ticks = 0
  let pages = 0
  let count = 0
  for (const pid of pids) {
    const fields = afterName(await text(`/proc/${pid}/stat`))
    if (fields.length < 22) continue
    count += 1
    // utime, stime, and those of children that were waited for.
    for (const index of [11, 12, 13, 14]) ticks += Number(fields[index])
    pages += Number(fields[21])
  }
  return { cpuSeconds: ticks / clockTicksPerSecond, memoryBytes: Math.max(0, pages) * 4096, count }
}

async function networkUsage(): Promise<{ received: number; sent: number }> {
  let received = 0
  let sent = 0
  for (const line of (await text('/proc/net/dev')).split('\n').slice(2)) {
    const [name, counters] = line.split(':')
    const fields = counters?.trim().split(/\s+/)
    if (!fields || name?.trim() === 'lo') continue
    received += Number(fields[0])
    sent += Number(fields[8])
  }
  return { received, sent }
}

/** The fields after the command's name, which may hold spaces and brackets itself. */
function afterName(stat: string): string[] {
  return stat
    .slice(stat.lastIndexOf(')') + 2)
    .trim()
    .split(' ')
}

async function text(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '')
}

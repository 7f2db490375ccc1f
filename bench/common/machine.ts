import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism, loadavg, totalmem } from 'node:os'

/** What a reader needs to judge figures, and nothing that tells whose machine it was. */
export interface MachineFacts {
  cores: number
  memoryGiB: number
  platform: string
  node: string
}

export function machineFacts(): MachineFacts {
  return {
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    platform: `${process.platform} ${process.arch}`,
    node: process.versions.node,
  }
}

/** How busy the machine is with everything on it: load averages, and processes that run or want to. */
export interface LoadReading {
  loadAverage: readonly number[]
  runnable: number
}

export function readLoad(): LoadReading {
  const loadAverage = loadavg().map((value) => Math.round(value * 100) / 100)
  const runnable = Number(readProc('/proc/loadavg')?.split(' ')[3]?.split('/')[0] ?? Number.NaN)
  return { loadAverage, runnable }
}

/** The commit the figures belong to, with `+` where the tree differs from it. */
export function commitUnderTest(): string {
  try {
    const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
    const changes = execFileSync('git', ['status', '--porcelain', '--', 'packages'], { encoding: 'utf8' })
    return changes.trim() === '' ? commit : `${commit}+`
  } catch {
    return 'unknown' // an unpacked archive has no history
  }
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined // no such file outside Linux
  }
}

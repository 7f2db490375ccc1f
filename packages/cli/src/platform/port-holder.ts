import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { CliError } from '../cli-error.js'

/** A port that is taken, with what holds it where that can be seen; other errors as they are. */
export function explainPort(error: unknown, port: number, flag: string): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (port === 0) return error
  if (code === 'EACCES')
    return new CliError(`port ${port} is for root only`, { exitCode: 3, hint: `Choose one above 1023 with ${flag}.` })
  if (code !== 'EADDRINUSE') return error
  const holder = portHolder(port)
  const who = holder ? ` by process ${holder.pid} (${holder.program})` : ' by another program'
  return new CliError(`port ${port} is taken${who}`, {
    exitCode: 3,
    hint: `Choose another with ${flag}, or leave it out to take a free one.`,
    cause: error,
  })
}

const listening = '0A'

/** The process that listens on a TCP port; undefined where the system does not tell. Linux only. */
export function portHolder(port: number): { pid: number; program: string } | undefined {
  try {
    const inodes = new Set(['tcp', 'tcp6'].flatMap((table) => listenersIn(`/proc/net/${table}`, port)))
    if (inodes.size === 0) return undefined
    for (const entry of readdirSync('/proc')) {
      if (/^\d+$/.test(entry) && holdsSocket(entry, inodes))
        return { pid: Number(entry), program: readFileSync(`/proc/${entry}/comm`, 'utf8').trim() }
    }
  } catch {
    // No /proc, or one that hides other users' processes.
  }
  return undefined
}

function listenersIn(path: string, port: number): string[] {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0')
  return readFileSync(path, 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[1]?.endsWith(`:${wanted}`) && fields[3] === listening)
    .flatMap((fields) => fields[9] ?? [])
}

function holdsSocket(pid: string, inodes: ReadonlySet<string>): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      const target = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1]
      return target !== undefined && inodes.has(target)
    })
  } catch {
    // It ended, or is another user's.
    return false
  }
}

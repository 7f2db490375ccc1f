import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { OracleError } from './oracle-error.js'

/** A program that runs until it is stopped. Its output goes to a file, its end is noticed. */
export interface Program {
  readonly name: string
  readonly pid: number
  /** Undefined while it runs; why it is gone afterwards. */
  ending(): string | undefined
  /** The last lines it wrote. */
  tail(): string
  /** SIGTERM, and SIGKILL when that was not enough. Settles once the process is gone. */
  stop(): Promise<void>
}

const termMs = 30_000

export interface ProgramOptions {
  name: string
  path: string
  args: readonly string[]
  logFile: string
  env?: NodeJS.ProcessEnv
}

/**
 * Starts a program in its own process group. However this process ends, kill -9 included, the program ends with it: a
 * watcher outside our group waits for the end of a pipe that only we hold open.
 */
export function startProgram({ name, path, args, logFile, env }: ProgramOptions): Program {
  const log = openSync(logFile, 'a', 0o600)
  const child: ChildProcess = spawn(path, args, {
    stdio: ['ignore', log, log],
    detached: true,
    env: env ?? process.env,
  })
  closeSync(log)
  const watcher = watchOver(child.pid)
  let ending: string | undefined
  const gone = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      ending = error.message
      watcher.dismiss()
      resolve()
    })
    child.once('exit', (code, signal) => {
      ending = signal ? `ended by ${signal}` : `ended with exit code ${code}`
      watcher.dismiss()
      resolve()
    })
  })
  const tail = (): string => readFileSync(logFile, 'utf8').split('\n').slice(-15).join('\n')
  return {
    name,
    pid: child.pid ?? 0,
    ending: () => ending,
    tail,
    async stop() {
      if (ending !== undefined) return
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), termMs)
      await gone
      clearTimeout(timer)
    },
  }
}

/** Kills a process group when we are gone. Dismissed, it leaves without a deed. */
function watchOver(pid: number | undefined): { dismiss(): void } {
  if (pid === undefined) return { dismiss() {} }
  const script = 'read -r word && exit 0; kill -s KILL -- "-$1"'
  const watcher = spawn('/bin/sh', ['-c', script, 'sh', String(pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  watcher.unref()
  watcher.on('error', () => {})
  watcher.stdin.on('error', () => {}) // it may have ended before it was dismissed
  return { dismiss: () => void watcher.stdin.end('done\n') }
}

/** Asks until it is so. Rejects with `StartFailed` when one of the programs ended or the time is over. */
export async function untilReady(
  what: string,
  programs: readonly Program[],
  isReady: () => Promise<boolean>,
  options: { timeoutMs: number; signal?: AbortSignal | undefined },
): Promise<void> {
  const deadline = Date.now() + options.timeoutMs
  while (!(await isReady().catch(() => false))) {
    options.signal?.throwIfAborted()
    const dead = programs.find((program) => program.ending() !== undefined)
    if (dead) throw new OracleError('StartFailed', `${dead.name} ${dead.ending()}\n${dead.tail()}`)
    if (Date.now() > deadline) {
      const tails = programs.map((program) => `${program.name}:\n${program.tail()}`).join('\n')
      throw new OracleError('StartFailed', `${what} not ready after ${options.timeoutMs} ms\n${tails}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Ports that were free a moment ago, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer()
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      return server
    }),
  )
  const ports = servers.map((server) => (server.address() as { port: number }).port) // a listening TCP server has one
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

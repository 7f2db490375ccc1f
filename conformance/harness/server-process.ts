import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { HttpClient, type Target } from './http-client.js'

const program = join(dirname(fileURLToPath(import.meta.url)), '../../packages/cli/dist/bundle/corral.js')

/** `corral apiserver` as a process of its own, to be killed and started again on the same data and port. */
export interface ServerProcess {
  readonly target: Target
  readonly http: HttpClient
  /** SIGKILL, and settled once the process is gone. */
  kill(): Promise<void>
  /** SIGTERM, and settled once the process is gone. */
  stop(): Promise<void>
  start(): Promise<void>
  close(): Promise<void>
}

export async function startServerProcess(mode: 'memory' | 'sqlite'): Promise<ServerProcess> {
  const directory = mkdtempSync(join(tmpdir(), 'corral-process-'))
  chmodSync(directory, 0o711) // the program refuses a place that the users of sandboxes cannot pass through
  const readyFile = join(directory, 'ready.json')
  let child: ChildProcess | undefined
  let gone: Promise<void> = Promise.resolve()
  let port = 0

  async function start(): Promise<void> {
    rmSync(readyFile, { force: true })
    const flags = ['--data-dir', join(directory, 'data'), '--ready-file', readyFile, '--log-level', 'error']
    const args = [
      program,
      'apiserver',
      '--api-port',
      String(port),
      ...flags,
      ...(mode === 'memory' ? ['--memory'] : []),
    ]
    const started = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    let errors = ''
    started.stderr.on('data', (chunk: Buffer) => {
      errors = `${errors}${chunk.toString()}`.slice(-2000)
    })
    gone = new Promise((resolve) => {
      started.once('exit', () => resolve())
    })
    child = started
    const deadline = Date.now() + 240_000
    while (!existsSync(readyFile)) {
      if (started.exitCode !== null) throw new Error(`corral apiserver ended with ${started.exitCode}: ${errors}`)
      if (Date.now() > deadline) throw new Error(`corral apiserver is not ready: ${errors}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child?.kill(signal)
    await gone
  }

  await start().catch(async (error: unknown) => {
    await end('SIGKILL')
    rmSync(directory, { recursive: true, force: true })
    throw error
  })
  const ready = JSON.parse(readFileSync(readyFile, 'utf8')) as { url: string; token: string }
  port = Number(new URL(ready.url).port)
  const ca = readFileSync(join(directory, 'data', 'tls', 'ca.crt'), 'utf8')
  const target = { url: ready.url, token: ready.token, ca }
  const http = new HttpClient(target)
  return {
    target,
    http,
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    start,
    async close() {
      http.close()
      await end('SIGKILL')
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

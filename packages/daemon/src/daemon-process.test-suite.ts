import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { DaemonClient } from '@corral/protocol'
import { build } from 'esbuild'

/** The daemon as it ships: one file. */
export interface DaemonBundle {
  readonly file: string
  readonly directory: string
  remove(): Promise<void>
}

export async function bundleDaemon(): Promise<DaemonBundle> {
  const directory = await mkdtemp(join(tmpdir(), 'corral-daemon-bundle-'))
  const file = join(directory, 'daemon.mjs')
  await build({
    entryPoints: [fileURLToPath(new URL('main.ts', import.meta.url))],
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['corral-source'],
    external: ['@lydell/node-pty'],
    outfile: file,
    logLevel: 'silent',
  })
  return {
    file,
    directory,
    remove: () => rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }),
  }
}

/** A daemon in a process of its own, on a free port, with JSON logs collected. */
export interface RunningDaemon {
  readonly process: ChildProcess
  readonly url: string
  readonly client: DaemonClient
  readonly logs: Record<string, unknown>[]
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

export async function startDaemon(
  bundle: DaemonBundle,
  directory: string,
  env: Record<string, string> = {},
  nodeOptions: string[] = [],
  user: { uid?: number; gid?: number } = {},
): Promise<RunningDaemon> {
  const child = spawn(process.execPath, [...nodeOptions, bundle.file], {
    ...user,
    cwd: directory,
    env: {
      PATH: process.env.PATH,
      CORRAL_DAEMON_PORT: '0',
      CORRAL_DAEMON_HOST: '127.0.0.1',
      CORRAL_DAEMON_STATE_DIR: join(directory, 'state'),
      CORRAL_DAEMON_WORK_DIR: join(directory, 'work'),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
  const logs: Record<string, unknown>[] = []
  const port = await new Promise<number>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const entry = JSON.parse(line)
      logs.push(entry)
      if (entry.msg === 'daemon listening') resolve(entry.port)
    })
    exited.then(({ code }) => reject(new Error(`the daemon ended with ${code}: ${JSON.stringify(logs)}`)), reject)
  })
  const url = `http://127.0.0.1:${port}`
  return { process: child, url, client: new DaemonClient({ fetch, baseUrl: url }), logs, exited }
}

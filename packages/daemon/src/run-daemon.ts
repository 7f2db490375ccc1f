import { mkdirSync } from 'node:fs'
import { hostname } from 'node:os'
import { systemClock } from '@corral/ports'
import { daemonPort } from '@corral/protocol'
import { createDaemon } from './create-daemon.js'
import { type ListenTarget, serveDaemon } from './daemon-server.js'
import { ownSandbox, readPublicKey, refuseToken } from './daemon-token.js'
import { jsonLogger } from './json-logger.js'
import { legacyRuntime } from './legacy-runtime.js'
import type { SandboxdOptions, SandboxdServer } from './sandboxd-server.js'
import { readSandboxdSettings } from './sandboxd-settings.js'
import { findSpawnHelper } from './spawn-lanes.js'

const processGraceMs = 3_000
const connectionGraceMs = 500
/** A sandbox nothing was asked of for this long waits for its user: what its first command needs is started meanwhile. */
const idleMs = 500

/**
 * Runs the daemon as this process's job, from `CORRAL_DAEMON_*` variables, and resolves to the exit code: 0 after a
 * runner task that went well or a signal before one, 1 after any failure.
 */
export async function runDaemon(env: NodeJS.ProcessEnv, argv: readonly string[] = []): Promise<number> {
  // An agent's `pkill node` must miss it.
  process.title = 'corral-daemon'
  // Without a listener this signal, which any process of the sandbox may send, opens Node's debugger in here.
  process.on('SIGUSR1', () => undefined)
  const log = jsonLogger(
    (line) => process.stdout.write(line),
    () => systemClock.now(),
  )
  const stopped = untilSignal()
  try {
    const settings = readSettings(env)
    const sandboxd = readSandboxdSettings(env, argv)
    const refuse = tokenCheck(env)
    let runnerFinished: (exitCode: 0 | 1) => void = () => {}
    const finished = new Promise<0 | 1>((resolve) => {
      runnerFinished = resolve
    })
    const daemon = await createDaemon({
      ...settings,
      spawnHelper: findSpawnHelper(),
      clock: systemClock,
      log,
      onRunnerFinished: (exitCode) => runnerFinished(exitCode),
    })
    const { processes } = daemon
    const legacy = legacyRuntime({ processes, env, defaultCwd: settings.defaultCwd, log })
    const server = await serveDaemon(daemon, settings.listen, { refuse, legacy })
    const upstream = sandboxd && (await openSandboxd({ ...sandboxd, env, processes, log, refuse }))
    log.info('daemon listening', { ...settings.listen, ...(server.port ? { port: server.port } : {}) })

    setTimeout(() => processes.prepare(), idleMs).unref()
    const end = await Promise.race([finished, stopped])
    if (typeof end === 'string') log.info('stopping', { signal: end, hasTask: daemon.hasTask })
    await daemon.terminate(processGraceMs)
    await upstream?.close(connectionGraceMs)
    await server.close(connectionGraceMs)
    await daemon.close()
    return typeof end === 'number' ? end : daemon.hasTask ? 1 : 0
  } catch (error) {
    log.error('daemon failed', { error: error instanceof Error ? error.message : String(error) })
    return 1
  }
}

/** Loaded only where it is asked for: most sandboxes have no use for it. */
async function openSandboxd(options: SandboxdOptions): Promise<SandboxdServer> {
  const { serveSandboxd } = await import('./sandboxd-server.js')
  const server = await serveSandboxd(options)
  options.log.info('sandboxd listening', { restPort: server.restPort, grpcPort: server.grpcPort, root: options.root })
  return server
}

/** With a public key set, every call but health needs a token that names this sandbox. */
function tokenCheck(env: NodeJS.ProcessEnv): SandboxdOptions['refuse'] {
  const key = env.CORRAL_DAEMON_PUBLIC_KEY
  if (!key) return () => undefined
  const check = { publicKey: readPublicKey(key), sandbox: ownSandbox(env, hostname()) }
  return (request) => refuseToken(check, request.headers.authorization, systemClock.now())
}

interface Settings {
  readonly listen: ListenTarget
  readonly workDir: string
  readonly stateDir: string
  readonly defaultCwd: string
  readonly env: NodeJS.ProcessEnv
  readonly runnerWorkMs: number
}

function readSettings(env: NodeJS.ProcessEnv): Settings {
  const temporary = env.TMPDIR || '/tmp'
  const workDir = env.CORRAL_DAEMON_WORK_DIR ?? `${temporary}/work`
  const stateDir = env.CORRAL_DAEMON_STATE_DIR ?? `${temporary}/.corral-daemon`
  mkdirSync(stateDir, { recursive: true, mode: 0o700 })
  const port = readNumber(env, 'CORRAL_DAEMON_PORT', daemonPort)
  const listen = env.CORRAL_DAEMON_SOCKET
    ? { socket: env.CORRAL_DAEMON_SOCKET }
    : { port, ...(env.CORRAL_DAEMON_HOST ? { host: env.CORRAL_DAEMON_HOST } : {}) }
  const inherited = Object.entries(env).filter(([name]) => !name.startsWith('CORRAL_DAEMON_'))
  return {
    listen,
    workDir,
    stateDir,
    defaultCwd: process.cwd(),
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', ...Object.fromEntries(inherited) },
    runnerWorkMs: readNumber(env, 'CORRAL_DAEMON_RUNNER_WORK_MS', 2_000),
  }
}

function readNumber(env: NodeJS.ProcessEnv, name: string, fallback: number): number {
  const text = env[name]
  if (text === undefined || text === '') return fallback
  if (!/^\d{1,9}$/.test(text)) throw new Error(`${name} must be a number, not "${text}"`)
  return Number(text)
}

function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    process.once('SIGTERM', resolve)
    process.once('SIGINT', resolve)
  })
}

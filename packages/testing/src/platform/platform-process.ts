import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type KubeClient, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { processesOf, sandboxProcesses } from './process-scan.js'
import { type ProgramOptions, type ProgramResult, runProgram } from './run-program.js'
import { type TaskApi, taskApi } from './task-api.js'
import { temporaryDirectory } from './temporary-directory.js'
import { hangMs, waitUntil } from './wait-until.js'

/** The ready record as `corral up` writes it. */
export interface ReadyRecord {
  url: string
  token: string
  kubeconfig: string
  pid: number
  isolation: string
}

export interface PlatformProcessOptions {
  dataDir?: string
  /** More arguments of `corral up`. */
  args?: readonly string[]
  env?: Record<string, string>
}

/** A real `corral up` in a directory of its own. Disposing ends it and removes everything. */
export interface PlatformProcess extends AsyncDisposable, ReadyRecord {
  /** A directory for the test's own files, outside the data directory and passable for sandboxes. */
  readonly directory: string
  readonly dataDir: string
  readonly readyFile: string
  readonly home: string
  readonly api: TaskApi
  /** A client of its Kubernetes API, over TLS like any client's. Made anew after a restart. */
  kube(): Promise<KubeClient>
  /** Everything all runs wrote to standard output and standard error. */
  output(): string
  /** Ends it gently; answers the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
  /** Ends the main process the hard way. Sandboxes live on. */
  kill9(): Promise<void>
  /** Starts it again on the same directory, after `stop` or `kill9`. */
  restart(options?: { args?: readonly string[] }): Promise<void>
  /** Runs a `corral` command against this platform. */
  corral(args: readonly string[], options?: ProgramOptions): Promise<ProgramResult>
  /** Runs kubectl with this platform's kubeconfig. */
  kubectl(args: readonly string[], options?: ProgramOptions): Promise<ProgramResult>
  /** The environment its commands run with. */
  environment(): Record<string, string>
}

/** The CLI as set-up has built it, or another build of it that the environment names. */
export const corralProgram: string =
  process.env.CORRAL_TEST_PROGRAM ?? join(dirname(fileURLToPath(import.meta.url)), '../../../cli/dist/bundle/corral.js')

/** Starts a platform and waits until it is ready. A start that fails rejects with what it printed. */
export async function startPlatformProcess(options: PlatformProcessOptions = {}): Promise<PlatformProcess> {
  const scratch = temporaryDirectory()
  const dataDir = options.dataDir ?? join(scratch.path, 'data')
  const home = join(scratch.path, 'home')
  const readyFile = join(scratch.path, 'ready.json')
  mkdirSync(home, { mode: 0o700 })
  writeFileSync(
    join(home, '.gitconfig'),
    '[user]\n\tname = Test\n\temail = test@localhost\n[init]\n\tdefaultBranch = main\n',
  )
  const environment = (): Record<string, string> => ({ PATH: process.env.PATH ?? '', HOME: home, ...options.env })

  let output = ''
  let child: ChildProcess | undefined
  let ended: Promise<number | null> = Promise.resolve(null)
  let ready: ReadyRecord | undefined
  let kube: Promise<KubeClient> | undefined
  const forgetKube = async (): Promise<void> => {
    const old = kube
    kube = undefined
    await old?.then((client) => client.close()).catch(() => undefined)
  }

  const start = async (extra: readonly string[] = []): Promise<void> => {
    rmSync(readyFile, { force: true })
    await forgetKube()
    const args = [corralProgram, 'up', '--data-dir', dataDir, '--ready-file', readyFile]
    const started = spawn(process.execPath, [...args, ...(options.args ?? []), ...extra], {
      env: environment(),
      cwd: scratch.path,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child = started
    for (const stream of [started.stdout, started.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    ended = new Promise((resolve) => started.once('exit', (code) => resolve(code)))
    let hasEnded = false
    void ended.then(() => {
      hasEnded = true
    })
    ready = await waitUntil('the platform is ready', () => {
      if (hasEnded) return 'ended' as const
      return existsSync(readyFile) && (JSON.parse(readFileSync(readyFile, 'utf8')) as ReadyRecord)
    }).then((answer) => {
      if (answer === 'ended') throw new Error(`corral up ended instead of starting:\n${output.slice(-4_000)}`)
      return answer
    })
  }

  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> => {
    child?.kill(signal)
    const timer = setTimeout(() => child?.kill('SIGKILL'), hangMs)
    try {
      return await ended
    } finally {
      clearTimeout(timer)
      child = undefined
    }
  }
  const kill9 = async (): Promise<void> => {
    child?.kill('SIGKILL')
    await ended
    child = undefined
  }
  const dispose = async (): Promise<void> => {
    await forgetKube()
    if (child) await stop()
    await endSandboxes(dataDir)
    await scratch[Symbol.asyncDispose]()
    if (options.dataDir) rmSync(options.dataDir, { recursive: true, force: true })
  }
  const current = (): ReadyRecord => {
    if (!ready) throw new Error('the platform has not been started')
    return ready
  }

  try {
    await start()
  } catch (error) {
    await dispose()
    throw error
  }
  return {
    directory: scratch.path,
    dataDir,
    readyFile,
    home,
    get url() {
      return current().url
    },
    get token() {
      return current().token
    },
    get kubeconfig() {
      return current().kubeconfig
    },
    get pid() {
      return current().pid
    },
    get isolation() {
      return current().isolation
    },
    api: taskApi(current),
    kube() {
      kube ??= loadKubeConfig({ path: current().kubeconfig }).then((config) => kubeClientFromConfig(config))
      return kube
    },
    output: () => output,
    stop,
    kill9,
    restart: ({ args } = {}) => start(args),
    corral: (args, extra) => runCorral([...args], { env: { ...environment(), CORRAL_DATA_DIR: dataDir }, ...extra }),
    kubectl: (args, extra) =>
      runProgram(requireKubectl(), ['--kubeconfig', current().kubeconfig, ...args], { env: environment(), ...extra }),
    environment,
    [Symbol.asyncDispose]: dispose,
  }
}

/** Runs the `corral` program. */
export function runCorral(args: readonly string[], options?: ProgramOptions): Promise<ProgramResult> {
  return runProgram(process.execPath, [corralProgram, ...args], options)
}

/** The newest versioned kubectl beside the one on the PATH, else that one. */
export function findKubectl(): string | undefined {
  const found = (process.env.PATH ?? '')
    .split(delimiter)
    .map((directory) => join(directory, 'kubectl'))
    .find((path) => existsSync(path))
  if (!found) return undefined
  const beside = dirname(realpathSync(found))
  const versioned = ['1.33', '1.32', '1.31', '1.30'].map((version) => join(beside, `kubectl.${version}`))
  return versioned.find((path) => existsSync(path)) ?? found
}

function requireKubectl(): string {
  const found = findKubectl()
  if (!found) throw new Error('kubectl is not installed')
  return found
}

/** The process that keeps a platform's sandboxes, while it runs. */
export function cradlePid(dataDir: string): number | undefined {
  const file = join(dataDir, 'cradle', 'cradle.pid')
  const pid = existsSync(file) ? Number(readFileSync(file, 'utf8')) : undefined
  const isOurs = pid !== undefined && processesOf(dataDir).some((each) => each.pid === pid)
  return isOurs ? pid : undefined
}

/** Sandboxes of tasks outlive the platform; a test that does not start it again ends them here. */
async function endSandboxes(dataDir: string): Promise<void> {
  const cradle = cradlePid(dataDir)
  if (cradle !== undefined) {
    process.kill(cradle, 'SIGTERM') // it takes its control groups along
    await waitUntil('the cradle has ended', () => cradlePid(dataDir) === undefined)
  }
  await waitUntil(
    'the sandboxes have ended',
    () => {
      const left = [...processesOf(dataDir).map(({ pid }) => pid), ...sandboxProcesses(dataDir)]
      for (const pid of left) {
        try {
          process.kill(pid, 'SIGKILL')
        } catch {
          // It ended between the look and the signal.
        }
      }
      return left.length === 0
    },
    { intervalMs: 50 },
  )
}

import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync, watch } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
/** `CORRAL_BUNDLE` names another build to measure. */
export const bundle: string = process.env.CORRAL_BUNDLE ?? join(root, 'packages/cli/dist/bundle/corral.js')
/** What a user of a clone types: looks whether anything changed since the last set-up, then starts the bundle. */
const launcher = join(root, 'corral')

/** A running `corral` command of the bundle, as users start it. */
export interface CorralProcess<Ready> {
  readonly pid: number
  readonly ready: Ready
  /** From `spawn` to the ready file. */
  readonly startMs: number
  /** SIGTERM and its end; SIGKILL after two minutes. */
  stop(): Promise<void>
  /** SIGKILL and its end. */
  kill(): Promise<void>
}

const startTimeoutMs = 60_000
const stopTimeoutMs = 120_000

/** Starts `corral <args> --ready-file ...` and waits for that file. `directory` must exist. */
export async function startCorral<Ready>(
  args: readonly string[],
  directory: string,
  options: { env?: NodeJS.ProcessEnv; nodeFlags?: readonly string[]; viaLauncher?: boolean } = {},
): Promise<CorralProcess<Ready>> {
  if (!existsSync(bundle)) throw new Error('there is no bundle: run `npm run setup` first')
  const readyFile = join(directory, `ready-${process.hrtime.bigint()}.json`)
  const startedAt = performance.now()
  const [program, ...first] = options.viaLauncher
    ? [launcher]
    : [process.execPath, ...(options.nodeFlags ?? []), bundle]
  const child = spawn(program, [...first, ...args, '--ready-file', readyFile], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: options.env ?? process.env,
  })
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  // Asked rather than killed: a platform ends its sandboxes only when it is let.
  const killOnExit = (): void => void child.kill('SIGTERM')
  process.once('exit', killOnExit)
  void gone.then(() => process.off('exit', killOnExit))
  const ready = await readyRecord<Ready>(readyFile, directory, child)
  const startMs = performance.now() - startedAt
  return {
    pid: child.pid ?? 0,
    ready,
    startMs,
    async stop() {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
      await gone
      clearTimeout(timer)
    },
    async kill() {
      child.kill('SIGKILL')
      await gone
    },
  }
}

/** The ready file is put in place by a rename, so its name appearing means that it is complete. */
function readyRecord<Ready>(file: string, directory: string, child: ChildProcess): Promise<Ready> {
  return new Promise((resolve, reject) => {
    const watcher = watch(directory, look)
    const timer = setTimeout(() => end(new Error(`not ready after ${startTimeoutMs} ms`)), startTimeoutMs)
    const onExit = (code: number | null): void => end(new Error(`ended with ${code} before it was ready`))
    child.once('exit', onExit)
    look()

    function look(): void {
      if (existsSync(file)) end(undefined)
    }
    function end(error: Error | undefined): void {
      clearTimeout(timer)
      watcher.close()
      child.off('exit', onExit)
      if (error) {
        child.kill('SIGKILL')
        reject(error)
      } else resolve(JSON.parse(readFileSync(file, 'utf8')) as Ready) // our own command writes it
    }
  })
}

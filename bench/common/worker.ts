import { type ChildProcess, fork } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/** A TypeScript program of this directory in a process of its own. It says one thing when ready and ends on SIGTERM. */
export interface Worker<Ready> {
  readonly pid: number
  readonly ready: Ready
  stop(): Promise<void>
}

const startTimeoutMs = 60_000
const stopTimeoutMs = 20_000

export async function startWorker<Ready>(module: URL, args: readonly string[]): Promise<Worker<Ready>> {
  const child = fork(await bundled(module), [...args], {
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const killOnExit = (): void => void child.kill('SIGKILL')
  process.once('exit', killOnExit)
  void gone.then(() => process.off('exit', killOnExit))
  const ready = await firstMessage<Ready>(child)
  let isStopping = false
  void gone.then(() => {
    if (isStopping) return
    // Nothing that is measured from here on means anything.
    process.stderr.write(`bench: a worker ended by itself\n`)
    process.exit(1)
  })
  return {
    pid: child.pid ?? 0,
    ready,
    async stop() {
      isStopping = true
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
      await gone
      clearTimeout(timer)
    },
  }
}

const root = fileURLToPath(new URL('../..', import.meta.url))
const built = new Map<string, Promise<string>>()

/** One file of plain JavaScript, as the product is shipped: a loader that compiles on the way slows what it loads. */
function bundled(module: URL): Promise<string> {
  const source = fileURLToPath(module)
  const known = built.get(source)
  if (known) return known
  const making = bundle(source)
  built.set(source, making)
  return making
}

async function bundle(source: string): Promise<string> {
  // Inside the workspace, because packages with native parts are found from where the file lies.
  const directory = join(root, 'node_modules/.cache', `corral-bench-${process.pid}`)
  const outfile = join(directory, `${basename(source, '.ts')}.mjs`)
  mkdirSync(directory, { recursive: true })
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
  const require =
    "import { createRequire as corralCreateRequire } from 'node:module'; const require = corralCreateRequire(import.meta.url);"
  await build({
    entryPoints: [source],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['corral-source'],
    banner: { js: require },
    external: ['@photostructure/sqlite'],
    logLevel: 'warning',
  })
  return outfile
}

/** For the other side: says that it is ready, runs until it is told to stop, then stops. */
export async function serveWorker(ready: object, stop: () => Promise<void>): Promise<void> {
  const told = new Promise<void>((resolve) => {
    process.once('SIGTERM', resolve)
    process.once('disconnect', resolve)
  })
  process.send?.(ready)
  await told
  await stop()
  process.exit(0)
}

function firstMessage<Ready>(child: ChildProcess): Promise<Ready> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => end(new Error(`no word from the worker in ${startTimeoutMs} ms`)), startTimeoutMs)
    const onExit = (code: number | null): void => end(new Error(`the worker ended with ${code}`))
    const onMessage = (message: unknown): void => end(undefined, message as Ready) // both sides are in this directory
    child.once('exit', onExit)
    child.once('message', onMessage)
    function end(error: Error | undefined, ready?: Ready): void {
      clearTimeout(timer)
      child.off('exit', onExit)
      child.off('message', onMessage)
      if (ready === undefined) {
        child.kill('SIGKILL')
        reject(error)
      } else resolve(ready)
    }
  })
}

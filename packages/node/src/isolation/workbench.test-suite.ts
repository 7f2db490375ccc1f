import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, buildSync } from 'esbuild'
import { bubblewrapIsolation } from '../tiers/bubblewrap/bubblewrap-isolation.js'
import { processIsolation } from '../tiers/process/process-isolation.js'
import type { Cell, Isolation, LaunchPlan, PodPlan } from './isolation.js'

const nodePackage = fileURLToPath(new URL('../..', import.meta.url))

export type Variant = 'bubblewrap + compiled supervisor' | 'bubblewrap + Node supervisor' | 'process'

/** A data directory with an isolation in it, and short ways to use both. Dispose of it and nothing is left. */
export interface Workbench {
  dataDir: string
  isolation: Isolation
  /** A second main on the same data directory. */
  reopen(): Isolation
  /** Launches from another process, which is killed as soon as the cell runs. */
  launchFromDoomedMain(pod: PodPlan, plan: LaunchPlan): Promise<void>
  pod(overrides?: Partial<PodPlan>): PodPlan
  plan(pod: PodPlan, script: string, overrides?: Partial<LaunchPlan>): LaunchPlan
  /** Prepares a new pod and launches `sh -c script` in it. */
  start(script: string, overrides?: { plan?: Partial<LaunchPlan>; pod?: Partial<PodPlan> }): Promise<Cell>
  /** Runs `sh -c script` in a cell and answers what it said. */
  run(cell: Cell, script: string): Promise<{ stdout: string; stderr: string; exitCode: number }>
  [Symbol.asyncDispose](): Promise<void>
}

/** The compiled supervisor, built when its sources are newer. Undefined without a compiler. */
export function compiledSupervisor(): string | undefined {
  execFileSync(process.execPath, [join(nodePackage, 'native/build.mjs')], { stdio: 'ignore' })
  const path = join(nodePackage, 'dist/native/corral-supervisor')
  return existsSync(path) ? path : undefined
}

export const hasBubblewrap: boolean = existsSync('/usr/bin/bwrap')

const bundling = {
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  conditions: ['corral-source'],
} satisfies BuildOptions

let numbers = 0
/**
 * Users of this process's pods. To end a pod is to end every process of its user: files of one run that run at once never share
 * one, and those of two runs hardly ever.
 */
const uidsPerWorker = 200
const worker = (process.ppid % 18) * 16 + (Number(process.env.VITEST_POOL_ID ?? 0) % 16)
const firstUid = 300_000 + worker * uidsPerWorker

export function openWorkbench(
  variant: Variant,
  {
    idleShutdownMs = 60_000,
    below = '',
    openFiles,
    supervisorEntry = 'cradle/supervisor/node-supervisor.ts',
  }: { idleShutdownMs?: number; below?: string; openFiles?: number; supervisorEntry?: string } = {},
): Workbench {
  const root = mkdtempSync(join(tmpdir(), 'corral-isolation-'))
  chmodSync(root, 0o711)
  const dataDir = join(root, below)
  mkdirSync(join(dataDir, 'pods'), { recursive: true })
  chmodSync(join(dataDir, 'pods'), 0o711)
  const bundle = (entry: string, name: string): string => {
    const outfile = join(dataDir, name)
    buildSync({ entryPoints: [resolve(nodePackage, 'src', entry)], outfile, ...bundling })
    return outfile
  }
  const usesNode = variant === 'bubblewrap + Node supervisor'
  const options = {
    dataDir,
    cradleEntry: bundle('cradle-main.ts', 'cradle.mjs'),
    ...(usesNode
      ? {
          supervisorPath: null,
          supervisorScript: bundle(supervisorEntry, 'node-supervisor.mjs'),
        }
      : {}),
    idleShutdownMs,
    ...(openFiles === undefined ? {} : { nodePath: nodeWithOpenFiles(dataDir, openFiles) }),
  }
  const open = (): Isolation => (variant === 'process' ? processIsolation(options) : bubblewrapIsolation(options))
  const isolation = open()
  const isRoot = process.getuid?.() === 0

  const workbench: Workbench = {
    dataDir,
    isolation,
    reopen: open,
    async launchFromDoomedMain(pod, plan) {
      const tier = variant === 'process' ? 'process' : 'bubblewrap'
      const maker = `${tier}Isolation`
      const script = join(dataDir, 'doomed-main.mjs')
      buildSync({
        stdin: {
          contents: `import { ${maker} } from './${tier}/${tier}-isolation.js'
            const { options, pod, plan } = JSON.parse(process.argv[2])
            const isolation = ${maker}(options)
            await isolation.preparePod(pod)
            await isolation.launch(plan)
            process.stdout.write('launched')
            setInterval(() => {}, 1000)`,
          resolveDir: join(nodePackage, 'src/tiers'),
          loader: 'ts',
        },
        outfile: script,
        ...bundling,
      })
      // The defaults of the bundled copy would point beside the bundle.
      const given = { supervisorPath: compiledSupervisor() ?? null, ...options }
      const main = spawn(process.execPath, [script, JSON.stringify({ options: given, pod, plan })], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const ended = once(main, 'exit')
      await Promise.race([once(main.stdout, 'data'), ended])
      main.kill('SIGKILL')
      await ended
    },
    pod(overrides = {}) {
      const number = ++numbers
      const podUid = overrides.podUid ?? `pod-${process.pid}-${number}`
      const directory = join(dataDir, 'pods', podUid)
      mkdirSync(directory, { recursive: true })
      return {
        podUid,
        namespace: 'test',
        name: `pod-${number}`,
        podIP: `100.64.${(number >> 8) & 255}.${number & 255}`,
        hostname: `pod-${number}`,
        hostUid: isRoot ? firstUid + (number % uidsPerWorker) : (process.getuid?.() ?? 1000),
        egress: [],
        services: [],
        limits: {},
        directory,
        ...overrides,
      }
    },
    plan(pod, script, overrides = {}) {
      return {
        podUid: pod.podUid,
        container: 'main',
        attempt: 0,
        argv: ['/bin/sh', '-c', script],
        env: {},
        workingDir: '/tmp',
        uid: 1000,
        gid: 1000,
        mounts: [],
        tmpfs: [],
        readOnlyRoot: false,
        limits: {},
        stdin: false,
        tty: false,
        logPath: join(pod.directory, 'logs', 'main.log'),
        ...overrides,
      }
    },
    async start(script, overrides = {}) {
      const pod = workbench.pod(overrides.pod)
      await isolation.preparePod(pod)
      return await isolation.launch(workbench.plan(pod, script, overrides.plan))
    },
    async run(cell, script) {
      const command = ['/bin/sh', '-c', script]
      const running = await cell.exec({ command, stdin: false, stdout: true, stderr: true, tty: false })
      const [stdout, stderr, exit] = await Promise.all([text(running.stdout), text(running.stderr), running.exited])
      return { stdout, stderr, exitCode: exit.exitCode }
    },
    async [Symbol.asyncDispose]() {
      await isolation.close({ endPods: true })
      rmSync(root, { recursive: true, force: true })
    },
  }
  return workbench
}

/** The process that holds the cells of a workbench. */
export const cradleOf = (dataDir: string): number => Number(readFileSync(join(dataDir, 'cradle', 'cradle.pid'), 'utf8'))

/** A node that may hold no more than this many descriptors: a machine's limit, made small enough to reach. */
export function nodeWithOpenFiles(dataDir: string, openFiles: number): string {
  const path = join(dataDir, 'small-node')
  writeFileSync(path, `#!/bin/sh\nulimit -n ${openFiles}\nexec '${process.execPath}' "$@"\n`, { mode: 0o755 })
  return path
}

export async function text(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) parts.push(chunk)
  return Buffer.concat(parts).toString()
}

/** Polls until `ready` holds; the deadline only ends a test that has failed already. */
export async function until(what: string, ready: () => boolean | Promise<boolean>, timeoutMs = 240_000): Promise<void> {
  const deadline = Date.now() + timeoutMs
  while (!(await ready())) {
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`)
    await new Promise((next) => setTimeout(next, 10))
  }
}

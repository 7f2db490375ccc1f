import { spawnSync } from 'node:child_process'
import { existsSync, statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pickIsolation } from '@corral/node'
import { fileSecretStore, providers } from '@corral/tasks'
import type { Command } from 'commander'
import pc from 'picocolors'
import { type FindOptions, findPlatform } from '../client/find-platform.js'
import { sandboxClient } from '../client/kube-access.js'
import { dataDirectoryAt, defaultDataDirectory, prepareDataDirectory } from '../platform/data-directory.js'
import { bundleDirectory, installRuntime } from '../platform/runtime-files.js'
import { installableAgents } from './agent.js'

export interface Finding {
  check: string
  state: 'ok' | 'warn' | 'fail'
  detail: string
  remedy?: string
}

interface DoctorOptions extends FindOptions {
  json?: boolean
}

type Check = (options: DoctorOptions) => Promise<Finding> | Finding

const checkTimeoutMs = 20_000

/** `corral doctor`: what this machine can do, and what would make it do more. Exits 1 when something is broken. */
export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .summary('check what this machine can do')
    .description('Runs checks side by side, each with a time limit, and names a remedy for every finding.')
    .option('--data-dir <dir>', 'data directory to check')
    .option('--json', 'print JSON')
    .action(async (options: DoctorOptions) => {
      const findings = await Promise.all(Object.entries(checks).map(([name, check]) => bounded(name, check, options)))
      if (options.json) process.stdout.write(`${JSON.stringify({ findings }, null, 2)}\n`)
      else for (const finding of findings) process.stdout.write(line(finding))
      if (findings.some(({ state }) => state === 'fail')) process.exitCode = 1
    })
}

const checks: Readonly<Record<string, Check>> = {
  node() {
    const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
    const isNew = major > 20 || (major === 20 && minor >= 19)
    return {
      check: 'node',
      state: isNew ? 'ok' : 'fail',
      detail: process.version,
      ...(isNew ? {} : { remedy: 'Install Node 20.19 or newer.' }),
    }
  },
  git() {
    const found = spawnSync('git', ['--version'], { encoding: 'utf8' })
    if (found.status === 0) return { check: 'git', state: 'ok', detail: found.stdout.trim() }
    return { check: 'git', state: 'fail', detail: 'not found', remedy: 'Install git, for example: apt-get install git' }
  },
  async isolation(options) {
    const directory = dataDirectoryAt(options.dataDir ?? defaultDataDirectory(process.env))
    const running = await findPlatform(options)
    if (running?.isolation)
      return {
        check: 'isolation',
        state: running.isolation === 'process' ? 'warn' : 'ok',
        detail: `the running platform uses ${running.isolation}`,
      }
    prepareDataDirectory(directory)
    const runtime = installRuntime(directory.runtime)
    const picked = await pickIsolation({
      dataDir: directory.path,
      cradleEntry: runtime.cradle,
      supervisorPath: runtime.supervisor ?? null,
      ...(runtime.supervisorScript ? { supervisorScript: runtime.supervisorScript } : {}),
      allowProcess: true,
    })
    await picked.isolation.close({ endPods: true })
    const { tier } = picked.isolation
    if (tier !== 'process')
      return { check: 'isolation', state: 'ok', detail: `${tier}, limits ${picked.report.limits}` }
    const why =
      picked.rejected[0]?.checks.filter(({ passed }) => !passed).map(({ name, detail }) => detail ?? name) ?? []
    return {
      check: 'isolation',
      state: 'warn',
      detail: `only "process", which is not a sandbox (${why.join('; ')})`,
      remedy: picked.rejected[0]?.remedy ?? 'Install bubblewrap, for example: apt-get install bubblewrap',
    }
  },
  supervisor() {
    const native = existsSync(join(bundleDirectory(), 'corral-supervisor'))
    if (native) return { check: 'supervisor', state: 'ok', detail: 'native' }
    return {
      check: 'supervisor',
      state: 'warn',
      detail: 'the Node one is used, which is slower',
      remedy: 'Install a C compiler (apt-get install gcc libc6-dev) and run `npm run setup`.',
    }
  },
  disk(options) {
    const path = dataDirectoryAt(options.dataDir ?? defaultDataDirectory(process.env)).path
    const existing = existsSync(path) ? path : existsSync(dirname(path)) ? dirname(path) : '/'
    const { bavail, bsize } = statfsSync(existing)
    const freeGb = (bavail * bsize) / 1e9
    const isEnough = freeGb > 2
    return {
      check: 'disk',
      state: isEnough ? 'ok' : 'warn',
      detail: `${freeGb.toFixed(1)} GB free at ${existing}`,
      ...(isEnough ? {} : { remedy: 'Free some space or use another --data-dir.' }),
    }
  },
  async platform(options) {
    const running = await findPlatform(options)
    return running
      ? { check: 'platform', state: 'ok', detail: `running at ${running.url}` }
      : {
          check: 'platform',
          state: 'warn',
          detail: 'none is running',
          remedy: 'Start one with `corral up`; `corral run` does it by itself.',
        }
  },
  async cluster(options) {
    await using client = await sandboxClient(options)
    const health = await client.healthCheck({ signal: AbortSignal.timeout(checkTimeoutMs / 2) })
    if (health.healthy)
      return {
        check: 'cluster',
        state: 'ok',
        detail: `${health.clusterVersion ?? 'unknown version'}, kinds served, namespace ${health.namespace} exists`,
      }
    const detail =
      health.error ??
      (health.crdRegistered ? `there is no namespace ${health.namespace}` : 'the Agent Sandbox kinds are not installed')
    return {
      check: 'cluster',
      state: 'warn',
      detail,
      remedy: 'Start the platform, or install the CRDs of config/crds/cluster into your cluster.',
    }
  },
  async keys(options) {
    const store = fileSecretStore(dataDirectoryAt(options.dataDir ?? defaultDataDirectory(process.env)).secrets)
    const set: string[] = []
    for (const provider of providers.values())
      if ((await store.find(provider.secret)) || process.env[provider.keyVariable]) set.push(provider.name)
    if (set.length > 0) return { check: 'keys', state: 'ok', detail: `set: ${set.join(', ')}` }
    return { check: 'keys', state: 'warn', detail: 'no model key is set', remedy: 'corral secret set anthropic' }
  },
  agents(options) {
    const { agents } = dataDirectoryAt(options.dataDir ?? defaultDataDirectory(process.env))
    const installed = Object.entries(installableAgents).filter(([, { program }]) =>
      existsSync(join(agents, 'bin', program)),
    )
    if (installed.length > 0)
      return { check: 'agents', state: 'ok', detail: `installed: ${installed.map(([name]) => name).join(', ')}` }
    return { check: 'agents', state: 'warn', detail: 'only the command agent', remedy: 'corral agent install claude' }
  },
}

async function bounded(name: string, check: Check, options: DoctorOptions): Promise<Finding> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<Finding>((resolve) => {
    timer = setTimeout(
      () => resolve({ check: name, state: 'fail', detail: `no answer within ${checkTimeoutMs / 1000} s` }),
      checkTimeoutMs,
    )
  })
  try {
    return await Promise.race([Promise.resolve().then(() => check(options)), late])
  } catch (error) {
    return {
      check: name,
      state: name === 'cluster' ? 'warn' : 'fail',
      detail: error instanceof Error ? error.message : String(error),
    }
  } finally {
    clearTimeout(timer)
  }
}

function line({ check, state, detail, remedy }: Finding): string {
  const mark = state === 'ok' ? pc.green('✓') : state === 'warn' ? pc.yellow('!') : pc.red('✗')
  return `${mark} ${check.padEnd(11)} ${detail}\n${remedy ? `              ${pc.dim(remedy)}\n` : ''}`
}

import { spawnSync } from 'node:child_process'
import { existsSync, statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pickIsolation } from '@corral/node'
import { fileSecretStore, providers } from '@corral/tasks'
import { type FindOptions, findPlatform } from './client/find-platform.js'
import { sandboxClient } from './client/kube-access.js'
import { installableAgents } from './commands/agent.js'
import { dataDirectoryAt, defaultDataDirectory, prepareDataDirectory } from './platform/data-directory.js'
import { bundleDirectory, installRuntime, isolationFiles } from './platform/runtime-files.js'

export interface Finding {
  check: string
  state: 'ok' | 'warn' | 'fail'
  detail: string
  remedy?: string
}

export type Check = (options: FindOptions) => Promise<Finding> | Finding

export const checkTimeoutMs = 20_000

/** What `corral doctor` looks at. Each check stands alone and may throw; the caller bounds it in time. */
export const checks: Readonly<Record<string, Check>> = {
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
      ...isolationFiles(runtime),
      allowProcess: true,
    })
    // Pods of a crashed platform wait here to be adopted: looking must not end them.
    await picked.isolation.close({ endPods: false })
    const { tier } = picked.isolation
    if (tier !== 'process') return limitsFinding(tier, picked.report.limits)
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

/** A sandbox whose limits do not hold is still one, but a runaway agent can take the machine with it. */
export function limitsFinding(tier: string, limits: 'enforced' | 'partial' | 'none'): Finding {
  const found = { check: 'isolation', detail: `${tier}, limits ${limits}` }
  if (limits === 'enforced') return { ...found, state: 'ok' }
  const remedy =
    'Memory, processor and process limits need control groups: start as root, or in a delegated group with ' +
    '`systemd-run --user --scope -p Delegate=yes corral up`.'
  return { ...found, state: 'warn', remedy }
}

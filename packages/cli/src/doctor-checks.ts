import { spawnSync } from 'node:child_process'
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdtempSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { agentAdapters, defaultAgentName, providers } from '@corral/agents'
import { sqliteStorage } from '@corral/apiserver'
import { isSandboxTier, pickIsolation } from '@corral/node'
import { createModelProviders, fileEndpointStore, fileSecretStore } from '@corral/tasks'
import { CliError } from './cli-error.js'
import { type FindOptions, findPlatform } from './client/find-platform.js'
import { sandboxClient } from './client/kube-access.js'
import { installedAgents } from './installed-agents.js'
import { checkReachable, dataDirectoryOf, isLocked, otherUse } from './platform/data-directory.js'
import { largestUses } from './platform/disk-uses.js'
import { bundleDirectory, installRuntime, isolationFiles } from './platform/runtime-files.js'
import { explainStorage } from './platform/storage-failure.js'

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
    const directory = dataDirectoryOf(options)
    const running = await findPlatform(options)
    if (running?.isolation)
      return {
        check: 'isolation',
        state: isSandboxTier(running.isolation) ? 'ok' : 'warn',
        detail: `the running platform uses ${running.isolation}`,
      }
    checkReachable(directory)
    // Tried elsewhere: looking must not change the data directory, nor end the pods of a platform that crashed.
    const picked = await inScratch(async (dataDir) => {
      const runtime = installRuntime(join(dataDir, 'runtime'))
      const tried = await pickIsolation({ dataDir, ...isolationFiles(runtime), allowUnconfined: true })
      await tried.isolation.close({ endPods: true })
      return tried
    })
    const { tier } = picked.isolation
    if (isSandboxTier(tier)) return withSnapshots(limitsFinding(tier, picked.report.limits), picked.report.snapshots)
    const why =
      picked.rejected[0]?.checks.filter(({ passed }) => !passed).map(({ name, detail }) => detail ?? name) ?? []
    return {
      check: 'isolation',
      state: 'warn',
      detail: `only "${tier}", which is not a sandbox (${why.join('; ')})`,
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
    const path = dataDirectoryOf(options).path
    const existing = nearestExisting(path)
    const problem = notForData(existing)
    if (problem)
      return {
        check: 'disk',
        state: 'fail',
        detail: `${path} cannot be used as the data directory: ${existing} ${problem}`,
        remedy: 'Name a directory you may write to with --data-dir or CORRAL_DATA_DIR.',
      }
    const other = otherUse(path)
    if (other)
      return {
        check: 'disk',
        state: 'fail',
        detail: `${path} cannot be used as the data directory: ${other.is}`,
        remedy: other.hint,
      }
    const { bavail, bsize } = statfsSync(existing)
    const freeGb = (bavail * bsize) / 1e9
    const isEnough = freeGb > 2
    return {
      check: 'disk',
      state: isEnough ? 'ok' : 'warn',
      detail: `${freeGb.toFixed(1)} GB free at ${existing}${isEnough ? '' : largestUses(path)}`,
      ...(isEnough
        ? {}
        : {
            remedy: 'Free some space (`corral task rm` ends the sandbox that a task keeps) or use another --data-dir.',
          }),
    }
  },
  async database(options) {
    const directory = dataDirectoryOf(options)
    if (!existsSync(join(directory.api, 'state.db'))) return { check: 'database', state: 'ok', detail: 'none yet' }
    if (await isLocked(directory)) return { check: 'database', state: 'ok', detail: 'in use by the running platform' }
    try {
      const objects = await inScratch((copy) => readCopy(directory.api, copy))
      return { check: 'database', state: 'ok', detail: `${objects} objects in ${directory.api}` }
    } catch (error) {
      const known = explainStorage(error, directory)
      if (!(known instanceof CliError)) throw error
      const remedy = known.hint ? { remedy: known.hint } : {}
      return { check: 'database', state: 'fail', detail: known.message, ...remedy }
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
    // Without the request it came from: what is wrong is the server.
    const detail =
      health.error?.replace(/^get \/\S+: /, '') ??
      (health.crdRegistered ? `there is no namespace ${health.namespace}` : 'the Agent Sandbox kinds are not installed')
    return {
      check: 'cluster',
      state: 'warn',
      detail,
      remedy: health.error
        ? 'Without a platform the cluster of kubectl is looked at: start one with `corral up -d`, or choose another context.'
        : 'Start the platform, or install the CRDs of config/crds/cluster into your cluster.',
    }
  },
  async keys(options) {
    const directory = dataDirectoryOf(options)
    const known = createModelProviders({
      endpoints: fileEndpointStore(directory.endpoints),
      secrets: fileSecretStore(directory.secrets),
      env: process.env,
    })
    const usable: string[] = []
    for (const provider of await known.list()) if (await known.isUsable(provider)) usable.push(provider.name)
    if (usable.length > 0) return { check: 'keys', state: 'ok', detail: `set: ${usable.join(', ')}` }
    const remedy = [...providers.values()].map(({ secret }) => `corral secret set ${secret}`).join(', or ')
    return { check: 'keys', state: 'warn', detail: 'no model key is set', remedy }
  },
  agents(options) {
    const installed = installedAgents(dataDirectoryOf(options).agents)
    if (installed.length > 0) {
      const names = installed.map(({ name, version }) => `${name} ${version}`)
      return { check: 'agents', state: 'ok', detail: `installed: ${names.join(', ')}` }
    }
    const builtIn = [...agentAdapters.values()].filter(({ install }) => !install).map(({ name }) => name)
    return {
      check: 'agents',
      state: 'warn',
      detail: `only those that need no installation: ${builtIn.join(', ')}`,
      remedy: `corral agent install ${defaultAgentName}`,
    }
  },
}

/** A directory that is gone afterwards, which the users of sandboxes may pass through. */
async function inScratch<T>(use: (path: string) => Promise<T>): Promise<T> {
  const path = mkdtempSync(join(tmpdir(), 'corral-doctor-'))
  chmodSync(path, 0o711)
  try {
    return await use(path)
  } finally {
    rmSync(path, { recursive: true, force: true })
  }
}

/** Opens a copy of a database as a start would and answers how many objects it holds. The original is only read. */
async function readCopy(from: string, to: string): Promise<number> {
  for (const name of ['state.db', 'state.db-wal'])
    if (existsSync(join(from, name))) copyFileSync(join(from, name), join(to, name), constants.COPYFILE_FICLONE)
  const storage = sqliteStorage({ directory: to, durability: 'normal' })
  try {
    return (await storage.open()).rows.length
  } catch (error) {
    const { code, message } = error as { code?: string; message?: string }
    if (code === 'StorageCorrupt' && message) (error as Error).message = message.replaceAll(to, from)
    throw error
  } finally {
    await storage.close()
  }
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

function nearestExisting(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path))
}

/** Why nothing can be kept in what exists of a data directory; undefined where it can. Writes nothing. */
function notForData(existing: string): string | undefined {
  if (!statSync(existing).isDirectory()) return 'is no directory'
  try {
    accessSync(existing, constants.W_OK | constants.X_OK)
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EROFS' ? 'is on a read-only file system' : 'may not be written to'
  }
}

/** Where snapshots are copied everything works, slower and with more disk: said, and no reason to warn. */
export function withSnapshots(
  finding: Finding,
  snapshots: { copyOnWrite: boolean; detail?: string } | undefined,
): Finding {
  if (!snapshots) return finding
  const how = snapshots.copyOnWrite ? 'attached copy-on-write' : `copied (${snapshots.detail ?? 'no overlay here'})`
  return { ...finding, detail: `${finding.detail}, snapshots ${how}` }
}

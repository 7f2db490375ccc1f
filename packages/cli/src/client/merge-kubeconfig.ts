import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { dump, load } from 'js-yaml'
import { CliError } from '../cli-error.js'
import { writeAtomically } from '../platform/data-directory.js'

interface Named {
  name: string
}

/** A kubeconfig as far as merging needs to know it; every other field is kept as it is. */
export interface Kubeconfig extends Record<string, unknown> {
  clusters?: (Named & { cluster: Record<string, unknown> })[] | null
  users?: (Named & { user: Record<string, unknown> })[] | null
  contexts?: (Named & { context: Record<string, unknown> })[] | null
  'current-context'?: string
}

/**
 * `existing` with the platform's cluster, user and context under one `name`. Entries of that name are replaced, all
 * others stay in their order. The current context is left alone unless there is none.
 */
export function mergedKubeconfig(existing: Kubeconfig, platform: Kubeconfig, name: string): Kubeconfig {
  const context = platform.contexts?.find((each) => each.name === platform['current-context'])
  const cluster = platform.clusters?.find((each) => each.name === context?.context.cluster)
  const user = platform.users?.find((each) => each.name === context?.context.user)
  if (!context || !cluster || !user) throw new CliError('the kubeconfig of the platform is incomplete', { exitCode: 3 })
  return {
    apiVersion: 'v1',
    kind: 'Config',
    ...existing,
    clusters: replaced(existing.clusters, { name, cluster: cluster.cluster }),
    users: replaced(existing.users, { name, user: user.user }),
    contexts: replaced(existing.contexts, { name, context: { ...context.context, cluster: name, user: name } }),
    'current-context': existing['current-context'] || name,
  }
}

/**
 * Why the entries called `name` are not those of an earlier merge: a cluster that is not on this machine, or a cluster
 * or user that another context stands on too. Undefined where they may be replaced.
 */
export function otherOwner(existing: Kubeconfig, name: string): string | undefined {
  const own = existing.contexts?.find((each) => each.name === name)?.context
  for (const { name: each, cluster } of existing.clusters ?? []) {
    const server = String(cluster?.server ?? '')
    if ((each === name || each === own?.cluster) && !isLoopback(server)) return `the cluster at ${server}`
  }
  const others = (existing.contexts ?? []).filter((each) => each.name !== name)
  const user = others.find(({ context }) => context?.cluster === name || context?.user === name)
  return user && `the context "${user.name}"`
}

function isLoopback(server: string): boolean {
  const host = URL.canParse(server) ? new URL(server).hostname : ''
  return /^127\.|^localhost$|^\[::1\]$/.test(host)
}

function replaced<T extends Named>(entries: readonly T[] | null | undefined, entry: T): T[] {
  const index = entries?.findIndex(({ name }) => name === entry.name) ?? -1
  if (!entries || index < 0) return [...(entries ?? []), entry]
  return entries.with(index, entry)
}

/** Where kubectl would write: the first file of $KUBECONFIG that is not the platform's own, else ~/.kube/config. */
export function mergeTarget(env: NodeJS.ProcessEnv, platformKubeconfig: string): string {
  const named = (env.KUBECONFIG ?? '').split(delimiter).filter((path) => path !== '' && path !== platformKubeconfig)
  return named[0] ?? join(env.HOME ?? homedir(), '.kube', 'config')
}

/**
 * Merges the platform's kubeconfig into a file, all at once and under kubectl's own lock, so that another program that
 * changes the file at the same moment loses nothing. A file that cannot be read as a kubeconfig is left as it is.
 */
export function mergeKubeconfigFile(target: string, platformKubeconfig: string, name: string): void {
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 })
  // A link stays a link: what it points to is replaced.
  const path = existsSync(target) ? realpathSync(target) : target
  const lock = `${path}.lock`
  takeLock(lock, path)
  try {
    const existing = existsSync(path) ? parsed(path) : {}
    const owner = otherOwner(existing, name)
    if (owner)
      throw new CliError(`"${name}" in ${target} belongs to ${owner}; nothing is changed`, {
        exitCode: 2,
        hint: 'Give the context of the platform another name with --name.',
      })
    const merged = mergedKubeconfig(existing, parsed(platformKubeconfig), name)
    // Who else is on this machine must not read the key that comes in.
    const mode = existsSync(path) ? statSync(path).mode & 0o770 : 0o600
    writeAtomically(path, dump(merged), mode)
    chmodSync(path, mode)
  } finally {
    rmSync(lock, { force: true })
  }
}

function takeLock(lock: string, path: string): void {
  try {
    closeSync(openSync(lock, 'wx', 0o600))
  } catch (cause) {
    const isHeld = (cause as NodeJS.ErrnoException).code === 'EEXIST'
    throw new CliError(isHeld ? `${path} is being changed by another program` : `${path} cannot be written`, {
      hint: isHeld ? `Try again; if nothing uses it, remove ${lock}.` : 'Name another file in KUBECONFIG.',
      cause,
    })
  }
}

function parsed(path: string): Kubeconfig {
  const unusable = (cause?: unknown): CliError =>
    new CliError(`${path} is not a kubeconfig${cause ? `: ${(cause as Error).message.split('\n', 1)[0]}` : ''}`, {
      hint: 'Repair or move it, or name another file in KUBECONFIG.',
      cause,
    })
  let content: unknown
  try {
    content = load(readFileSync(path, 'utf8'))
  } catch (error) {
    throw unusable(error)
  }
  if (content === null || content === undefined) return {}
  const lists = ['clusters', 'users', 'contexts'] as const
  const isConfig =
    typeof content === 'object' &&
    lists.every((name) => {
      const list = (content as Kubeconfig)[name]
      return list === undefined || list === null || Array.isArray(list)
    })
  if (!isConfig) throw unusable()
  return content as Kubeconfig
}

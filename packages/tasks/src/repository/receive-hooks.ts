import { access, constants, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Git } from '../git/git.js'
import { TaskError } from '../task-error.js'

/** Hooks git runs in a repository that is pushed to. */
const receiveHooks = [
  'pre-receive',
  'update',
  'proc-receive',
  'post-receive',
  'post-update',
  'push-to-checkout',
  'reference-transaction',
] as const

export interface ReceiveHooks {
  directory: string
  names: string[]
}

/**
 * The hooks that a push to the repository runs, or undefined where it has none. They run as the user of the platform, so
 * they are its own or the push is refused: a push that leaves them out would pass by the rules they stand for.
 */
export async function ownReceiveHooks(
  git: Git,
  repository: { path: string; common: string },
  signal: AbortSignal,
): Promise<ReceiveHooks | undefined> {
  const directory = await hooksDirectory(git, repository.common, signal)
  const names: string[] = []
  for (const name of receiveHooks) if (await isExecutable(join(directory, name))) names.push(name)
  if (names.length === 0) return undefined
  const owner = process.getuid?.()
  for (const path of [repository.common, directory, ...names.map((name) => join(directory, name))])
    if ((await stat(path)).uid !== owner) throw foreignHooks(repository.path, names, path)
  return { directory, names }
}

/** `hooks` of the repository, or where its own configuration says. */
async function hooksDirectory(git: Git, common: string, signal: AbortSignal): Promise<string> {
  const args = ['config', '--file', join(common, 'config'), '--no-includes', '--type=path', '--get', 'core.hooksPath']
  const configured = await git(args, { cwd: '/', signal, timeoutMs: 60_000 }).then(
    ({ stdout }) => stdout.trimEnd(),
    () => '', // not set
  )
  return configured ? resolve(common, configured) : join(common, 'hooks')
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}

function foreignHooks(path: string, names: readonly string[], foreign: string): TaskError {
  const [hooks, verb] = names.length === 1 ? ['hook', 'runs'] : ['hooks', 'run']
  return new TaskError(
    'PushRefused',
    `${path} has the ${hooks} ${names.join(', ')}, which ${verb} on a push as the user of Corral, but ${foreign} belongs to another user`,
    { hint: 'Change the owner, push through ssh or https, or name the repository by its path: then no hook runs.' },
  )
}

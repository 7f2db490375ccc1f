import { stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { GitIdentity } from '@corral/protocol'
import { gitDirectory } from '../repository/local-repository.js'

type FindIdentity = (path: string | undefined) => Promise<GitIdentity | undefined>

interface Known {
  stamps: string
  answer: Promise<GitIdentity | undefined>
  untilMs: number
}

/** Files that one configuration includes are not watched: a change in them counts after this time. */
const keptMs = 2_000
const maxRepositories = 1_000

/**
 * Remembers identities for a moment. Finding one starts one or two processes, and a burst of requests for the same
 * repository would start them for each. A changed configuration file of the repository or the user counts at once.
 */
export function rememberIdentities(
  find: FindIdentity,
  { env = process.env, nowMs = Date.now }: { env?: NodeJS.ProcessEnv; nowMs?: () => number } = {},
): FindIdentity {
  const known = new Map<string, Known>()
  return async (path) => {
    const key = path ?? ''
    const stamps = await stampsOf(path, env)
    const last = known.get(key)
    if (last && last.stamps === stamps && nowMs() < last.untilMs) return last.answer
    if (known.size >= maxRepositories) known.clear()
    const entry: Known = { stamps, answer: find(path), untilMs: nowMs() + keptMs }
    known.set(key, entry)
    // A failure is the caller's; the next request asks again.
    entry.answer.catch(() => known.delete(key))
    return entry.answer
  }
}

/** Changes with every configuration file that is written to set an identity. */
async function stampsOf(path: string | undefined, env: NodeJS.ProcessEnv): Promise<string> {
  const home = env.HOME ?? homedir()
  const directory = path === undefined ? undefined : await gitDirectory(path)
  const files = [
    ...(directory ? ['config', 'config.worktree', 'commondir'].map((name) => join(directory, name)) : []),
    env.GIT_CONFIG_GLOBAL ?? join(home, '.gitconfig'),
    join(env.XDG_CONFIG_HOME ?? join(home, '.config'), 'git', 'config'),
  ]
  const stamps = await Promise.all(files.map(stampOf))
  return stamps.join(' ')
}

const stampOf = (path: string): Promise<string> =>
  stat(path, { bigint: true }).then(
    ({ mtimeNs, size, ino }) => `${mtimeNs}.${size}.${ino}`,
    () => '-',
  )

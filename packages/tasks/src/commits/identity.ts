import { type GitIdentity, parseGitIdentity } from '@corral/protocol'
import type { AgentTask } from '@corral/resources'
import type { Git } from '../git/git.js'

/** The identity of commits where none is configured: no person, and an address that is not in use. */
export const corralIdentity: GitIdentity = { name: 'Corral', email: 'corral@localhost' }

/** Who the commits of a task name. */
export function identitiesOf({ spec }: Pick<AgentTask, 'spec'>): { author: GitIdentity; committer: GitIdentity } {
  return { author: spec.author ?? corralIdentity, committer: spec.committer ?? corralIdentity }
}

/**
 * Who git would commit as for the user of this process, in the repository at `path` or anywhere; undefined where none
 * is configured. Only what was written down counts: git would otherwise make an address of user and host name.
 */
export async function configuredIdentity(git: Git, path: string | undefined): Promise<GitIdentity | undefined> {
  for (const cwd of [...(path === undefined ? [] : [path]), '/']) {
    try {
      const { stdout } = await git(['-c', 'user.useConfigOnly=true', 'var', 'GIT_AUTHOR_IDENT'], {
        cwd,
        timeoutMs: 10_000,
      })
      const identity = parseGitIdentity(stdout.trim().replace(/ \d+ [+-]\d{4}$/, ''))
      if (identity) return identity
    } catch {
      // Not configured here, or a repository git does not look into: the next place, or none.
    }
  }
  return undefined
}

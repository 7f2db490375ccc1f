import { accessSync, constants, realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Isolation } from '@corral/node'
import type { Confine } from '@corral/tasks'

/**
 * How git is started on what a sandbox sent. Where the platform's tier can confine a single command, each git gets
 * namespaces of its own; otherwise, as in a cluster's pod, the limits of the process are what holds it. Undefined also
 * for a git from outside /usr, which is not seen in there.
 */
export function confineGit(isolation: Pick<Isolation, 'confine'>, path: string | undefined): Confine | undefined {
  const confine = isolation.confine?.bind(isolation)
  return confine && find('git', path)?.startsWith('/usr/') ? confine : undefined
}

function find(name: string, path = '/usr/bin:/bin'): string | undefined {
  for (const directory of path.split(delimiter)) {
    const candidate = join(directory, name)
    try {
      accessSync(candidate, constants.X_OK)
      return realpathSync(candidate)
    } catch {
      // Not in this one.
    }
  }
  return undefined
}

import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

/**
 * Writes a git configuration that includes the user's own. Which repositories of other owners are trusted is the user's
 * to say (`safe.directory`). Answers its path, for `GIT_CONFIG_GLOBAL`.
 */
export async function writeGlobalConfig(
  directory: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const home = env.HOME ?? homedir()
  const candidates = [
    env.GIT_CONFIG_GLOBAL,
    join(env.XDG_CONFIG_HOME ?? join(home, '.config'), 'git', 'config'),
    join(home, '.gitconfig'),
  ]
  const included = candidates.filter((path): path is string => path !== undefined && existsSync(path))
  const text = [
    '# Written by corral at every start: includes your own git configuration.',
    ...(namesSsh(env) ? [] : ['[core]\n\tsshCommand = ssh -oBatchMode=yes']),
    ...included.map((path) => `[include]\n\tpath = ${JSON.stringify(path)}`),
    '[core]\n\thooksPath = /dev/null',
    '[gc]\n\tauto = 0',
    // Mirrors and quarantines are bare, and git is always told which one it works in.
    '[safe]\n\tbareRepository = all',
    // Those that follow a repository of another kind say so.
    '[init]\n\tdefaultObjectFormat = sha1\n\tdefaultRefFormat = files',
    '[advice]\n\tdetachedHead = false',
    '',
  ].join('\n')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const path = join(directory, 'gitconfig')
  await writeFile(path, text, { mode: 0o600 })
  return path
}

/**
 * Whether something that this file would come before says which ssh git uses. What says so in an included file comes after it,
 * and a variable of the environment that names a command goes before any file.
 */
function namesSsh(env: Readonly<Record<string, string | undefined>>): boolean {
  if (env.GIT_SSH) return true
  const system = env.GIT_CONFIG_SYSTEM ?? '/etc/gitconfig'
  return existsSync(system) && /^\s*sshCommand\s*=/im.test(readFileSync(system, 'utf8'))
}

import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { CliError } from '../cli-error.js'

const run = promisify(execFile)
const limits = { timeout: 5 * 60_000, maxBuffer: 256 * 1024 * 1024, encoding: 'utf8' as const }

/**
 * The repository a directory is in: the directory itself where it is one, else the nearest above it. A path that is
 * nothing of the kind comes back as it is, for the platform to refuse.
 */
export function topOf(path: string): string {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory() || isRepository(path)) return path
  return above(path) ?? above(realpathSync(path)) ?? path
}

/** A link into a repository lies beside it: what is above the directory it leads to counts as well. */
function above(path: string): string | undefined {
  for (let top = dirname(path); top !== dirname(top); top = dirname(top)) if (existsSync(join(top, '.git'))) return top
  return undefined
}

function isRepository(path: string): boolean {
  const isBare = existsSync(join(path, 'HEAD')) && existsSync(join(path, 'objects'))
  return isBare || existsSync(join(path, '.git'))
}

/** How many files of a work tree are not committed, and of those how many git does not know. */
export interface Uncommitted {
  changed: number
  untracked: number
}

/** Undefined where git cannot tell: no work tree, no git, or a repository it does not trust. */
export async function findUncommitted(top: string): Promise<Uncommitted | undefined> {
  if (!existsSync(join(top, '.git'))) return undefined
  try {
    const { stdout } = await run(
      'git',
      [
        ...(await quiet(top)),
        'status',
        '--porcelain=v1',
        '-z',
        '--untracked-files=all',
        '--ignore-submodules=all',
        '--no-renames',
      ],
      { cwd: top, env: plainEnvironment(), ...limits },
    )
    const entries = stdout.split('\0').filter((entry) => entry !== '')
    const untracked = entries.filter((entry) => entry.startsWith('??')).length
    return { changed: entries.length - untracked, untracked }
  } catch {
    // What git cannot look at is not warned about; the platform says what is wrong with it.
    return undefined
  }
}

/** Options with which git runs nothing that a repository's configuration names, and writes nothing. */
async function quiet(top: string): Promise<string[]> {
  const base = ['--no-optional-locks', '-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null']
  const keys = ['config', '--name-only', '--null', '--get-regexp', '^filter\\..*\\.(clean|process|required)$']
  const { stdout } = await run('git', keys, { cwd: top, env: plainEnvironment(), ...limits }).catch(() => ({
    stdout: '',
  }))
  const filters = stdout.split('\0').filter((key) => key !== '')
  return [...base, ...filters.flatMap((key) => ['-c', `${key}=${key.endsWith('.required') ? 'false' : ''}`])]
}

/** A repository is found by its path alone, not by variables of a hook or an alias this runs in. */
export function plainEnvironment(more: Record<string, string> = {}): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env, ...more }
  for (const name of ['GIT_DIR', 'GIT_WORK_TREE', 'GIT_PREFIX', 'GIT_COMMON_DIR', 'GIT_NAMESPACE']) delete env[name]
  if (!('GIT_INDEX_FILE' in more)) delete env.GIT_INDEX_FILE
  return env
}

/**
 * Makes a commit of everything in the work tree, ignored files apart, on a branch of its own, and answers the branch.
 * Index, HEAD and work tree stay as they are: the commit is made through a copy of the index. In a repository without
 * a commit it is the first one.
 */
export async function commitUncommitted(top: string): Promise<{ branch: string; commit: string }> {
  const scratch = mkdtempSync(join(tmpdir(), 'corral-index-'))
  const index = join(scratch, 'index')
  const git = async (...args: string[]): Promise<string> => {
    const env = plainEnvironment({ GIT_INDEX_FILE: index, GIT_OPTIONAL_LOCKS: '0', ...(await identity(top)) })
    return (await run('git', ['-c', 'core.fsmonitor=false', ...args], { cwd: top, env, ...limits })).stdout.trim()
  }
  try {
    const { stdout } = await run('git', ['rev-parse', '--path-format=absolute', '--git-path', 'index'], {
      cwd: top,
      env: plainEnvironment(),
      ...limits,
    })
    // With its time: git looks again only at files that are as new as the index, and takes others of the same size for unchanged.
    if (existsSync(stdout.trim())) cpSync(stdout.trim(), index, { preserveTimestamps: true })
    await git('add', '--all', '--', ':/')
    const tree = await git('write-tree')
    const head = await git('rev-parse', '--quiet', '--verify', 'HEAD^{commit}').catch(() => undefined)
    const parents = head ? ['-p', head] : []
    const commit = await git('commit-tree', tree, ...parents, '-m', 'Uncommitted changes, taken along by corral')
    const branch = `corral/uncommitted-${commit.slice(0, 12)}`
    // The same files taken along twice in one second are the same commit: its branch may be there.
    await git('update-ref', `refs/heads/${branch}`, commit)
    return { branch, commit }
  } catch (cause) {
    const said = (cause as { stderr?: string }).stderr?.trim() || String(cause)
    throw new CliError(`the uncommitted files of ${top} could not be taken along: ${said.split('\n').at(-1)}`, {
      hint: 'Commit them yourself, or leave --include-uncommitted out.',
      cause,
    })
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Who the commit is by: the user as git knows them, else Corral. */
async function identity(top: string): Promise<Record<string, string>> {
  const known = await run('git', ['var', 'GIT_COMMITTER_IDENT'], { cwd: top, env: plainEnvironment(), ...limits }).then(
    () => true,
    () => false,
  )
  if (known) return {}
  const [name, email] = ['Corral', 'corral@localhost']
  return { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email }
}

import type { Stats } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { TaskError } from '../task-error.js'
import { branchMissing, repositoryMissing } from './git-failure.js'
import type { RepositoryLocation } from './repository-url.js'

/** The directory a repository on this machine is in; undefined for one that lies elsewhere. */
export function localPathOf(location: RepositoryLocation): string | undefined {
  if (location.kind === 'local') return location.path
  return location.transport === 'file' ? fileURLToPath(location.url) : undefined
}

/**
 * Refuses what can be seen to fail without asking git: no repository at the path, or no such base branch in it. Reads a
 * few small files, so that a request may wait for it. What it cannot judge (another ref storage) it lets pass.
 */
export async function checkLocalRepository(path: string, baseBranch?: string): Promise<void> {
  const git = await gitDirectory(path)
  if (!git) {
    const found = await find(path)
    if (!found) throw repositoryMissing(path)
    const what = found.isDirectory() ? 'a directory without a git repository' : 'a file, not a git repository'
    throw new TaskError('RepositoryNotFound', `${path} is ${what}`, {
      hint: 'Give the top directory of the repository; make one with `git init` and a first commit.',
    })
  }
  if (baseBranch && !(await hasBranch(git, baseBranch))) throw branchMissing(baseBranch, path)
}

/** The places git looks at for a path, in its order. */
async function gitDirectory(path: string): Promise<string | undefined> {
  for (const candidate of [join(path, '.git'), path, `${path}.git/.git`, `${path}.git`]) {
    const directory = await linkedDirectory(candidate)
    if (directory && (await find(join(directory, 'HEAD')))) return directory
  }
  return undefined
}

/** A work tree of its own, or a submodule, has a file `.git` that says where its repository is. */
async function linkedDirectory(path: string): Promise<string | undefined> {
  const info = await find(path)
  if (!info?.isFile()) return info?.isDirectory() ? path : undefined
  const target = /^gitdir: (.+)$/m.exec(await read(path))?.[1]?.trim()
  return target && (isAbsolute(target) ? target : resolve(dirname(path), target))
}

async function hasBranch(git: string, branch: string): Promise<boolean> {
  const shared = (await read(join(git, 'commondir'))).trim()
  const common = shared ? resolve(git, shared) : git
  if (await find(join(common, 'reftable'))) return true
  const ref = `refs/heads/${branch}`
  if ((await find(join(common, ref)))?.isFile()) return true
  const packed = await read(join(common, 'packed-refs'))
  return packed.split('\n').some((line) => line.endsWith(` ${ref}`))
}

/** What is not there; a path that may not be looked at is as good as missing, but says why. */
async function find(path: string): Promise<Stats | undefined> {
  return stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
    throw new TaskError('RepositoryNotFound', `${path} cannot be read: ${error.message}`, { cause: error })
  })
}

/** The text of a small file, empty where there is none. */
async function read(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '')
}

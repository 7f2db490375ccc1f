import { constants } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, readlink } from 'node:fs/promises'
import { CorralError } from '@corral/protocol'

const maxLinks = 40

/** A place below a root directory. `path` leads there through an open directory, so no parent can be exchanged. */
export interface ConfinedPath extends AsyncDisposable {
  /** Through `/proc/self/fd`; valid until disposed. The last part is no link. */
  readonly path: string
  /** The root itself. */
  readonly isRoot: boolean
}

/**
 * Finds a user's path below `root`, one opened directory after the other: links are followed by us and never lead out of
 * the root, and a directory that is exchanged for a link meanwhile is not followed at all. Absolute paths count from the
 * root, with or without the root's own name in front. A way out is `PermissionDenied`. With `create`, missing parents
 * are made.
 */
export async function confine(root: string, userPath: string, create = false): Promise<ConfinedPath> {
  if (userPath.includes('\0')) throw new CorralError('BadRequest', 'a path must not contain NUL')
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
  const top = await open(root, constants.O_RDONLY | constants.O_DIRECTORY)
  const stack: { name: string; directory: FileHandle }[] = [{ name: '', directory: top }]
  const dispose = async () => {
    await Promise.all(stack.map(({ directory }) => directory.close()))
  }
  try {
    const pending = partsBelow(root, userPath)
    let links = 0
    for (let part = pending.shift(); part !== undefined; part = pending.shift()) {
      if (part === '..') {
        if (stack.length === 1) throw new CorralError('PermissionDenied', `"${userPath}" leads out of ${root}`)
        await stack.pop()?.directory.close()
        continue
      }
      const at = `/proc/self/fd/${stack.at(-1)!.directory.fd}/${part}`
      const info = await lstat(at).catch(ignoreMissing)
      if (info?.isSymbolicLink()) {
        links += 1
        if (links > maxLinks) throw new CorralError('Invalid', `"${userPath}" has too many links`)
        const target = await readlink(at)
        if (target.startsWith('/')) {
          if (!isBelow(root, target)) throw new CorralError('PermissionDenied', `"${userPath}" leads out of ${root}`)
          while (stack.length > 1) await stack.pop()?.directory.close()
          pending.unshift(...partsBelow(root, target))
        } else pending.unshift(...target.split('/').filter(isName))
        continue
      }
      if (pending.every((rest) => rest === '.')) return { path: at, isRoot: false, [Symbol.asyncDispose]: dispose }
      if (!info && create) await mkdir(at, 0o755).catch(ignoreExisting)
      stack.push({ name: part, directory: await open(at, flags) })
    }
    return {
      path: `/proc/self/fd/${stack.at(-1)!.directory.fd}`,
      isRoot: stack.length === 1,
      [Symbol.asyncDispose]: dispose,
    }
  } catch (error) {
    await dispose()
    throw error
  }
}

/** Whether a path is the root or below it; a sibling that starts with the root's name is not. */
function isBelow(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith('/') ? root : `${root}/`)
}

function partsBelow(root: string, path: string): string[] {
  const inside = isBelow(root, path) ? path.slice(root.length) : path
  return inside.split('/').filter(isName)
}

function isName(part: string): boolean {
  return part !== '' && part !== '.'
}

function ignoreMissing(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
  throw error
}

function ignoreExisting(error: unknown): void {
  if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
}

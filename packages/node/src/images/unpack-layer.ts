import { constants } from 'node:fs'
import { chmod, link, lstat, mkdir, open, readdir, readlink, rm, symlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { ImageError } from './image-error.js'
import { readTar, type TarEntry } from './read-tar.js'

export interface ImageLimits {
  maxBytes: number
  maxFiles: number
}

/** What was taken away or left out while an image was unpacked. */
export interface Stripped {
  setuid: number
  devices: number
}

export interface Unpacked {
  bytes: number
  files: number
  stripped: Stripped
}

const whiteout = '.wh.'
const opaque = '.wh..wh..opq'
const longestPath = 4096
const mostLinks = 40

/**
 * Unpacks one layer over what is in `root`, which nobody else writes to. Nothing is written outside: links are followed as if
 * `root` were `/`. Every file belongs to this process's user; set-id bits are dropped, devices, pipes and sockets left
 * out, extended attributes ignored.
 */
export async function unpackLayer(
  root: string,
  archive: AsyncIterable<Uint8Array>,
  sum: Unpacked,
  limits: ImageLimits,
): Promise<void> {
  for await (const entry of readTar(archive)) {
    const path = innerPath(entry.path)
    if (path === '') {
      continue
    }
    counted(sum, limits)
    try {
      await unpackEntry(root, path, entry, sum, limits)
    } catch (error) {
      throw refusedName(error, entry)
    }
  }
}

async function unpackEntry(root: string, path: string, entry: TarEntry, sum: Unpacked, limits: ImageLimits) {
  const name = basename(path)
  const parent = await inside(root, dirname(path), { create: true, made: () => counted(sum, limits) })
  if (name === opaque) await empty(parent)
  else if (name.startsWith(whiteout)) await remove(join(parent, checkedName(name.slice(whiteout.length), entry)))
  else await place(root, join(parent, name), entry, sum, limits)
}

/** A name that the file system does not take is a fault of the archive. */
function refusedName(error: unknown, { path }: TarEntry): unknown {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENAMETOOLONG' || code === 'EINVAL' || code === 'EISDIR' || code === 'EMLINK'
    ? new ImageError('InvalidArchive', `the entry "${path.slice(0, 100)}" cannot be kept: ${code}`, { cause: error })
    : error
}

/** Directories that an entry only implies count as well: one path may imply two thousand. */
function counted(sum: Unpacked, { maxFiles }: ImageLimits): void {
  if (++sum.files > maxFiles) throw new ImageError('TooLarge', `the image has more than ${maxFiles} files`)
}

async function place(root: string, at: string, entry: TarEntry, sum: Unpacked, limits: ImageLimits): Promise<void> {
  if ((entry.mode & 0o6000) !== 0 && entry.kind !== 'symlink') sum.stripped.setuid++
  const mode = entry.mode & 0o777
  switch (entry.kind) {
    case 'directory': {
      const there = await lstat(at).catch(absent)
      // A directory over a link to one is what /lib is to a merged /usr: the link stays.
      if (there?.isSymbolicLink()) return
      if (there && !there.isDirectory()) await remove(at)
      await mkdir(at, { recursive: true })
      // Whoever imports has to be able to write into it and to remove it again.
      await chmod(at, mode | 0o700)
      return
    }
    case 'file': {
      // Before the first byte: an entry that says it has a terabyte fills no disk first.
      if (sum.bytes + entry.sizeBytes > limits.maxBytes)
        throw new ImageError('TooLarge', `the image takes more than ${limits.maxBytes} bytes`)
      sum.bytes += entry.sizeBytes
      await remove(at)
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
      const file = await open(at, flags, 0o600)
      try {
        for await (const part of entry.content) await file.writeFile(part)
        await file.chmod(mode | 0o400)
        await file.utimes(entry.mtimeSeconds, entry.mtimeSeconds)
      } finally {
        await file.close()
      }
      return
    }
    case 'symlink':
      if (entry.target === '' || entry.target.includes('\0') || entry.target.length > longestPath)
        throw new ImageError('InvalidArchive', `the link ${entry.path} leads nowhere`)
      await remove(at)
      await symlink(entry.target, at)
      return
    case 'link': {
      const path = innerPath(entry.target)
      const source = join(await inside(root, dirname(path), { create: false }), basename(path))
      const there = await lstat(source).catch(absent)
      // The link itself gets another name where the source is a symbolic one; nothing follows it.
      if (!there?.isFile() && !there?.isSymbolicLink())
        throw new ImageError(
          'Unsafe',
          `the hard link ${entry.path} does not lead to a file of the image: ${entry.target}`,
        )
      if (source === at) return
      await remove(at)
      await link(source, at)
      return
    }
    case 'other':
      sum.stripped.devices++
  }
}

/** The path below the root, without a leading slash; '' for the root itself. `..` is refused: no honest archive has it. */
function innerPath(path: string): string {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  if (parts.includes('..') || path.includes('\0'))
    throw new ImageError('Unsafe', `the entry "${path}" leads out of the image`)
  if (path.length > longestPath) throw new ImageError('InvalidArchive', 'a path in the image is too long')
  return parts.join('/')
}

function checkedName(name: string, { path }: TarEntry): string {
  if (name === '' || name === '.' || name === '..')
    throw new ImageError('Unsafe', `the entry "${path}" leads out of the image`)
  return name
}

/** The real directory of a path inside `root`: links on the way are followed as if `root` were `/`. */
export async function inside(
  root: string,
  path: string,
  { create, made }: { create: boolean; made?: () => void },
): Promise<string> {
  let done: string[] = []
  const left = path.split('/').filter((part) => part !== '' && part !== '.')
  for (let links = 0; left.length > 0; ) {
    const part = left.shift()!
    if (part === '..') {
      done = done.slice(0, -1)
      continue
    }
    const at = join(root, ...done, part)
    const there = await lstat(at).catch(absent)
    if (there?.isSymbolicLink()) {
      if (++links > mostLinks) throw new ImageError('Unsafe', `too many links on the way to "${path}"`)
      const target = await readlink(at)
      if (target.startsWith('/')) done = []
      left.unshift(...target.split('/').filter((each) => each !== '' && each !== '.'))
      continue
    }
    if (!there && create) {
      made?.()
      await mkdir(at, { mode: 0o755 })
    } else if (!there?.isDirectory())
      throw new ImageError('InvalidArchive', `"${path}" is not in a directory of the image`)
    done.push(part)
  }
  return join(root, ...done)
}

async function empty(directory: string): Promise<void> {
  for (const name of await readdir(directory)) await remove(join(directory, name))
}

const remove = (path: string): Promise<void> => rm(path, { recursive: true, force: true })
const absent = (error: NodeJS.ErrnoException): undefined => {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
}

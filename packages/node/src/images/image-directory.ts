import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream, existsSync, readFileSync, statSync } from 'node:fs'
import { chmod, lstat, mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import * as z from 'zod'
import { bounded, plainBytes } from './decompress.js'
import { ImageError } from './image-error.js'
import { type LayeredImage, readLayout } from './oci-layout.js'
import { readTar } from './read-tar.js'
import { lackingForTasks } from './task-needs.js'
import { type ImageLimits, inside, type Unpacked, unpackLayer } from './unpack-layer.js'

/** An image this node can start pods from. */
export interface ImportedImage {
  name: string
  digest: string
  importedAt: string
  bytes: number
  files: number
  stripped: { setuid: number; devices: number }
  /** What the sandbox of a task needs and the image does not have. */
  lacks?: string[] | undefined
  argv?: string[] | undefined
  env?: Record<string, string> | undefined
  workingDir?: string | undefined
  /** The directory that becomes `/`. */
  root: string
}

const recordSchema = z.object({
  name: z.string(),
  digest: z.string(),
  importedAt: z.string(),
  bytes: z.number(),
  files: z.number(),
  stripped: z.object({ setuid: z.number(), devices: z.number() }),
  lacks: z.array(z.string()).optional(),
  argv: z.array(z.string()).optional(),
  env: z.record(z.string(), z.string()).optional(),
  workingDir: z.string().optional(),
})

export const imageLimits: ImageLimits = { maxBytes: 20 * 2 ** 30, maxFiles: 1_000_000 }

/** Where platform and pods put things of their own: files and directories an image must have, for it is mounted read-only. */
const ownFiles = ['etc/resolv.conf', 'etc/hosts', 'etc/hostname', 'etc/passwd', 'etc/group']
const ownDirectories = ['proc', 'dev', 'run', 'tmp', 'home', 'var', 'etc', 'usr']
const ownLinks: readonly [path: string, target: string][] = [
  ['var/run', '/run'],
  ['var/tmp', '/tmp'],
]

const longestImportMs = 6 * 3_600_000

/** Images in one directory of the data directory, one subdirectory each; what begins with a dot is half made. */
export class ImageDirectory {
  constructor(private readonly directory: string) {}

  /** The image a pod names, tag included; `name` and `name:latest` are the same. */
  find(image: string): ImportedImage | undefined {
    const name = canonicalName(image)
    return name === undefined ? undefined : this.#read(folderOf(name))
  }

  async list(): Promise<ImportedImage[]> {
    const names = await readdir(this.directory).catch(() => [])
    return names
      .filter((name) => !name.startsWith('.'))
      .flatMap((name) => this.#read(name) ?? [])
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /**
   * Makes an image from an OCI layout (a directory or a tar archive of one, `docker save` included) or a tar archive of a root
   * file system. It appears whole or not at all. `AlreadyExists` unless `replace`.
   */
  async import(
    given: string,
    path: string,
    { replace = false, limits = imageLimits }: { replace?: boolean; limits?: ImageLimits } = {},
  ): Promise<ImportedImage> {
    const name = canonicalName(given)
    if (name === undefined)
      throw new ImageError(
        'InvalidName',
        `"${given}" is no name of an image: lower-case letters, digits, . _ - / and a tag`,
      )
    const target = join(this.directory, folderOf(name))
    if (!replace && existsSync(target)) throw new ImageError('AlreadyExists', `there is an image "${name}" already`)
    if (!existsSync(path)) throw new ImageError('NotFound', `there is no ${path}`)
    // Passable for pods, whose users are others; what is in the making is not.
    await mkdir(this.directory, { recursive: true, mode: 0o711 })
    const half = join(this.directory, `.${randomBytes(8).toString('hex')}`)
    await mkdir(half, { mode: 0o700 })
    try {
      const record = await unpack(name, path, half, limits).catch((error: unknown) => {
        throw fullDisk(error, name) ?? error
      })
      await writeFile(join(half, 'image.json'), JSON.stringify(record, null, 2))
      await chmod(half, 0o711)
      if (replace) await this.#setAside(target)
      await rename(half, target)
      return { ...record, root: join(target, 'root') }
    } finally {
      await rm(half, { recursive: true, force: true })
    }
  }

  /** Answers whether there was one. Pods that run from it lose what they have not opened. */
  async remove(image: string): Promise<boolean> {
    const name = canonicalName(image)
    return name !== undefined && (await this.#setAside(join(this.directory, folderOf(name))))
  }

  /** Removes what a process that was killed left; one that is at work just now keeps what it has. */
  async sweep(): Promise<void> {
    for (const name of await readdir(this.directory).catch(() => [])) {
      const there = name.startsWith('.') ? await lstat(join(this.directory, name)).catch(() => undefined) : undefined
      if (there && Date.now() - there.mtimeMs > longestImportMs)
        await rm(join(this.directory, name), { recursive: true, force: true })
    }
  }

  async #setAside(target: string): Promise<boolean> {
    const aside = join(this.directory, `.${randomBytes(8).toString('hex')}`)
    try {
      await rename(target, aside)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      return false
    }
    await rm(aside, { recursive: true, force: true })
    return true
  }

  #read(folder: string): ImportedImage | undefined {
    const at = join(this.directory, folder)
    try {
      const record = recordSchema.parse(JSON.parse(readFileSync(join(at, 'image.json'), 'utf8')))
      return { ...record, root: join(at, 'root') }
    } catch {
      // Absent, or being removed: no image.
      return undefined
    }
  }
}

function fullDisk(error: unknown, name: string): ImageError | undefined {
  const { code } = error as NodeJS.ErrnoException
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return undefined
  return new ImageError('DiskFull', `the disk is full: there is no room for "${name}"`, { cause: error })
}

/** What an archive may unpack to: the files, and for each of them a header, its padding and attributes. */
const budgetOf = ({ maxBytes, maxFiles }: ImageLimits): { leftBytes: number } => ({
  leftBytes: maxBytes + maxFiles * 2048,
})

async function unpack(
  name: string,
  path: string,
  half: string,
  limits: ImageLimits,
): Promise<Omit<ImportedImage, 'root'>> {
  const root = join(half, 'root')
  await mkdir(root, { mode: 0o755 })
  await chmod(root, 0o755)
  const sum: Unpacked = { bytes: 0, files: 0, stripped: { setuid: 0, devices: 0 } }
  const image = await sourceOf(path, join(half, 'layout'), limits)
  const budget = budgetOf(limits)
  for (const layer of image.layers) await unpackLayer(root, bounded(layer(), budget), sum, limits)
  await rm(join(half, 'layout'), { recursive: true, force: true })
  if (sum.files === 0) throw new ImageError('InvalidArchive', 'the image is empty')
  await fit(root)
  const { digest, config } = image
  const lacks = await lackingForTasks(root)
  return {
    name,
    digest,
    importedAt: new Date().toISOString(),
    ...sum,
    ...(lacks.length > 0 ? { lacks } : {}),
    ...config,
  }
}

async function sourceOf(path: string, staging: string, limits: ImageLimits): Promise<LayeredImage> {
  if (statSync(path).isDirectory()) return readLayout(path)
  const archive = (): AsyncIterable<Uint8Array> => bounded(plainBytes(createReadStream(path)), budgetOf(limits))
  if (await isLayout(archive())) {
    await stage(archive(), staging, limits)
    return readLayout(staging)
  }
  const hash = createHash('sha256')
  for await (const part of createReadStream(path)) hash.update(part as Buffer)
  return { digest: `sha256:${hash.digest('hex')}`, config: {}, layers: [archive] }
}

/** Files of archives that Docker (old and new), podman, skopeo, buildkit and crane write. */
const layoutFile =
  /^(oci-layout|index\.json|manifest\.json|repositories|(sha256:)?[0-9a-f]{64}(\.json|\.tar|\.tar\.gz)?|blobs\/sha256\/[0-9a-f]{64}|[0-9a-f]{64}\/(layer\.tar|json|VERSION))$/

/** What the archive's first name says. */
async function isLayout(archive: AsyncIterable<Uint8Array>): Promise<boolean> {
  for await (const { path } of readTar(archive)) {
    const inner = path.replace(/^(\.?\/)+/, '').replace(/\/$/, '')
    if (inner === '' || inner === '.') continue
    return layoutFile.test(inner) || /^blobs(\/sha256)?$/.test(inner)
  }
  throw new ImageError('InvalidArchive', 'the archive is empty')
}

/** An image of the most layers that tools make has a quarter of them. */
const mostLayoutFiles = 2_000

/** Puts the files of an archived layout into a directory, under names that are known and nothing else. */
async function stage(archive: AsyncIterable<Uint8Array>, staging: string, limits: ImageLimits): Promise<void> {
  let bytes = 0
  let files = 0
  for await (const entry of readTar(archive)) {
    const inner = entry.path.replace(/^(\.?\/)+/, '')
    if (!layoutFile.test(inner)) continue
    if (++files > mostLayoutFiles)
      throw new ImageError('TooLarge', `the archive has more than ${mostLayoutFiles} files of a layout`)
    const at = join(staging, inner)
    if (entry.kind === 'file') {
      bytes += entry.sizeBytes
      if (bytes > limits.maxBytes)
        throw new ImageError('TooLarge', `the archive takes more than ${limits.maxBytes} bytes`)
      await mkdir(dirname(at), { recursive: true })
      await rm(at, { force: true })
      await pipeline(Readable.from(entry.content), createWriteStream(at, { flags: 'wx' }))
    } else if (entry.kind === 'symlink') {
      // Docker writes a layer that is the same as another as a link to that one.
      const target = posix.join(posix.dirname(inner), entry.target)
      if (!layoutFile.test(target)) continue
      await mkdir(dirname(at), { recursive: true })
      await rm(at, { force: true })
      await symlink(posix.relative(posix.dirname(inner), target), at)
    }
  }
}

/** Makes room for what is mounted into every pod. */
async function fit(root: string): Promise<void> {
  for (const path of ownDirectories) {
    const there = await lstat(join(root, path)).catch(() => undefined)
    if (there && !there.isDirectory() && !there.isSymbolicLink())
      throw new ImageError('InvalidArchive', `/${path} is no directory: this is no root file system`)
    if (!there) await mkdir(join(root, path))
  }
  for (const [path, target] of ownLinks) {
    const at = join(await inside(root, dirname(path), { create: true }), path.slice(path.lastIndexOf('/') + 1))
    await rm(at, { recursive: true, force: true })
    await symlink(target, at)
  }
  for (const path of ownFiles) {
    const at = join(await inside(root, dirname(path), { create: true }), path.slice(path.lastIndexOf('/') + 1))
    if ((await lstat(at).catch(() => undefined))?.isFile()) continue
    await rm(at, { recursive: true, force: true })
    await writeFile(at, '')
  }
}

const nameForm = /^[a-z0-9]+([._/-][a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$/
const withPort = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?:[0-9]{1,5}\//

/** `name:tag` with its tag; undefined for what is no name. A digest is no part of what is asked for here. */
export function canonicalName(image: string): string | undefined {
  const plain = image.split('@')[0] ?? ''
  const host = withPort.exec(plain)?.[0] ?? ''
  const rest = plain.slice(host.length)
  if (!nameForm.test(rest) || plain.length > 200) return undefined
  return rest.includes(':') ? plain : `${plain}:latest`
}

const folderOf = (name: string): string => encodeURIComponent(name)

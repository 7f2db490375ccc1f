import { constants } from 'node:fs'
import { chmod, copyFile, link, lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import type { ToolName } from '@corral/protocol'

/** Files that hold credentials or settings of a person; left out wherever they lie. */
const privateNames = new Set([
  ...['.npmrc', 'npmrc', '.netrc', '.pypirc', 'pip.conf', '.yarnrc', '.yarnrc.yml', '.env', '.git-credentials'],
  ...['credentials', 'credentials.toml', 'credentials.json', 'settings.xml', 'settings-security.xml', 'auth.json'],
  ...['.git', '.config', '.ssh', '.aws', '.gnupg', '.docker', '.kube', '.m2', '.gradle', '.cache'],
])
/** Parts of toolchains that no build needs, below their root. */
const leftOut = new Set(['share/doc', 'share/man', 'share/info', 'pkg/mod', 'doc', 'api', 'demo', 'sample', 'tmp'])

/** Packages that come with Python; what else its owner has installed is not the toolchain. */
const ownPythonPackages =
  /^(pip|setuptools|wheel|_distutils_hack|pkg_resources|distutils-precedence\.pth)(-[\d.]+\.dist-info)?$/i
const ownPythonPrograms = /^(python|pip|pydoc|idle|2to3)[\d.]*(-config)?$/

/**
 * Copies the parts of a toolchain that programs need into `into`. Files are linked where they can be: one kept twice would
 * take gigabytes. What names the former place in its first line or as the path of its libraries is changed to the new one,
 * `inside`, on a copy.
 */
export async function adoptToolchain(tool: ToolName, from: string, into: string, inside: string): Promise<void> {
  await adoptDirectory({ tool, from, into, inside }, '')
}

interface Adoption {
  tool: ToolName
  from: string
  into: string
  inside: string
}

async function adoptDirectory(adoption: Adoption, path: string): Promise<void> {
  const target = join(adoption.into, path)
  await mkdir(target, { recursive: true, mode: 0o755 })
  await chmod(target, 0o755)
  for (const entry of await readdir(join(adoption.from, path), { withFileTypes: true })) {
    const below = path === '' ? entry.name : `${path}/${entry.name}`
    if (isLeftOut(adoption.tool, below)) continue
    if (entry.isDirectory()) await adoptDirectory(adoption, below)
    else if (entry.isSymbolicLink()) await adoptLink(adoption, below)
    else if (entry.isFile()) await adoptFile(adoption, below)
  }
}

/** Whether this path of a toolchain stays where it is. Pure. */
export function isLeftOut(tool: ToolName, path: string): boolean {
  if (privateNames.has(basename(path)) || leftOut.has(path)) return true
  if (tool !== 'python') return false
  if (basename(path) === '__pycache__') return true
  if (dirname(path) === 'bin') return !ownPythonPrograms.test(basename(path))
  return basename(dirname(path)) === 'site-packages' && !ownPythonPackages.test(basename(path))
}

/** A link that leads out of the toolchain leads nowhere in a sandbox, unless /usr has its end. */
async function adoptLink({ from, into }: Adoption, path: string): Promise<void> {
  const end = resolve(dirname(join(from, path)), await readlink(join(from, path)))
  const below = relative(from, end)
  if (below !== '..' && !below.startsWith(`..${sep}`) && !below.startsWith(sep))
    await symlink(relative(dirname(join(from, path)), end) || '.', join(into, path))
  else if (end.startsWith('/usr/')) await symlink(end, join(into, path))
}

async function adoptFile(adoption: Adoption, path: string): Promise<void> {
  const source = join(adoption.from, path)
  const target = join(adoption.into, path)
  const { mode, size } = await lstat(source)
  const wanted = (mode & 0o111) === 0 ? 0o644 : 0o755
  const moved =
    dirname(path) === 'bin' && size < 64 * 1024 * 1024 ? movedProgram(await readFile(source), adoption) : undefined
  if (moved) {
    await writeFile(target, moved, { mode: wanted })
    return chmod(target, wanted)
  }
  // Readable for the users of sandboxes, and without rights a program would gain: then it can be the same file.
  const isPlain =
    (mode & 0o444) === 0o444 && (mode & 0o7000) === 0 && ((mode & 0o111) === 0 || (mode & 0o111) === 0o111)
  if (
    isPlain &&
    (await link(source, target).then(
      () => true,
      () => false,
    ))
  )
    return
  await copyFile(source, target, constants.COPYFILE_FICLONE)
  await chmod(target, wanted)
}

/** The program as it has to be at its new place; undefined where it is the same. Pure. */
export function movedProgram(content: Buffer, { from, inside }: Pick<Adoption, 'from' | 'inside'>): Buffer | undefined {
  if (content.subarray(0, 2).toString() === '#!') {
    const end = content.indexOf(10)
    const line = content.subarray(0, end < 0 ? content.length : end).toString()
    if (!line.includes(`${from}/`)) return undefined
    return Buffer.concat([
      Buffer.from(line.replaceAll(`${from}/`, `${inside}/`)),
      content.subarray(end < 0 ? content.length : end),
    ])
  }
  if (content.subarray(0, 4).toString('latin1') !== '\x7fELF') return undefined
  // The path of its libraries, as the linker wrote it; the loader takes $ORIGIN for the directory of the program.
  const former = Buffer.from(`${from}/lib\0`)
  const now = Buffer.from('$ORIGIN/../lib\0')
  const at = content.indexOf(former)
  if (at < 0 || now.length > former.length) return undefined
  const moved = Buffer.from(content)
  for (let next = at; next >= 0; next = moved.indexOf(former, next + 1)) {
    moved.fill(0, next, next + former.length)
    now.copy(moved, next)
  }
  return moved
}

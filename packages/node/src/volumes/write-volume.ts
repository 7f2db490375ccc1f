import { chmod, mkdir, readdir, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { giveTo } from '../records/pod-directories.js'
import type { VolumeFile } from './volume-files.js'

const dataLink = '..data'

/**
 * Makes the directory hold exactly these files, all of them changing at one moment: they live in a directory of their
 * own that the link `..data` is switched to. Answers whether anything changed.
 */
export async function writeVolume(directory: string, files: readonly VolumeFile[], hostUid: number): Promise<boolean> {
  await mkdir(directory, { recursive: true, mode: 0o755 })
  const current = await readlink(join(directory, dataLink)).catch(() => undefined)
  if (current !== undefined && (await holdsExactly(join(directory, current), files))) return false

  const next = `..v${(Number(current?.slice(3)) || 0) + 1}`
  await rm(join(directory, next), { recursive: true, force: true })
  await mkdir(join(directory, next), { mode: 0o755 })
  for (const file of files) {
    const target = join(directory, next, file.path)
    await mkdir(dirname(target), { recursive: true, mode: 0o755 })
    await writeFile(target, file.content)
    await chmod(target, file.mode)
    giveTo(target, hostUid)
  }
  await symlink(next, join(directory, `${dataLink}_new`))
  await rename(join(directory, `${dataLink}_new`), join(directory, dataLink))
  await linkNames(directory, files)
  if (current !== undefined) await rm(join(directory, current), { recursive: true, force: true })
  return true
}

async function linkNames(directory: string, files: readonly VolumeFile[]): Promise<void> {
  const wanted = new Set(files.map((file) => file.path.split('/')[0]!))
  for (const name of await readdir(directory)) {
    if (name.startsWith('..')) continue
    if (!wanted.delete(name)) await rm(join(directory, name), { force: true })
  }
  for (const name of wanted) await symlink(join(dataLink, name), join(directory, name))
}

async function holdsExactly(directory: string, files: readonly VolumeFile[]): Promise<boolean> {
  const present = (await readdir(directory, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
  if (present.length !== new Set(files.map((file) => file.path)).size) return false
  for (const file of files) {
    const content = await readFile(join(directory, file.path)).catch(() => undefined)
    if (!content?.equals(file.content)) return false
  }
  return true
}

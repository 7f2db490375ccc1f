import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CorralError } from '@corral/protocol'

/**
 * With all above it. `NotADirectory` where something else has the name of one of them. Not with Node's `recursive`: that
 * reports a read-only file system as a missing file, and below `/proc`, which takes no directories, it never ends.
 */
export async function makeDirectory(path: string): Promise<void> {
  const missing: string[] = []
  for (let directory = path; !(await isMade(directory)); directory = dirname(directory)) missing.push(directory)
  for (const directory of missing.reverse()) {
    try {
      await mkdir(directory)
    } catch (error) {
      // Made by another request meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      await requireDirectory(directory)
    }
  }
}

/** False where a directory above it has to be made first. */
async function isMade(directory: string): Promise<boolean> {
  try {
    await mkdir(directory)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && dirname(directory) !== directory) return false
    if (code !== 'EEXIST') throw error
    await requireDirectory(directory)
    return true
  }
}

async function requireDirectory(path: string): Promise<void> {
  if (!(await stat(path)).isDirectory()) throw new CorralError('NotADirectory', `"${path}" is not a directory`)
}

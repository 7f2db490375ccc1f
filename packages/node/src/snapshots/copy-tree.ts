import { execFile } from 'node:child_process'
import { closeSync, constants, mkdirSync, openSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { errorCode } from '@corral/resources'
import { giveTo, ownedDirectory } from '../records/pod-directories.js'
import { removeTree } from '../records/remove-tree.js'
import type { PodPlace } from './pod-place.js'

export interface CopyInput {
  source: string
  place: PodPlace
  /** A directory of the pod that the pod itself does not see. */
  staging: string
  hostUid: number
  signal: AbortSignal
}

const run = promisify(execFile)

/**
 * Puts a copy of the tree into a directory of the pod, for machines that cannot attach it. The copy is made where the pod
 * cannot reach it and then moved in, name by name, on open handles: a pod that runs may put links in our way. What has the
 * name of something in the tree gives way to it; the rest stays.
 */
export async function copyTree({ source, place, staging, hostUid, signal }: CopyInput): Promise<void> {
  await removeTree(staging)
  mkdirSync(staging, { recursive: true, mode: 0o700 })
  const [copy, replaced] = [join(staging, 'copy'), join(staging, 'replaced')]
  mkdirSync(replaced)
  await run('cp', ['-a', '--reflink=auto', '--', source, copy], { signal })
  if (process.getuid?.() === 0) await run('chown', ['-hR', `${hostUid}:${hostUid}`, '--', copy], { signal })
  ownedDirectory(place.root, hostUid, 0o777)
  const target = openBelow(place, hostUid)
  try {
    const inside = (name: Buffer): Buffer => Buffer.concat([Buffer.from(`/proc/self/fd/${target}/`), name])
    for (const name of readdirSync(copy, { encoding: 'buffer' })) {
      moveIfThere(inside(name), Buffer.concat([Buffer.from(`${replaced}/`), name]))
      renameSync(Buffer.concat([Buffer.from(`${copy}/`), name]), inside(name))
    }
  } finally {
    closeSync(target)
  }
  await removeTree(staging)
}

/** Walks down directory by directory; a missing one is made, a link is refused. */
function openBelow({ root, relative }: PodPlace, hostUid: number): number {
  const flags = constants.O_DIRECTORY | constants.O_NOFOLLOW
  let current = openSync(root, flags)
  for (const part of relative.split('/').filter(Boolean)) {
    const path = join('/proc/self/fd', String(current), part)
    try {
      mkdirSync(path)
      giveTo(path, hostUid)
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
    }
    const next = openSync(path, flags)
    closeSync(current)
    current = next
  }
  return current
}

function moveIfThere(from: Buffer, to: Buffer): void {
  try {
    renameSync(from, to)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
}

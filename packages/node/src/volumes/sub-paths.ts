import { closeSync, constants, fstatSync, lstatSync, mkdirSync, openSync, realpathSync, statSync } from 'node:fs'
import { join, sep } from 'node:path'
import { errorCode } from '@corral/resources'
import type { ContainerMounts } from '../launch/container-mounts.js'
import { LaunchError } from '../launch/launch-error.js'
import { giveTo } from '../records/pod-directories.js'

type SubPath = ContainerMounts['subPaths'][number]

/**
 * Makes the directories below volumes that `subPath` names. What is in a writable volume was put there by the pod, so
 * no link is followed there; files from the API hang on links of our own, which must stay inside the volume. Answers
 * the identity of each by its source, for the mount to be held to.
 */
export function makeSubPaths(subPaths: readonly SubPath[], hostUid: number): Map<string, string> {
  return new Map(
    subPaths.map((subPath) => [subPath.source, subPath.readOnly ? checkInside(subPath) : makeBelow(subPath, hostUid)]),
  )
}

function checkInside({ root, relative, source }: SubPath): string {
  const home = realpathSync(root)
  let real: string
  try {
    real = realpathSync(source)
  } catch (cause) {
    throw new LaunchError('CreateContainerConfigError', `failed to prepare subPath "${relative}"`, { cause })
  }
  if (!real.startsWith(home + sep)) throw leadsOut(relative)
  return identityOf(statSync(real, { bigint: true }))
}

const identityOf = ({ dev, ino }: { dev: bigint; ino: bigint }): string => `${dev}:${ino}`

/** Walks down directory by directory on open handles: what was checked is what is used, whatever is renamed meanwhile. */
function makeBelow({ root, relative }: SubPath, hostUid: number): string {
  const handles = [openSync(root, constants.O_DIRECTORY | constants.O_NOFOLLOW)]
  const parts = relative.split('/').filter(Boolean)
  try {
    for (const [index, part] of parts.entries()) {
      const path = join('/proc/self/fd', String(handles.at(-1)), part)
      const next = openOrMake(path, hostUid)
      if (next !== undefined) {
        handles.push(next)
        continue
      }
      const found = lstatSync(path, { bigint: true })
      if (index < parts.length - 1 || !found.isFile()) throw leadsOut(relative)
      return identityOf(found)
    }
    // There is at least the volume's own handle.
    return identityOf(fstatSync(handles.at(-1) as number, { bigint: true }))
  } finally {
    for (const handle of handles) closeSync(handle)
  }
}

/** The directory's handle; undefined where something else is in its place. */
function openOrMake(path: string, hostUid: number): number | undefined {
  const open = (): number => openSync(path, constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    return open()
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') return undefined
  }
  mkdirSync(path)
  giveTo(path, hostUid)
  return open()
}

function leadsOut(relative: string): LaunchError {
  return new LaunchError('CreateContainerConfigError', `subPath "${relative}" leads out of its volume`)
}

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { Cgroup } from '../cradle/server/cgroups.js'
import { StateFiles } from '../cradle/server/state-files.js'
import type { PodRecord } from '../records/pod-directories.js'
import { reserveFile, reserveSize } from './reserve-file.js'

export interface RoomMade {
  freeBytes: number
  /** What a start writes before it can end anything. */
  neededBytes: number
  /** What was removed, in words; empty where there was room. */
  freed: string[]
}

const startBytes = 8 * 2 ** 20
const startInodes = 64

/**
 * Before a start on a full disk: stops the sandboxes that still run there, so that they do not take what is freed, then
 * removes the reserve and, where that is not enough, what is left of pods that were evicted or never made. Call `thawPods`
 * once the disk is being watched, and on every other way out. Only for the one who holds the data directory's lock.
 */
export function makeRoom(dataDir: string): RoomMade {
  const freed: string[] = []
  const { blocks, bsize } = statfsSync(dataDir)
  const neededBytes = Math.min(startBytes, reserveSize(blocks * bsize))
  const isEnough = (): boolean => freeBytes(dataDir) >= neededBytes && hasInodes(dataDir)
  if (!isEnough()) {
    setFrozen(dataDir, true)
    const reserve = reserveFile(dataDir)
    if (reserve.isThere()) freed.push('the reserve')
    reserve.release()
    if (!isEnough()) freed.push(...removeLeftovers(join(dataDir, 'pods')))
  }
  return { freeBytes: freeBytes(dataDir), neededBytes, freed }
}

/** Lets sandboxes go on that a start on a full disk has stopped. Safe to repeat; nothing to do for the others. */
export function thawPods(dataDir: string): void {
  setFrozen(dataDir, false)
}

function setFrozen(dataDir: string, isFrozen: boolean): void {
  const directory = join(dataDir, 'cradle')
  const groups = existsSync(join(directory, 'journal')) ? new StateFiles(directory).groups() : undefined
  if (groups) new Cgroup(groups, '').freeze(isFrozen)
}

function removeLeftovers(pods: string): string[] {
  const freed: string[] = []
  for (const name of existsSync(pods) ? readdirSync(pods) : []) {
    const record = readRecord(join(pods, name, 'record.json'))
    if (record && record.failure?.reason !== 'Evicted') continue
    const parts = record ? ['home', 'tmp', 'volumes'] : ['']
    // Processes of an evicted pod may still run; `rm` goes by descriptors and follows no link they put in its way.
    for (const part of parts) spawnSync('rm', ['-rf', '--', join(pods, name, part)])
    freed.push(`the files of pod ${record ? `${record.namespace}/${record.name}` : name}`)
  }
  return freed
}

function readRecord(file: string): PodRecord | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as PodRecord // written by `podDirectories`, atomically
  } catch {
    return undefined // The pod was never made as a whole.
  }
}

function hasInodes(path: string): boolean {
  const { files, ffree } = statfsSync(path)
  return files === 0 || ffree >= Math.min(startInodes, files / 16)
}

function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize
}

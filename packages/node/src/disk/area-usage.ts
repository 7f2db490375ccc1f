import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { measurePod } from './pod-usage.js'

export interface AreaUsage {
  /** A directory or file directly below the data directory. */
  name: string
  bytes: number
}

/** What each part of a data directory takes, the largest first. Blocks its thread while it counts. */
export function areaUsage(dataDir: string): AreaUsage[] {
  const enough = { bytes: Number.POSITIVE_INFINITY, inodes: Number.POSITIVE_INFINITY }
  return readdirSync(dataDir, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => ({ name, bytes: measurePod({ directory: join(dataDir, name), enough }).total.bytes }))
    .sort((a, b) => b.bytes - a.bytes)
}

/** As people read it: `pods 310 MiB, mirrors 12 MiB`. Parts of less than a mebibyte are left out. */
export function areaText(areas: readonly AreaUsage[]): string {
  const large = areas.filter(({ bytes }) => bytes >= 2 ** 20)
  return large.map(({ name, bytes }) => `${name} ${Math.round(bytes / 2 ** 20)} MiB`).join(', ')
}

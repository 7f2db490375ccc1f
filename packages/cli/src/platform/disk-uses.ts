import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What is smaller is not worth a look. */
const smallestBytes = 10_000_000

const shown = 4

/**
 * What takes most of a data directory, for a person who has to free some of it: sandboxes by their names, the rest by directory.
 * Empty where that cannot be read in a few seconds.
 */
export function largestUses(dataDirectory: string): string {
  const pods = join(dataDirectory, 'pods')
  const directories = [
    ...entriesOf(dataDirectory).flatMap((name) => (name === 'pods' ? [] : [{ name, path: join(dataDirectory, name) }])),
    ...entriesOf(pods).map((uid) => ({ name: `sandbox ${podName(join(pods, uid)) ?? uid}`, path: join(pods, uid) })),
  ]
  if (directories.length === 0) return ''
  const counted = spawnSync('du', ['-xsk', '--', ...directories.map(({ path }) => path)], {
    encoding: 'utf8',
    timeout: 10_000,
  })
  const bytesOf = new Map(
    (counted.stdout ?? '').split('\n').map((line) => {
      const [kilobytes = '', path = ''] = line.split('\t')
      return [path, Number(kilobytes) * 1024]
    }),
  )
  const uses = directories
    .map(({ name, path }) => ({ name, bytes: bytesOf.get(path) ?? 0 }))
    .filter(({ bytes }) => bytes >= smallestBytes)
    .sort((one, other) => other.bytes - one.bytes)
    .slice(0, shown)
    .map(({ name, bytes }) => `${name} ${(bytes / 1e9).toFixed(2)} GB`)
  return uses.length > 0 ? `; most of it used by ${uses.join(', ')}` : ''
}

function entriesOf(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    // Not there yet, or another user's: then there is nothing to tell.
    return []
  }
}

function podName(directory: string): string | undefined {
  try {
    const record: unknown = JSON.parse(readFileSync(join(directory, 'record.json'), 'utf8'))
    return record !== null && typeof record === 'object' && 'name' in record ? String(record.name) : undefined
  } catch {
    // Its record may be half written on a full disk.
    return undefined
  }
}

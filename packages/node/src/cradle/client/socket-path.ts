import { openSync } from 'node:fs'
import { join } from 'node:path'

const maxAddressBytes = 107
const directories = new Map<string, number>()

/**
 * A path for a unix socket that fits into a socket address. Where the real one is too long it goes through an open
 * descriptor of its directory, which stays open for the life of this process.
 */
export function socketPath(directory: string, name: string): string {
  const path = join(directory, name)
  if (Buffer.byteLength(path) <= maxAddressBytes) return path
  let fd = directories.get(directory)
  if (fd === undefined) {
    fd = openSync(directory, 'r')
    directories.set(directory, fd)
  }
  return `/proc/self/fd/${fd}/${name}`
}

import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** Bytes on disk below a directory; what vanishes while counting counts nothing. Stops counting past `enoughBytes`. */
export async function directorySize(path: string, enoughBytes: number): Promise<number> {
  let total = 0
  const waiting = [path]
  for (let current = waiting.pop(); current !== undefined && total <= enoughBytes; current = waiting.pop()) {
    for (const entry of await readdir(current, { withFileTypes: true }).catch(() => [])) {
      const child = join(current, entry.name)
      if (entry.isDirectory()) waiting.push(child)
      const status = await lstat(child).catch(() => undefined)
      total += (status?.blocks ?? 0) * 512
    }
  }
  return total
}

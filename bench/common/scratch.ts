import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A directory for one run, reachable for the users sandboxes run as, removed at the end whatever happens. */
export async function withScratch<T>(run: (directory: string) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'corral-bench-'))
  chmodSync(directory, 0o711)
  try {
    return await run(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
  }
}

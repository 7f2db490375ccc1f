import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A directory for one run, reachable for the users sandboxes run as, removed at the end whatever happens. */
export async function withScratch<T>(run: (directory: string) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'corral-bench-'))
  chmodSync(directory, 0o711)
  const remove = (): void => rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
  process.once('exit', remove)
  endOnSignals()
  try {
    return await run(directory)
  } finally {
    remove()
    process.off('exit', remove)
  }
}

/** A run that is interrupted ends by `exit`, so that everything that cleans up on it gets to. */
function endOnSignals(): void {
  process.once('SIGINT', () => process.exit(130))
  process.once('SIGTERM', () => process.exit(143))
}

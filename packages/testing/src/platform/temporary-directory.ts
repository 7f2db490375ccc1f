import { chmodSync, mkdtempSync, realpathSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface TemporaryDirectory extends AsyncDisposable {
  readonly path: string
}

/** A directory of its own that the users of sandboxes may pass through; removed at the end of its scope. */
export function temporaryDirectory(prefix = 'corral-test-'): TemporaryDirectory {
  const path = mkdtempSync(join(realpathSync(tmpdir()), prefix))
  chmodSync(path, 0o711)
  return {
    path,
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }),
  }
}

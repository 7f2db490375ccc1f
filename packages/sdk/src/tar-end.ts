import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { SandboxError } from './sandbox-error.js'

/** Resolves when tar has done its work; `ArchiveFailed` with its last words where it has not. */
export async function tarEnd(tar: ChildProcess): Promise<void> {
  let words = ''
  tar.stderr?.on('data', (chunk: Buffer) => {
    words = (words + chunk.toString()).slice(-1024)
  })
  const [code, signal] = (await once(tar, 'close')) as [number | null, string | null]
  if (code !== 0) throw new SandboxError('ArchiveFailed', `tar ended with ${code ?? signal}: ${words.trim()}`)
}

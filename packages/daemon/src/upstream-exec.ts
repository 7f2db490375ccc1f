import { randomUUID } from 'node:crypto'
import { CorralError, type ProcessExitRecord, type StartProcessRequest } from '@corral/protocol'
import type { ProcessHandle } from './process-handle.js'
import type { ProcessRegistry } from './process-registry.js'

export interface CollectedOutput {
  readonly exit: ProcessExitRecord
  readonly stdout: Buffer
  readonly stderr: Buffer
  readonly isTimedOut: boolean
}

/** Follows a process in memory from its start: each chunk once, confirmed as it is handed out. Ends with the process. */
export async function* outputOf(
  handle: ProcessHandle,
  signal: AbortSignal,
): AsyncGenerator<{ stream: 'stdout' | 'stderr'; data: Uint8Array }, ProcessExitRecord> {
  const cursor = await handle.cursor(0)
  try {
    for (;;) {
      signal.throwIfAborted()
      const { exit } = handle.record()
      const chunk = await cursor.next()
      if (chunk) {
        yield chunk
        handle.confirm?.(chunk.offset + chunk.data.length)
      } else if (exit) return exit
      else await handle.changed.wait(30_000, signal)
    }
  } finally {
    await cursor.close()
  }
}

/** Runs a command to its end. Over time, over the limit or given up by the caller, all of it is killed. */
export async function runCollected(
  processes: ProcessRegistry,
  request: Omit<StartProcessRequest, 'keep'>,
  options: { timeoutMs?: number; maxBytes: number; signal: AbortSignal },
): Promise<CollectedOutput> {
  options.signal.throwIfAborted()
  const { handle } = await processes.startOrJoin(`upstream-${randomUUID()}`, { ...request, keep: 'memory' })
  const chunks: Record<'stdout' | 'stderr', Uint8Array[]> = { stdout: [], stderr: [] }
  let bytes = 0
  let isTimedOut = false
  const timer =
    options.timeoutMs === undefined
      ? undefined
      : setTimeout(() => {
          isTimedOut = true
          endGroup(handle)
        }, options.timeoutMs)
  try {
    const output = outputOf(handle, options.signal)
    for (;;) {
      const next = await output.next()
      if (next.done) {
        const [stdout, stderr] = [Buffer.concat(chunks.stdout), Buffer.concat(chunks.stderr)]
        return { exit: next.value, stdout, stderr, isTimedOut }
      }
      bytes += next.value.data.length
      if (bytes > options.maxBytes) {
        throw new CorralError('OutputLimitExceeded', `the command wrote more than ${options.maxBytes} bytes`)
      }
      chunks[next.value.stream].push(next.value.data)
    }
  } finally {
    clearTimeout(timer)
    if (!handle.record().exit) endGroup(handle)
  }
}

export function endGroup(handle: ProcessHandle): void {
  try {
    handle.kill('SIGKILL', true)
  } catch {
    // It has ended by itself.
  }
}

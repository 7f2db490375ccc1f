import type { DuplexProcess } from '@corral/ports'
import { linkedController } from '../linked-signal.js'
import type { ProcessStreams, ProcessUpgrade } from '../stream-upgrade.js'
import { exitStatus, failureStatus, type StreamStatus } from './exit-status.js'

/** A client's side of exec or attach, whatever protocol it speaks. */
export interface ProcessClient {
  /** What the client types; ends when it half-closes. */
  readonly stdin: AsyncIterable<Uint8Array>
  /** Aborted when the client is gone. */
  readonly gone: AbortSignal
  onResize(listener: (columns: number, rows: number) => void): void
  /** Resolves when the client's connection has taken the chunk. */
  write(stream: 'stdout' | 'stderr', chunk: Uint8Array): Promise<void>
  /** Sends the status and ends the connection. */
  finish(status: StreamStatus): Promise<void>
}

/** Starts the process and carries bytes both ways until it has ended or the client is gone, which kills it. */
export async function serveProcess(
  client: ProcessClient,
  streams: ProcessStreams,
  upgrade: Pick<ProcessUpgrade, 'start' | 'signal'>,
): Promise<void> {
  const lifetime = linkedController(client.gone)
  const stop = () => lifetime.abort(upgrade.signal?.reason)
  if (upgrade.signal?.aborted) stop()
  upgrade.signal?.addEventListener('abort', stop, { once: true })
  try {
    const status = await runProcess(client, streams, upgrade, lifetime.signal)
    if (!client.gone.aborted) await client.finish(status)
  } finally {
    upgrade.signal?.removeEventListener('abort', stop)
    lifetime.release()
    lifetime.abort()
  }
}

async function runProcess(
  client: ProcessClient,
  streams: ProcessStreams,
  upgrade: Pick<ProcessUpgrade, 'start'>,
  signal: AbortSignal,
): Promise<StreamStatus> {
  let process: DuplexProcess
  try {
    process = await upgrade.start(streams, signal)
  } catch (error) {
    return failureStatus(error instanceof Error ? error.message : String(error))
  }
  const kill = () => process.kill()
  if (signal.aborted) kill()
  signal.addEventListener('abort', kill, { once: true })
  client.onResize((columns, rows) => process.resize(columns, rows))
  // Input ends with the client or with the process; no code waits for it.
  void pumpStdin(client, streams, process)
  const output = Promise.all([
    pump(process.stdout, streams.stdout ? (chunk) => client.write('stdout', chunk) : undefined, kill),
    pump(process.stderr, streams.stderr ? (chunk) => client.write('stderr', chunk) : undefined, kill),
  ])
  const exit = await process.exited
  await output
  signal.removeEventListener('abort', kill)
  return exitStatus(exit)
}

/** Carries output to the client. Output that was not asked for is read all the same, or the process would block on it. */
async function pump(
  source: AsyncIterable<Uint8Array>,
  write: ((chunk: Uint8Array) => Promise<void>) | undefined,
  kill: () => void,
): Promise<void> {
  try {
    for await (const chunk of source) await write?.(chunk)
  } catch {
    kill() // either the client is gone or the process is: the exit tells which
  }
}

async function pumpStdin(client: ProcessClient, streams: ProcessStreams, process: DuplexProcess): Promise<void> {
  try {
    if (streams.stdin) for await (const chunk of client.stdin) await process.writeStdin(chunk)
  } catch {
    // A process may close its input early; what it does with its output still counts.
  }
  process.endStdin()
}

/** Columns and rows of a resize message, whose names Go reads in any case; undefined when it is none. */
export function parseResize(text: string): { columns: number; rows: number } | undefined {
  try {
    const size: unknown = JSON.parse(text)
    if (typeof size !== 'object' || size === null) return undefined
    const fields = new Map(Object.entries(size).map(([name, value]) => [name.toLowerCase(), Number(value)]))
    const [columns, rows] = [fields.get('width') ?? 0, fields.get('height') ?? 0]
    const isSize = (value: number) => Number.isInteger(value) && value > 0 && value < 65_536
    return isSize(columns) && isSize(rows) ? { columns, rows } : undefined
  } catch {
    return undefined
  }
}

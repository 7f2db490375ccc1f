import type { Duplex } from 'node:stream'
import {
  CorralError,
  type ErrorCode,
  encodeOutputFrame,
  type LineMessage,
  LineMessages,
  type StartProcessRequest,
} from '@corral/protocol'
import { outputFrames } from './output-stream.js'
import type { ProcessHandle } from './process-handle.js'

/** Starts a process or joins the one that has this id; see `Daemon.openProcess`. */
type OpenProcess = (id: string, request: StartProcessRequest, boot: string | undefined) => Promise<ProcessHandle>

/** Until a silent command is said to run: most short ones have said something by then, which says it too. */
const quietMs = 5

/** Serves one command after the other on a connection, until that ends. A command goes on without its line. */
export function serveProcessLine(line: Duplex, open: OpenProcess): void {
  const messages = new LineMessages()
  const gone = new AbortController()
  let current: { handle: ProcessHandle | undefined } | undefined
  line.once('close', () => gone.abort())

  const take = (message: LineMessage): void => {
    if (message.type === 'confirm') {
      current?.handle?.confirm?.(message.offset)
      return
    }
    if (current) throw new TypeError('the command before has not ended')
    current = { handle: undefined }
    void serve(message, current)
      .catch(() => line.destroy())
      .finally(() => {
        current = undefined
      })
  }
  const serve = async (
    { id, request, boot }: LineMessage & { type: 'start' },
    command: { handle: ProcessHandle | undefined },
  ): Promise<void> => {
    try {
      command.handle = await open(id, request, boot)
    } catch (error) {
      return send(line, [encodeOutputFrame({ type: 'failure', offset: 0, ...failureOf(error) })])
    }
    const frames = await outputFrames(command.handle, 0, true, gone.signal)
    let isSilent = true
    const quiet = setTimeout(() => {
      if (isSilent) line.write(encodeOutputFrame({ type: 'heartbeat', offset: 0 }))
    }, quietMs)
    try {
      for (let frame = await frames.next(); frame; frame = await frames.next()) {
        isSilent = false
        await send(line, frame)
      }
    } finally {
      clearTimeout(quiet)
      await frames.dispose()
    }
  }
  line.on('data', (chunk: Buffer) => {
    try {
      for (const message of messages.push(chunk)) take(message)
    } catch {
      // Not our protocol: closing tells the client, which opens a new connection.
      line.destroy()
    }
  })
}

/** All pieces in one write, none of them copied. */
async function send(line: Duplex, pieces: readonly Uint8Array[]): Promise<void> {
  line.cork()
  let hasRoom = true
  for (const piece of pieces) hasRoom = line.write(piece)
  line.uncork()
  if (hasRoom || line.destroyed) return
  await new Promise<void>((resolve) => {
    const done = (): void => {
      line.off('drain', done).off('close', done)
      resolve()
    }
    line.on('drain', done).on('close', done)
  })
}

function failureOf(error: unknown): { code: ErrorCode; message: string } {
  if (error instanceof CorralError) return { code: error.code, message: error.message }
  return { code: 'InternalError', message: error instanceof Error ? error.message : String(error) }
}

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { CorralError } from '@corral/protocol'
import { makeDirectory } from './make-directory.js'
import { pullStream } from './pull-stream.js'
import { bodyChunks } from './request-input.js'

/** A directory as a tar stream. A failure after the first byte cuts the connection: a cut archive has no end mark. */
export async function getTar(directory: string): Promise<Response> {
  if (!(await stat(directory)).isDirectory())
    throw new CorralError('NotADirectory', `"${directory}" is not a directory`)
  const tar = spawn('tar', ['-C', directory, '-cf', '-', '.'], { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = tarEnd(tar)
  // Awaited below; no client is left to tell when the reader goes away first.
  ended.catch(() => {})
  const chunks = tar.stdout[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
  const next = async (): Promise<Uint8Array | undefined> => {
    const { done, value } = await chunks.next()
    if (!done) return value
    await ended
    return undefined
  }
  const dispose = async () => {
    tar.stdout.destroy()
    tar.kill('SIGKILL')
  }
  return new Response(pullStream(next, dispose), { headers: { 'content-type': 'application/x-tar' } })
}

/** Unpacks the body into a directory, which is created if missing. Files belong to the sandbox's user. */
export async function putTar(directory: string, request: Request): Promise<Response> {
  await makeDirectory(directory)
  const tar = spawn('tar', ['-C', directory, '-xof', '-'], { stdio: ['pipe', 'ignore', 'pipe'] })
  const ended = tarEnd(tar)
  ended.catch(() => {})
  try {
    await pipeline(Readable.from(bodyChunks(request)), tar.stdin)
  } catch (error) {
    // tar stopped reading and says why, or the sender went away.
    if (!isBrokenPipe(error)) tar.kill('SIGKILL')
  }
  await ended
  return new Response(null, { status: 204 })
}

async function tarEnd(tar: ChildProcess): Promise<void> {
  let lastWords = ''
  tar.stderr?.on('data', (chunk: Buffer) => {
    lastWords = (lastWords + chunk.toString()).slice(-1024)
  })
  const [code, signal] = (await once(tar, 'close')) as [number | null, string | null]
  if (code === 0) return
  throw new CorralError('ArchiveFailed', `tar ended with ${code ?? signal}: ${lastWords.trim()}`)
}

function isBrokenPipe(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && (error.code === 'EPIPE' || error.code === 'ERR_STREAM_PREMATURE_CLOSE')
  )
}

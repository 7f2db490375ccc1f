import { anySignal } from './any-signal.js'
import { CorralError } from './corral-error.js'
import { daemonRoutes, type ProcessExitRecord } from './daemon-api.js'
import { isErrorCode } from './error-codes.js'
import { OutputDecoder, type OutputFrame, type OutputStream } from './output-frames.js'
import { wrapFailure } from './response-failure.js'
import { isUnsent } from './unsent-error.js'

/** What a reader of a process's output sees. */
export type OutputEvent =
  | { readonly type: 'data'; readonly stream: OutputStream; readonly offset: number; readonly data: Uint8Array }
  /** So many bytes from `offset` on are no longer kept: the output was too long. */
  | { readonly type: 'gap'; readonly offset: number; readonly bytes: number }
  | { readonly type: 'exit'; readonly offset: number; readonly exit: ProcessExitRecord }

export interface ReadOutputOptions {
  offset?: number | undefined
  /** False: end with what is there now. */
  follow?: boolean | undefined
  signal?: AbortSignal | undefined
  /** Give up when nothing, not even a heartbeat, was heard for this long. */
  reconnectMs?: number | undefined
  /** The same while no request got as far as being sent: see `UnsentError`. As long as `reconnectMs` without it. */
  connectMs?: number | undefined
  /** Asked after every cut, before the next try: rejecting ends the reading with that reason. */
  onCut?: ((failure: CorralError) => Promise<void>) | undefined
  /** The answer to an earlier request that already carries the output from `offset` on. */
  first?: Response | undefined
  /** Told of offsets up to which output has been handed out, every so many bytes. */
  confirm?: { readonly everyBytes: number; readonly send: (offset: number) => void } | undefined
}

/** Frames that come another way than as the body of an answer. */
export interface FrameSource {
  readonly frames: AsyncIterable<OutputFrame>
  /** Ends the frames early. */
  cancel(): void
}

type Open = (path: string, signal: AbortSignal) => Promise<Response | FrameSource>

/** A line silent for longer than this is dead: the daemon sends a heartbeat every 10 s. */
const silenceMs = 35_000

/** Reads on over any number of connections; the offset decides what is new. */
export async function* followOutput(open: Open, id: string, options: ReadOutputOptions): AsyncIterable<OutputEvent> {
  const { signal, follow = true, reconnectMs = 60_000, connectMs = reconnectMs, confirm } = options
  let offset = options.offset ?? 0
  let confirmed = offset
  let first = options.first
  let lastHeardMs = performance.now()
  let pauseMs = 20
  let wasSent = false
  for (;;) {
    let failure: CorralError
    try {
      const answer = first
      first = undefined
      const opened = answer ? async () => answer : open
      for await (const frame of readOnce(opened, id, offset, follow, signal)) {
        lastHeardMs = performance.now()
        pauseMs = 20
        wasSent = true
        if (frame.type === 'heartbeat') continue
        if (frame.type === 'failure') {
          throw new CorralError(isErrorCode(frame.code) ? frame.code : 'InternalError', frame.message)
        }
        if (frame.offset !== offset) {
          throw new CorralError('ProtocolViolation', `output at ${frame.offset} where ${offset} was expected`)
        }
        if (frame.type === 'data') offset += frame.data.length
        if (frame.type === 'gap') offset += frame.bytes
        yield frame
        if (frame.type === 'exit') return
        if (confirm && offset - confirmed >= confirm.everyBytes) {
          confirmed = offset
          confirm.send(offset)
        }
      }
      if (!follow) return
      wasSent = true
      failure = new CorralError('ConnectionLost', `the output of process "${id}" was cut`)
    } catch (error) {
      failure = wrapFailure(error, signal)
      wasSent ||= !isUnsent(error)
    }
    const silentMs = performance.now() - lastHeardMs
    if (!isWorthReconnecting(failure) || silentMs > (wasSent ? reconnectMs : connectMs)) throw failure
    await options.onCut?.(failure)
    await pause(pauseMs, signal)
    pauseMs = Math.min(pauseMs * 2, 2_000)
  }
}

async function* readOnce(
  open: Open,
  id: string,
  offset: number,
  follow: boolean,
  signal: AbortSignal | undefined,
): AsyncIterable<OutputFrame> {
  const silence = new AbortController()
  let timer = setTimeout(() => silence.abort(), silenceMs)
  let stop = () => {}
  try {
    const ended = signal ? anySignal([signal, silence.signal]) : silence.signal
    const response = await open(`${daemonRoutes.output(id)}?offset=${offset}&follow=${follow}`, ended)
    if ('frames' in response) {
      stop = () => response.cancel()
      ended.addEventListener('abort', stop, { once: true })
      for await (const frame of response.frames) {
        clearTimeout(timer)
        yield frame
        if (frame.type === 'exit') return
        timer = setTimeout(() => silence.abort(), silenceMs)
      }
      if (signal?.aborted) throw new CorralError('Aborted', 'the call was aborted')
      return
    }
    if (!response.body) return
    const reader = response.body.getReader()
    // The answer may belong to a request that knows nothing of our signals.
    stop = () => void reader.cancel().catch(() => {})
    ended.addEventListener('abort', stop, { once: true })
    const decoder = new OutputDecoder()
    for (;;) {
      const { done, value } = await reader.read()
      clearTimeout(timer)
      if (signal?.aborted) throw new CorralError('Aborted', 'the call was aborted')
      if (done) break
      // The caller may take its time between frames; only the wait for the next chunk is measured.
      for (const frame of decoder.push(value)) yield frame
      timer = setTimeout(() => silence.abort(), silenceMs)
    }
    if (!decoder.isComplete) throw new CorralError('ConnectionLost', 'the output broke off inside a frame')
  } finally {
    clearTimeout(timer)
    stop()
  }
}

function isWorthReconnecting(failure: CorralError): boolean {
  return failure.code === 'ConnectionLost' || failure.code === 'ServiceUnavailable' || failure.code === 'Timeout'
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(new CorralError('Aborted', 'the call was aborted'))
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort, { once: true })
  })
}

import { CorralError } from './corral-error.js'
import { daemonRoutes, type ProcessExitRecord } from './daemon-api.js'
import { OutputDecoder, type OutputFrame, type OutputStream } from './output-frames.js'
import { wrapFailure } from './response-failure.js'

/** What a reader of a process's output sees. */
export type OutputEvent =
  | { readonly type: 'data'; readonly stream: OutputStream; readonly offset: number; readonly data: Uint8Array }
  | { readonly type: 'exit'; readonly offset: number; readonly exit: ProcessExitRecord }

export interface ReadOutputOptions {
  offset?: number | undefined
  /** False: end with what is there now. */
  follow?: boolean | undefined
  signal?: AbortSignal | undefined
  /** Give up when nothing, not even a heartbeat, was heard for this long. */
  reconnectMs?: number | undefined
}

type Open = (path: string, signal: AbortSignal) => Promise<Response>

/** A line silent for longer than this is dead: the daemon sends a heartbeat every 10 s. */
const silenceMs = 35_000

/** Reads on over any number of connections; the offset decides what is new. */
export async function* followOutput(open: Open, id: string, options: ReadOutputOptions): AsyncIterable<OutputEvent> {
  const { signal, follow = true, reconnectMs = 60_000 } = options
  let offset = options.offset ?? 0
  let lastHeardMs = performance.now()
  let pauseMs = 20
  for (;;) {
    let failure: CorralError
    try {
      for await (const frame of readOnce(open, id, offset, follow, signal)) {
        lastHeardMs = performance.now()
        pauseMs = 20
        if (frame.type === 'heartbeat') continue
        if (frame.offset !== offset) {
          throw new CorralError('ProtocolViolation', `output at ${frame.offset} where ${offset} was expected`)
        }
        if (frame.type === 'data') offset += frame.data.length
        yield frame
        if (frame.type === 'exit') return
      }
      if (!follow) return
      failure = new CorralError('ConnectionLost', `the output of process "${id}" was cut`)
    } catch (error) {
      failure = wrapFailure(error, signal)
    }
    if (!isWorthReconnecting(failure) || performance.now() - lastHeardMs > reconnectMs) throw failure
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
  try {
    const signals = signal ? [signal, silence.signal] : [silence.signal]
    const response = await open(
      `${daemonRoutes.output(id)}?offset=${offset}&follow=${follow}`,
      AbortSignal.any(signals),
    )
    if (!response.body) return
    const decoder = new OutputDecoder()
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      clearTimeout(timer)
      // The caller may take its time between frames; only the wait for the next chunk is measured.
      for (const frame of decoder.push(chunk)) yield frame
      timer = setTimeout(() => silence.abort(), silenceMs)
    }
    if (!decoder.isComplete) throw new CorralError('ConnectionLost', 'the output broke off inside a frame')
  } finally {
    clearTimeout(timer)
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

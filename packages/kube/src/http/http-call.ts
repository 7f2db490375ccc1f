import { KubeError } from '@corral/resources'
import type { Dispatcher } from 'undici'
import { requestWords } from '../request-words.js'
import { connectionError } from './connection-error.js'

export interface RawResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly bytes: Buffer
}

/**
 * One request and its whole response, straight off the dispatcher: no Readable and no AbortController per call. The
 * deadline covers everything from waiting for a free connection to the last byte.
 */
export function httpCall(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  limits: { signal?: AbortSignal | undefined; timeoutMs?: number | undefined },
): Promise<RawResponse> {
  const { signal, timeoutMs } = limits
  return new Promise<RawResponse>((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    let controller: Dispatcher.DispatchController | undefined
    let status = 0
    let headers: RawResponse['headers'] = {}
    let first: Buffer | undefined
    let more: Buffer[] | undefined
    let isDone = false

    const finish = (settle: () => void) => {
      if (isDone) return
      isDone = true
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      settle()
    }
    const giveUp = (reason: unknown) => {
      finish(() => reject(reason))
      controller?.abort(reason instanceof Error ? reason : new Error('aborted', { cause: reason }))
    }
    const onAbort = () => giveUp(signal?.reason)
    const onTimeout = () =>
      giveUp(new KubeError('Timeout', `${requestWords(request)}: no answer within ${timeoutMs} ms`))
    const timer = timeoutMs === undefined ? undefined : setTimeout(onTimeout, timeoutMs)
    signal?.addEventListener('abort', onAbort, { once: true })

    dispatcher.dispatch(request, {
      onRequestStart(started) {
        controller = started
        // Given up while it waited for a connection.
        if (isDone) started.abort(new Error('aborted'))
      },
      onResponseStart(_, statusCode, responseHeaders) {
        status = statusCode
        headers = responseHeaders
      },
      onResponseData(_, chunk) {
        if (!first) first = chunk
        else if (more) more.push(chunk)
        else more = [first, chunk]
      },
      onResponseEnd() {
        finish(() => resolve({ status, headers, bytes: more ? Buffer.concat(more) : (first ?? Buffer.alloc(0)) }))
      },
      onResponseError(_, error) {
        finish(() => reject(connectionError(error, requestWords(request))))
      },
    })
  })
}

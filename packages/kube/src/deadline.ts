import { KubeError } from '@corral/resources'

/**
 * Runs one call under the caller's signal and its deadline. Rejects with the signal's reason when aborted and with a
 * `KubeError` of code `Timeout` when the time is up, even if the call itself never settles.
 */
export async function withDeadline<T>(
  options: { signal?: AbortSignal | undefined; timeoutMs?: number | undefined },
  call: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  const { signal, timeoutMs } = options
  signal?.throwIfAborted()
  if (timeoutMs === undefined) return call(signal)

  const controller = new AbortController()
  const abort = () => controller.abort(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  const timer = setTimeout(() => {
    controller.abort(new KubeError('Timeout', `no answer within ${timeoutMs} ms`))
  }, timeoutMs)
  try {
    return await raceAbort(call(controller.signal), controller.signal)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

/** Settles like `promise`, or rejects with the signal's reason as soon as it aborts. */
export function raceAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    promise
      .then(resolve, (error) => reject(signal.aborted ? signal.reason : error))
      .finally(() => {
        signal.removeEventListener('abort', abort)
      })
  })
}

/**
 * A body made of chunks that are produced only when the reader wants them. `dispose` runs once, at the end, on failure
 * and when the reader goes away.
 */
export function pullStream(
  next: () => Promise<Uint8Array | undefined>,
  dispose: () => Promise<void>,
): ReadableStream<Uint8Array> {
  let isDisposed = false
  const disposeOnce = async () => {
    if (isDisposed) return
    isDisposed = true
    await dispose()
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const chunk = await next()
          if (chunk) {
            controller.enqueue(chunk)
            return
          }
          await disposeOnce()
          controller.close()
        } catch (error) {
          await disposeOnce()
          controller.error(error)
        }
      },
      cancel: disposeOnce,
    },
    { highWaterMark: 1 },
  )
}

import type { SandboxError } from './sandbox-error.js'

/** An answer whose body fails with an error of the SDK, as the call for it would have. */
export function withTypedBody(answer: Response, explain: (error: unknown) => Promise<SandboxError>): Response {
  const { body, status, statusText, headers } = answer
  if (!body) return answer
  const reader = body.getReader()
  const typed = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          controller.error(await explain(error))
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    // Reads when it is read, so that a slow reader still slows the sender down.
    { highWaterMark: 0 },
  )
  return new Response(typed, { status, statusText, headers })
}

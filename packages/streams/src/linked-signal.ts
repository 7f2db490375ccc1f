/** An AbortController that also aborts with `parent`; `release` unhooks it from there. */
export function linkedController(parent: AbortSignal | undefined): AbortController & { release(): void } {
  const controller = new AbortController()
  const abort = () => controller.abort(parent?.reason)
  if (parent?.aborted) abort()
  parent?.addEventListener('abort', abort, { once: true })
  return Object.assign(controller, { release: () => parent?.removeEventListener('abort', abort) })
}

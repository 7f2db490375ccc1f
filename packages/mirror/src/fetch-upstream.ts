import type { Registry } from './ecosystem.js'
import type { Fetch } from './guarded-fetch.js'

export interface UpstreamRequest {
  readonly accept?: string | undefined
  readonly etag?: string | undefined
  readonly lastModified?: string | undefined
}

/** An upstream that did not answer usefully; `status` is what the client is told. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError'
  constructor(
    readonly status: number,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options)
  }
}

const maxRedirects = 5
const headersTimeoutMs = 60_000

/**
 * Asks the registries in turn; the first that has it answers with 200 or 304. The next one is asked where one says 404
 * or 410, and after a failure only where that registry says so: otherwise a private module's name would be told to a
 * public registry whenever the private one is down.
 */
export async function fetchUpstream(
  sources: readonly Registry[],
  request: UpstreamRequest,
  options: { fetch: Fetch; signal: AbortSignal },
): Promise<Response> {
  let last: UpstreamError | undefined
  for (const source of sources) {
    try {
      const response = await ask(source, request, options)
      if (response.status === 200 || response.status === 304) return response
      await response.body?.cancel()
      last = new UpstreamError(response.status, `${origin(source)} answered ${response.status}`)
      if (![404, 410].includes(response.status) && !source.fallsBackOnError) break
    } catch (error) {
      if (options.signal.aborted) throw error
      last = new UpstreamError(502, `${origin(source)} cannot be reached: ${reason(error)}`, { cause: error })
      if (!source.fallsBackOnError) break
    }
  }
  throw last ?? new UpstreamError(404, 'no registry is configured for this')
}

async function ask(
  source: Registry,
  request: UpstreamRequest,
  options: { fetch: Fetch; signal: AbortSignal },
): Promise<Response> {
  let url = source.url
  for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
    const response = await withHeadersTimeout(options.signal, (signal) =>
      options.fetch(url, {
        signal,
        headers: {
          ...(request.accept && { accept: request.accept }),
          ...(request.etag && { 'if-none-match': request.etag }),
          ...(request.lastModified && !request.etag && { 'if-modified-since': request.lastModified }),
          // A redirect may lead to another host, which must not see the registry's credentials.
          ...(source.authorization && url.origin === source.url.origin && { authorization: source.authorization }),
        },
      }),
    )
    const location = response.headers.get('location')
    if (response.status < 300 || response.status === 304 || response.status >= 400 || !location) return response
    await response.body?.cancel()
    url = new URL(location, url)
    if (url.protocol !== 'https:' && source.url.protocol === 'https:')
      throw new Error(`it redirects from https to ${url.protocol.replace(':', '')}`)
  }
  throw new Error(`it redirects more than ${maxRedirects} times`)
}

/** The limit holds until the headers are there; a large body may take longer. */
async function withHeadersTimeout<Value>(
  signal: AbortSignal,
  run: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const limit = new AbortController()
  const timer = setTimeout(
    () => limit.abort(new Error(`no answer within ${headersTimeoutMs / 1000} s`)),
    headersTimeoutMs,
  )
  try {
    return await run(AbortSignal.any([signal, limit.signal]))
  } finally {
    clearTimeout(timer)
  }
}

const origin = (source: Registry): string => source.url.origin

function reason(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  return cause instanceof Error ? cause.message : String(cause)
}

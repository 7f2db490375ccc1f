import type { MiddlewareHandler } from 'hono'
import { describe } from './http-error.js'

const jsonType = /^application\/([a-z.-]+\+)?json$/

/** What curl sends for `-d` without a header, what `fetch` sends for a string, and nothing at all. */
const unspecificTypes: ReadonlySet<string> = new Set(['', 'application/x-www-form-urlencoded', 'text/plain'])

/**
 * Every body of this API is JSON. A content type that says nothing about the body, such as curl's default, is taken for
 * JSON; one that names something else is refused with 415. A form of
 * another site gains nothing by this: a browser's session changes something only from our own pages.
 */
export const jsonBody: MiddlewareHandler = async (context, next) => {
  const { method, raw } = context.req
  if (method === 'GET' || method === 'HEAD') return next()
  const type = (context.req.header('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (unspecificTypes.has(type)) {
    const headers = new Headers(raw.headers)
    headers.set('content-type', 'application/json')
    context.req.raw = new Request(raw, { headers })
  } else if (!jsonType.test(type)) {
    const { status, body } = describe(
      'UnsupportedMediaType',
      `a body of type ${type.slice(0, 100)} is not understood here`,
      415,
      'Send JSON, with the header `Content-Type: application/json`.',
    )
    return context.json(body, status as 415)
  }
  return next()
}

/** For routes whose body may be left out: a request without one has no content type either, whatever was declared. */
export const optionalBody: MiddlewareHandler = async (context, next) => {
  const { raw } = context.req
  const length = context.req.header('content-length')
  const isEmpty = context.req.header('transfer-encoding') === undefined && (length === undefined || length === '0')
  if (isEmpty) {
    const headers = new Headers(raw.headers)
    headers.delete('content-type')
    context.req.raw = new Request(raw.url, { method: raw.method, headers, signal: raw.signal })
  }
  return next()
}

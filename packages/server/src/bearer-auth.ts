import { createHash, timingSafeEqual } from 'node:crypto'
import type { MiddlewareHandler } from 'hono'
import { describe } from './http-error.js'

const open = new Set(['/healthz', '/readyz', '/openapi.json'])

/** Asks for the platform's token on every route but health and the API description. Compares in constant time. */
export function bearerAuth(token: string): MiddlewareHandler {
  const expected = digest(token)
  return async (context, next) => {
    if (open.has(context.req.path)) return next()
    const given = /^Bearer (.+)$/i.exec(context.req.header('authorization') ?? '')?.[1]
    if (given !== undefined && timingSafeEqual(digest(given), expected)) return next()
    const { status, body } = describe(
      'Unauthorized',
      'this route needs the platform token',
      401,
      'Send `Authorization: Bearer TOKEN`; `corral up` prints the token.',
    )
    return context.json(body, status as 401, { 'www-authenticate': 'Bearer' })
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

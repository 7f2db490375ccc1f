import type { Context, MiddlewareHandler } from 'hono'
import { type BrowserSessions, sessionIdleMs } from './browser-session.js'
import type { Gate } from './request-gate.js'

/** Asks the gate before every route. */
export function gateMiddleware(gate: Gate, sessions: BrowserSessions): MiddlewareHandler {
  return async (context, next) => {
    const { req } = context
    const header = (name: string): string | undefined =>
      req.header(name) ?? (name === 'host' ? new URL(req.url).host : undefined)
    const answer = gate({ method: req.method, path: req.path, header })
    if (answer.refusal) {
      const { status, body } = answer.refusal
      return context.json(body, status as 401, status === 401 ? { 'www-authenticate': 'Bearer' } : {})
    }
    await next()
    if (answer.renewed) setSession(context, sessions, answer.renewed)
  }
}

/** Sends a session's cookie; an empty one ends it. */
export function setSession({ req, res }: Context, { cookieName }: BrowserSessions, value: string): void {
  const isTls = req.header('x-forwarded-proto') === 'https' || req.url.startsWith('https:')
  const parts = [
    `${cookieName}=${value}`,
    'Path=/',
    'HttpOnly',
    'SameSite=Strict',
    `Max-Age=${value === '' ? 0 : sessionIdleMs / 1000}`,
    ...(isTls ? ['Secure'] : []),
  ]
  res.headers.append('set-cookie', parts.join('; '))
}

import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import type { BrowserSessions } from './browser-session.js'
import { describe, type HttpError } from './http-error.js'

/** What a gate looks at, of an HTTP request or of the start of a WebSocket. */
export interface Asked {
  readonly method: string
  readonly path: string
  header(name: string): string | undefined
}

export interface GateOptions {
  token: string
  sessions: BrowserSessions
  /** Host names besides those of loopback: of a Service, an Ingress, or the address that is listened on. */
  hosts?: readonly string[] | undefined
  /** Any address as a host, for a server that listens on all of them: a name may resolve to another machine, an address is ours. */
  anyAddress?: boolean | undefined
}

export type Passed = { readonly refusal?: undefined; readonly renewed?: string | undefined }
export type Gate = (asked: Asked) => Passed | { readonly refusal: HttpError }

const open: ReadonlySet<string> = new Set(['/healthz', '/readyz'])
const withoutToken: ReadonlySet<string> = new Set(['/openapi.json'])
const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Who may ask. `Host` must be a name of ours, else a page of another site whose name points at this machine could read
 * everything; an `Origin` must be the same host. Then a bearer token or a browser's session is asked for; a session may
 * change something only from our own pages.
 */
export function createGate(options: GateOptions): Gate {
  const expected = digest(options.token)
  const isHost = hostRule(options)
  return (asked) => {
    if (open.has(asked.path)) return {}
    const host = asked.header('host') ?? ''
    if (!isHost(host)) return { refusal: refuseHost(host) }
    const origin = asked.header('origin')
    if (origin !== undefined && hostOf(origin) !== host.toLowerCase()) return { refusal: refuseOrigin(origin) }
    if (withoutToken.has(asked.path)) return {}
    const bearer = /^Bearer (.+)$/i.exec(asked.header('authorization') ?? '')?.[1]
    if (bearer !== undefined) return timingSafeEqual(digest(bearer), expected) ? {} : { refusal: refuseToken() }
    if (asked.method === 'POST' && asked.path === '/session') return {}
    const { isValid, renewed } = options.sessions.check(asked.header('cookie'))
    if (!isValid) return { refusal: refuseToken() }
    const isOurPage = origin !== undefined || asked.header('sec-fetch-site') === 'same-origin'
    if (!safeMethods.has(asked.method) && !isOurPage) return { refusal: refuseOrigin('no page of this platform') }
    return { renewed }
  }
}

/** Whether a page or one of its files may be sent: every client may have them, under a host name of ours. */
export function createHostCheck(options: Pick<GateOptions, 'hosts' | 'anyAddress'>): (host: string) => boolean {
  return hostRule(options)
}

function hostRule({ hosts = [], anyAddress = false }: Pick<GateOptions, 'hosts' | 'anyAddress'>) {
  const names = new Set(['localhost', '127.0.0.1', '[::1]', ...hosts.map((name) => bracketed(name.toLowerCase()))])
  return (host: string): boolean => {
    const name = host.toLowerCase().replace(/:\d{1,5}$/, '')
    return names.has(name) || names.has(host.toLowerCase()) || (anyAddress && isIP(name.replace(/^\[|\]$/g, '')) !== 0)
  }
}

const bracketed = (name: string): string => (isIP(name) === 6 ? `[${name}]` : name)

function hostOf(origin: string): string | undefined {
  try {
    return new URL(origin).host
  } catch {
    return undefined // "null", of a page without an origin
  }
}

export function refuseHost(host: string): HttpError {
  return describe(
    'Forbidden',
    `"${host.slice(0, 100)}" is not a host name of this platform`,
    403,
    'Use 127.0.0.1 or localhost, or start the server with --allow-host NAME.',
  )
}

function refuseOrigin(origin: string): HttpError {
  const hint = 'Open the pages of the platform itself, or send its token.'
  return describe('Forbidden', `a request from ${origin.slice(0, 100)} is not taken`, 403, hint)
}

function refuseToken(): HttpError {
  return describe(
    'Unauthorized',
    'this route needs the platform token',
    401,
    'Send `Authorization: Bearer TOKEN`; `corral up` prints the token. In a browser: `corral open`.',
  )
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

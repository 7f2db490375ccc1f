import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import type { ApiUser } from '@corral/ports'
import { ADMIN_GROUP } from '../auth/access.js'
import { ADMIN_NAME } from './certificates.js'

export interface AuthenticationOptions {
  /** The administrator's bearer token. */
  readonly token: string
  /** Recognises other tokens, those of service accounts. */
  authenticateToken(token: string): ApiUser | undefined
}

const admin: ApiUser = { name: ADMIN_NAME, groups: [ADMIN_GROUP, 'system:authenticated'] }

/** Tells who sent a request: by client certificate, else by bearer token; undefined is anonymous. */
export function authenticator(options: AuthenticationOptions): (request: IncomingMessage) => ApiUser | undefined {
  const expected = digest(options.token)
  const byCertificate = new WeakMap<object, ApiUser>()
  /** The administrator's token on connections that have shown it before. */
  const byToken = new WeakMap<object, string>()
  return (request) => {
    const socket = request.socket as TLSSocket
    if (socket.authorized) {
      let user = byCertificate.get(socket)
      if (!user) {
        user = certificateUser(socket)
        if (user) byCertificate.set(socket, user)
      }
      if (user) return user
    }
    const token = bearerToken(request)
    if (token === undefined) return undefined
    if (byToken.get(socket) === token) return admin
    // Digests have one length, so the comparison takes the same time whatever was sent.
    if (timingSafeEqual(digest(token), expected)) {
      byToken.set(socket, token)
      return admin
    }
    return options.authenticateToken(token)
  }
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

function certificateUser(socket: TLSSocket): ApiUser | undefined {
  const { subject } = socket.getPeerCertificate()
  const name: unknown = subject?.CN
  if (typeof name !== 'string' || name === '') return undefined
  const organisations: unknown = subject.O
  const groups = Array.isArray(organisations) ? organisations.map(String) : organisations ? [String(organisations)] : []
  return { name, groups: [...groups, 'system:authenticated'] }
}

const PROTOCOL_PREFIX = 'base64url.bearer.authorization.k8s.io.'

function bearerToken(request: IncomingMessage): string | undefined {
  const header = request.headers.authorization
  if (header !== undefined) return /^Bearer\s+(\S+)\s*$/i.exec(header)?.[1]
  const offered = request.headers['sec-websocket-protocol']?.split(',').map((part) => part.trim())
  const carrier = offered?.find((part) => part.startsWith(PROTOCOL_PREFIX))
  return carrier ? Buffer.from(carrier.slice(PROTOCOL_PREFIX.length), 'base64url').toString('utf8') : undefined
}

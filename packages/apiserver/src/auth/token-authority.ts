import { createHmac, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto'
import type { ApiUser, Clock } from '@corral/ports'

export interface IssuedToken {
  readonly token: string
  readonly expirationTimestamp: string
}

export interface TokenSubject {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly audiences: readonly string[]
}

/** Who signs, and the audience of a token that names none. */
export const TOKEN_ISSUER = 'https://kubernetes.default.svc.cluster.local'
const MIN_SECONDS = 600

/** Signs tokens for service accounts and recognises them again. The key lives as long as its owner keeps it. */
export class TokenAuthority {
  constructor(
    private readonly clock: Clock,
    private readonly key: Uint8Array = randomBytes(32),
  ) {}

  issue(subject: TokenSubject, requestedSeconds: number | undefined): IssuedToken {
    const seconds = Math.max(requestedSeconds ?? 3600, MIN_SECONDS)
    const now = Math.floor(this.clock.now().getTime() / 1000)
    const claims = {
      iss: TOKEN_ISSUER,
      sub: `system:serviceaccount:${subject.namespace}:${subject.name}`,
      aud: subject.audiences.length > 0 ? subject.audiences : [TOKEN_ISSUER],
      iat: now,
      nbf: now,
      exp: now + seconds,
      jti: randomUUID(),
      'kubernetes.io': { namespace: subject.namespace, serviceaccount: { name: subject.name, uid: subject.uid } },
    }
    const payload = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`
    return {
      token: `${payload}.${this.sign(payload).toString('base64url')}`,
      expirationTimestamp: new Date((now + seconds) * 1000).toISOString().replace('.000Z', 'Z'),
    }
  }

  /** The service account behind a token; undefined when it is not ours, was changed, or is over. */
  verify(token: string): (ApiUser & { uid: string }) | undefined {
    const dot = token.lastIndexOf('.')
    if (dot < 0 || token.length > 8192) return undefined
    const signature = Buffer.from(token.slice(dot + 1), 'base64url')
    const expected = this.sign(token.slice(0, dot))
    if (signature.length !== expected.length || !timingSafeEqual(signature, expected)) return undefined
    const claims = decodeClaims(token.slice(0, dot).split('.')[1] ?? '')
    if (!claims || claims.exp * 1000 <= this.clock.now().getTime()) return undefined
    const { namespace, serviceaccount } = claims['kubernetes.io']
    return {
      name: claims.sub,
      uid: serviceaccount.uid,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    }
  }

  private sign(payload: string): Buffer {
    return createHmac('sha256', this.key).update(payload).digest()
  }
}

interface Claims {
  sub: string
  exp: number
  'kubernetes.io': { namespace: string; serviceaccount: { name: string; uid: string } }
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

function decodeClaims(text: string): Claims | undefined {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Claims
  } catch {
    return undefined // The signature covers the text, so only a token of another make gets here.
  }
}

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** How long a browser may be idle before it has to sign in again. */
export const sessionIdleMs = 12 * 60 * 60 * 1000
/** How long the link that `corral up` and `corral open` print works. */
export const loginCodeMs = 5 * 60 * 1000
/** A cookie older than this is replaced when it is seen, so that a browser in use stays signed in. */
const renewAfterMs = 30 * 60 * 1000

/**
 * Browser sessions without a store: a cookie is a random number and a time, signed with a key made from the platform's
 * token. So it holds over a restart and on every replica, and a new token ends all of them.
 */
export interface BrowserSessions {
  readonly cookieName: string
  /** A new session for a client with the token or an unused login code; undefined otherwise. */
  open(proof: { token: string } | { code: string }): string | undefined
  /** Whether a `Cookie` header carries a session; `renewed` is what should replace it. */
  check(cookies: string | undefined): { isValid: boolean; renewed?: string }
}

export function createBrowserSessions(token: string, now: () => number = Date.now): BrowserSessions {
  // A cookie is sent to every port of a host: the name tells two platforms on one machine apart.
  const cookieName = `corral_session_${digest(`cookie name ${token}`).toString('hex').slice(0, 8)}`
  const used = new Map<string, number>()
  const expected = digest(token)

  const take = (code: string): boolean => {
    const madeAt = signedTime(token, 'login', code)
    if (madeAt === undefined || madeAt + loginCodeMs < now() || used.has(code)) return false
    for (const [old, at] of used) if (at + loginCodeMs < now()) used.delete(old)
    used.set(code, madeAt)
    return true
  }

  return {
    cookieName,
    open(proof) {
      const isKnown = 'token' in proof ? timingSafeEqual(digest(proof.token), expected) : take(proof.code)
      return isKnown ? signed(token, 'session', now()) : undefined
    },
    check(cookies) {
      for (const cookie of (cookies ?? '').split(';')) {
        const [name, value = ''] = cookie.trim().split('=', 2)
        if (name !== cookieName) continue
        const madeAt = signedTime(token, 'session', value)
        if (madeAt === undefined || madeAt + sessionIdleMs < now()) continue
        const isOld = madeAt + renewAfterMs < now()
        return { isValid: true, ...(isOld ? { renewed: signed(token, 'session', now()) } : {}) }
      }
      return { isValid: false }
    },
  }
}

/** The code of a login link: works once, for five minutes, and a client with the token can make one. */
export function loginCode(token: string, nowMs: number = Date.now()): string {
  return signed(token, 'login', nowMs)
}

/** The link itself. The code is in the fragment, which browsers do not send and servers do not log. */
export function loginLink(url: string, token: string, nowMs: number = Date.now()): string {
  return `${url}/login#${loginCode(token, nowMs)}`
}

function signed(token: string, purpose: string, atMs: number): string {
  const text = `${atMs.toString(36)}.${randomBytes(12).toString('base64url')}`
  return `${text}.${signature(token, purpose, text)}`
}

/** When it was signed; undefined where the signature is not ours. */
function signedTime(token: string, purpose: string, value: string): number | undefined {
  const [time = '', random = '', given = '', ...more] = value.split('.')
  // Only the exact text is accepted: with trailing characters ignored, a used code could be used again under another spelling.
  if (more.length > 0) return undefined
  const wanted = signature(token, purpose, `${time}.${random}`)
  if (!timingSafeEqual(digest(given), digest(wanted))) return undefined
  return Number.parseInt(time, 36)
}

function signature(token: string, purpose: string, text: string): string {
  return createHmac('sha256', `corral ${purpose} ${token}`).update(text).digest('base64url')
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** Longest life of a token: a leaked one is of no use the next day. */
const maxLifeSeconds = 3600
const leewaySeconds = 30

export interface TokenCheck {
  readonly publicKey: KeyObject
  /** `namespace/name` of this sandbox; the token's `sub` must be it. */
  readonly sandbox: string
}

/** Where Kubernetes tells a pod its namespace, unless its template keeps the service account out. */
const serviceAccountNamespace = '/var/run/secrets/kubernetes.io/serviceaccount/namespace'

/**
 * `namespace/name` of the sandbox this daemon runs in. Throws where the namespace cannot be told: the name alone is also that
 * of sandboxes in other namespaces, and a token for one of them would open this one.
 */
export function ownSandbox(
  env: NodeJS.ProcessEnv,
  hostName: string,
  namespaceFile: string = serviceAccountNamespace,
): string {
  const name = env.CORRAL_DAEMON_SANDBOX || env.HOSTNAME || hostName
  if (name.includes('/')) return name
  const namespace = env.CORRAL_DAEMON_NAMESPACE || readText(namespaceFile)
  if (!namespace)
    throw new Error(
      `CORRAL_DAEMON_PUBLIC_KEY needs to know whose tokens open this sandbox: set CORRAL_DAEMON_SANDBOX=namespace/${name}, or CORRAL_DAEMON_NAMESPACE from the field metadata.namespace`,
    )
  return `${namespace}/${name}`
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return '' // Not mounted.
  }
}

/** Reads an Ed25519 public key: PEM, or the base64 of its DER or raw form. */
export function readPublicKey(text: string): KeyObject {
  if (text.includes('BEGIN')) return createPublicKey(text.replaceAll('\\n', '\n'))
  const bytes = Buffer.from(text.trim(), 'base64')
  if (bytes.length !== 32) return createPublicKey({ key: bytes, format: 'der', type: 'spki' })
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') }, format: 'jwk' })
}

/** Why an `Authorization` header does not open this sandbox; undefined where it does. A JWT signed with EdDSA. */
export function refuseToken(check: TokenCheck, authorization: string | undefined, now: Date): string | undefined {
  const token = /^Bearer (\S+)$/i.exec(authorization ?? '')?.[1]
  if (!token) return 'a bearer token is needed'
  const [header, payload, signature] = token.split('.')
  if (!header || !payload || !signature) return 'the token is not a JWT'
  if (decode(header)?.alg !== 'EdDSA') return 'the token is not signed with EdDSA'
  const isSigned = verify(
    null,
    Buffer.from(`${header}.${payload}`),
    check.publicKey,
    Buffer.from(signature, 'base64url'),
  )
  if (!isSigned) return 'the signature of the token is wrong'
  const claims = decode(payload)
  const nowSeconds = now.getTime() / 1000
  if (typeof claims?.exp !== 'number') return 'the token has no end'
  if (claims.exp <= nowSeconds) return 'the token has expired'
  if (claims.exp > nowSeconds + maxLifeSeconds + leewaySeconds) return 'the token lives longer than an hour'
  if (typeof claims.nbf === 'number' && claims.nbf > nowSeconds + leewaySeconds) return 'the token is not valid yet'
  return claims.sub === check.sandbox ? undefined : 'the token is for another sandbox'
}

function decode(part: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(Buffer.from(part, 'base64url').toString('utf8')) as Record<string, unknown>
  } catch {
    return undefined // not JSON: the caller refuses it
  }
}

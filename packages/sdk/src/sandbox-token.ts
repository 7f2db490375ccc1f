import { createPrivateKey, type KeyLike, sign } from 'node:crypto'

export interface SandboxTokenClaims {
  readonly name: string
  readonly namespace: string
  /** At most an hour; five minutes without it. */
  readonly lifetimeSeconds?: number
}

/** A token for the daemon of one sandbox that was started with the public half of this Ed25519 key. */
export function signSandboxToken(privateKey: KeyLike, claims: SandboxTokenClaims, now: Date = new Date()): string {
  const issuedAt = Math.floor(now.getTime() / 1000)
  const exp = issuedAt + Math.min(claims.lifetimeSeconds ?? 300, 3600)
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ alg: 'EdDSA', typ: 'JWT' })}.${part({ sub: `${claims.namespace}/${claims.name}`, iat: issuedAt, exp })}`
  const key = typeof privateKey === 'object' && 'type' in privateKey ? privateKey : createPrivateKey(privateKey)
  return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`
}

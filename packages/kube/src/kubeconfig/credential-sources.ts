import { readFile } from 'node:fs/promises'
import { KubeError } from '@corral/resources'
import type { Credentials } from '../cluster-access.js'

export interface CredentialRequest {
  readonly refused?: boolean
  readonly signal?: AbortSignal | undefined
}

export type CredentialSource = (request?: CredentialRequest) => Promise<Credentials>

/** How long a token read from a file is used before it is read again; kubelets rotate them well ahead of expiry. */
const tokenFileMs = 10_000

/** A token in a file that another program renews. */
export function tokenFileSource(file: string, origin: string, certificate: Credentials = {}): CredentialSource {
  let cached: { credentials: Credentials; readAtMs: number } | undefined
  return async ({ refused = false } = {}) => {
    if (cached && !refused && performance.now() - cached.readAtMs < tokenFileMs) return cached.credentials
    try {
      const token = (await readFile(file, 'utf8')).trim()
      const credentials = { ...certificate, authorization: `Bearer ${token}` }
      cached = { credentials, readAtMs: performance.now() }
      return credentials
    } catch (cause) {
      throw new KubeError('CredentialsUnavailable', `${origin}: token file ${file} cannot be read`, { cause })
    }
  }
}

/** Keeps what `fetch` hands out until shortly before it expires; callers at the same time share one `fetch`. */
export function cachedSource(
  fetch: () => Promise<{ credentials: Credentials; expiresAt?: Date }>,
  now: () => Date = () => new Date(),
): CredentialSource {
  const earlyMs = 10_000
  let cached: { credentials: Credentials; expiresAt?: Date } | undefined
  let underway: Promise<Credentials> | undefined

  async function renew(): Promise<Credentials> {
    try {
      cached = await fetch()
      return cached.credentials
    } finally {
      underway = undefined
    }
  }
  return async ({ refused = false } = {}) => {
    const isFresh = cached && (!cached.expiresAt || cached.expiresAt.getTime() - earlyMs > now().getTime())
    if (cached && isFresh && !refused) return cached.credentials
    underway ??= renew()
    return underway
  }
}

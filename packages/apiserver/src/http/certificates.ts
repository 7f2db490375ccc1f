import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type IssuedCertificate, issueCertificate } from './issue-certificate.js'

/** A certificate with its key, PEM. */
export interface KeyPair {
  readonly cert: string
  readonly key: string
}

/** What a server on TLS needs: its authority, its own certificate, and one for the administrator's client. */
export interface TlsMaterial {
  readonly ca: KeyPair
  readonly server: KeyPair
  readonly admin: KeyPair
}

const DAY_MS = 24 * 3600_000
const LIFETIME_DAYS = 3650
const RENEW_BEFORE_DAYS = 30
const SERVER_NAMES = ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc']
const SERVER_ADDRESSES = ['127.0.0.1', '::1']
/** Name and group of the client certificate: the group is the one that may do everything. */
export const ADMIN_NAME = 'corral-admin'
const ADMIN_SUBJECT = { commonName: ADMIN_NAME, organisation: 'system:masters' }

/**
 * The certificates under `directory`, made when missing, close to their end, not valid yet (the clock was ahead when they
 * were made) or damaged: a power cut leaves empty files. Keys are readable by their owner only.
 */
export async function ensureCertificates(directory: string, hosts: readonly string[] = []): Promise<TlsMaterial> {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const found = readMaterial(directory)
  if (found && isUsable(found, hosts)) return found
  const made = makeCertificates(hosts)
  for (const [name, pair] of Object.entries(made) as [string, KeyPair][]) {
    writeSecret(join(directory, `${name}.key`), pair.key)
    writeSecret(join(directory, `${name}.crt`), pair.cert)
  }
  return made
}

/** A random token kept in a file, made when missing. */
export function ensureToken(path: string): string {
  try {
    const token = readFileSync(path, 'utf8').trim()
    if (token.length >= 32) return token
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  const token = randomBytes(32).toString('base64url')
  writeSecret(path, token)
  return token
}

/** Writes a file only its owner can read, all at once: readers see the old text or the new one. */
export function writeSecret(path: string, text: string): void {
  const temporary = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.tmp`
  writeFileSync(temporary, text, { mode: 0o600, flag: 'wx' })
  renameSync(temporary, path)
}

function readMaterial(directory: string): TlsMaterial | undefined {
  try {
    const pair = (name: string): KeyPair => ({
      cert: readFileSync(join(directory, `${name}.crt`), 'utf8'),
      key: readFileSync(join(directory, `${name}.key`), 'utf8'),
    })
    return { ca: pair('ca'), server: pair('server'), admin: pair('admin') }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function isUsable(material: TlsMaterial, hosts: readonly string[]): boolean {
  try {
    return isValid(material, hosts)
  } catch {
    // Not PEM: what cannot be read serves nobody.
    return false
  }
}

function isValid(material: TlsMaterial, hosts: readonly string[]): boolean {
  const ca = new X509Certificate(material.ca.cert)
  const limit = Date.now() + RENEW_BEFORE_DAYS * DAY_MS
  const server = new X509Certificate(material.server.cert)
  const covers = hosts.every((host) => (isAddress(host) ? server.checkIP(host) : server.checkHost(host)))
  const admin = new X509Certificate(material.admin.cert)
  const pairs = [
    [ca, material.ca],
    [server, material.server],
    [admin, material.admin],
  ] as const
  return (
    covers &&
    pairs.every(
      ([certificate, { key }]) =>
        Date.parse(certificate.validTo) > limit &&
        Date.parse(certificate.validFrom) <= Date.now() &&
        certificate.verify(ca.publicKey) &&
        certificate.checkPrivateKey(createPrivateKey(key)),
    )
  )
}

const isAddress = (host: string): boolean => /^[\d.]+$/.test(host) || host.includes(':')

function makeCertificates(hosts: readonly string[]): TlsMaterial {
  const lifetime = {
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + LIFETIME_DAYS * DAY_MS),
  }
  const caName = `corral-ca-${randomBytes(4).toString('hex')}`
  const ca = issueCertificate({ subject: { commonName: caName }, purpose: 'authority', ...lifetime })
  const server = issueCertificate(
    {
      subject: { commonName: 'corral-apiserver' },
      purpose: 'server',
      names: [...new Set([...SERVER_NAMES, ...hosts.filter((host) => !isAddress(host))])],
      addresses: [...new Set([...SERVER_ADDRESSES, ...hosts.filter(isAddress)])],
      ...lifetime,
    },
    ca,
  )
  const admin = issueCertificate({ subject: ADMIN_SUBJECT, purpose: 'client', ...lifetime }, ca)
  return { ca: keyPair(ca), server: keyPair(server), admin: keyPair(admin) }
}

function keyPair({ cert, privateKey }: IssuedCertificate): KeyPair {
  // Asked for as PEM, the export is text.
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string }
}

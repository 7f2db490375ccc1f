import { randomBytes, webcrypto, X509Certificate } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

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
const ADMIN_SUBJECT = `CN=${ADMIN_NAME}, O=system:masters`

/**
 * The certificates under `directory`, made when missing or close to their end. Keys are readable by their owner only.
 * The library that signs is loaded only when something must be signed.
 */
export async function ensureCertificates(directory: string, hosts: readonly string[] = []): Promise<TlsMaterial> {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const found = readMaterial(directory)
  if (found && isUsable(found, hosts)) return found
  const made = await makeCertificates(hosts)
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
  const ca = new X509Certificate(material.ca.cert)
  const limit = Date.now() + RENEW_BEFORE_DAYS * DAY_MS
  const server = new X509Certificate(material.server.cert)
  const covers = hosts.every((host) => (isAddress(host) ? server.checkIP(host) : server.checkHost(host)))
  return (
    covers &&
    [ca, server, new X509Certificate(material.admin.cert)].every(
      (certificate) => Date.parse(certificate.validTo) > limit && certificate.verify(ca.publicKey),
    )
  )
}

const isAddress = (host: string): boolean => /^[\d.]+$/.test(host) || host.includes(':')

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

async function makeCertificates(hosts: readonly string[]): Promise<TlsMaterial> {
  await import('reflect-metadata')
  const x509 = await import('@peculiar/x509')
  x509.cryptoProvider.set(webcrypto as typeof globalThis.crypto)
  const notBefore = new Date(Date.now() - DAY_MS)
  const notAfter = new Date(Date.now() + LIFETIME_DAYS * DAY_MS)
  const serialNumber = (): string => `00${randomBytes(15).toString('hex')}`
  const newKeys = (): Promise<CryptoKeyPair> => webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const base = { notBefore, notAfter, signingAlgorithm: ALGORITHM }

  const caKeys = await newKeys()
  const caName = `CN=corral-ca-${randomBytes(4).toString('hex')}`
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    ...base,
    serialNumber: serialNumber(),
    name: caName,
    keys: caKeys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(caKeys.publicKey),
    ],
  })

  const issue = async (subject: string, extensions: InstanceType<typeof x509.Extension>[]): Promise<KeyPair> => {
    const keys = await newKeys()
    const certificate = await x509.X509CertificateGenerator.create({
      ...base,
      serialNumber: serialNumber(),
      subject,
      issuer: caName,
      signingKey: caKeys.privateKey,
      publicKey: keys.publicKey,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        await x509.AuthorityKeyIdentifierExtension.create(caKeys.publicKey),
        ...extensions,
      ],
    })
    return { cert: certificate.toString('pem'), key: await privatePem(keys.privateKey) }
  }

  const names = [...SERVER_NAMES, ...hosts.filter((host) => !isAddress(host))]
  const addresses = [...SERVER_ADDRESSES, ...hosts.filter(isAddress)]
  return {
    ca: { cert: ca.toString('pem'), key: await privatePem(caKeys.privateKey) },
    server: await issue('CN=corral-apiserver', [
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([
        ...[...new Set(names)].map((value) => ({ type: 'dns' as const, value })),
        ...[...new Set(addresses)].map((value) => ({ type: 'ip' as const, value })),
      ]),
    ]),
    admin: await issue(ADMIN_SUBJECT, [new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth])]),
  }
}

type CryptoKeyPair = webcrypto.CryptoKeyPair

async function privatePem(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key))
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN PRIVATE KEY-----\n${lines.join('\n')}\n-----END PRIVATE KEY-----\n`
}

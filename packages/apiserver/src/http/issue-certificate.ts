import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { isIPv4 } from 'node:net'
import { bitString, integer, isTrue, objectId, octetString, sequence, setOf, tagged, time, utf8String } from './der.js'

/** Names in a certificate's subject or issuer. */
export interface DistinguishedName {
  readonly commonName: string
  readonly organisation?: string
}

export interface CertificateRequest {
  readonly subject: DistinguishedName
  readonly notBefore: Date
  readonly notAfter: Date
  /** An authority may sign others; a server and a client prove who they are. */
  readonly purpose: 'authority' | 'server' | 'client'
  /** DNS names and IP addresses a server answers for. */
  readonly names?: readonly string[]
  readonly addresses?: readonly string[]
}

/** A certificate with its keys, as its signer needs it. */
export interface IssuedCertificate {
  readonly subject: DistinguishedName
  /** PEM. */
  readonly cert: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

/**
 * Issues an X.509 certificate (P-256, ECDSA with SHA-256) for a new key, signed by `issuer` or by itself. Written out
 * because the libraries for it take longer to load than everything else a first start does.
 */
export function issueCertificate(request: CertificateRequest, issuer?: IssuedCertificate): IssuedCertificate {
  const { subject } = request
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const signer = issuer ?? { subject, ...keys }
  const body = sequence(
    tagged(0, integer(Buffer.from([2]))), // version 3
    integer(serialNumber()),
    ECDSA_WITH_SHA256,
    nameOf(signer.subject),
    sequence(time(request.notBefore), time(request.notAfter)),
    nameOf(subject),
    keys.publicKey.export({ type: 'spki', format: 'der' }),
    tagged(3, sequence(...extensions(request, keys.publicKey, signer.publicKey))),
  )
  const der = sequence(body, ECDSA_WITH_SHA256, bitString(sign('sha256', body, signer.privateKey)))
  return { subject, cert: pem(der), ...keys }
}

const ECDSA_WITH_SHA256 = sequence(objectId('1.2.840.10045.4.3.2'))

/** 16 bytes: never zero, never with the sign bit. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16)
  bytes[0] = 0x40 | (bytes[0]! & 0x3f)
  return bytes
}

function nameOf({ commonName, organisation }: DistinguishedName): Buffer {
  const part = (id: string, text: string): Buffer => setOf(sequence(objectId(id), utf8String(text)))
  const parts = [part('2.5.4.3', commonName)]
  if (organisation !== undefined) parts.push(part('2.5.4.10', organisation))
  return sequence(...parts)
}

const EXTENDED_USAGE = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' } as const

function extensions(request: CertificateRequest, own: KeyObject, signer: KeyObject): Buffer[] {
  const { purpose, names = [], addresses = [] } = request
  if (purpose === 'authority') {
    return [
      critical('2.5.29.19', sequence(isTrue, integer(Buffer.from([0])))), // an authority, with none below it
      critical('2.5.29.15', bitString(Buffer.from([0b0000_0110]), 1)), // signs certificates and revocations
      extension('2.5.29.14', octetString(keyId(own))),
    ]
  }
  const alternatives = [
    ...names.map((name) => tagged(2, Buffer.from(name, 'ascii'), true)),
    ...addresses.map((address) => tagged(7, addressBytes(address), true)),
  ]
  return [
    critical('2.5.29.19', sequence()),
    critical('2.5.29.15', bitString(Buffer.from([0b1000_0000]), 7)), // signs handshakes
    extension('2.5.29.35', sequence(tagged(0, keyId(signer), true))),
    extension('2.5.29.37', sequence(objectId(EXTENDED_USAGE[purpose]))),
    ...(alternatives.length > 0 ? [extension('2.5.29.17', sequence(...alternatives))] : []),
  ]
}

const extension = (id: string, value: Buffer): Buffer => sequence(objectId(id), octetString(value))
const critical = (id: string, value: Buffer): Buffer => sequence(objectId(id), isTrue, octetString(value))

/** SHA-1 of the point, which is the last 65 bytes of a P-256 key: a name for the key, not a proof of anything. */
function keyId(key: KeyObject): Buffer {
  const point = key.export({ type: 'spki', format: 'der' }).subarray(-65)
  return createHash('sha1').update(point).digest()
}

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number))
  // URLs write every IPv6 address in one form: groups in hex, the longest run of zeros left out.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const groups = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
  const [front, back] = [groups(head), groups(tail ?? '')]
  const all = [...front, ...Array<number>(8 - front.length - back.length).fill(0), ...back]
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]))
}

function pem(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

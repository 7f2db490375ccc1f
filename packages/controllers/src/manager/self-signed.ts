import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'

/** A throw-away certificate for the metrics port, where none is configured. Valid for a year, for `localhost`. */
export function selfSignedCertificate(now: Date): { cert: string; key: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = sequence(oid('2a8648ce3d040302')) // ecdsa-with-SHA256
  const name = sequence(set(sequence(oid('550403'), der(0x0c, Buffer.from('localhost')))))
  const subjectAltName = sequence(oid('551d11'), der(0x04, sequence(der(0x82, Buffer.from('localhost')))))
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(15)])), // serial, positive by its first byte
    algorithm,
    name,
    sequence(time(now, -3_600_000), time(now, 365 * 86_400_000)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(subjectAltName)),
  )
  const signature = sign('sha256', body, privateKey)
  const certificate = sequence(body, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), signature])))
  return { cert: pem('CERTIFICATE', certificate), key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content])
  const bytes = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...bytes]), content])
}

const sequence = (...parts: Buffer[]): Buffer => der(0x30, Buffer.concat(parts))
const set = (...parts: Buffer[]): Buffer => der(0x31, Buffer.concat(parts))
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'))

function time(now: Date, offsetMs: number): Buffer {
  const digits = new Date(now.getTime() + offsetMs).toISOString().replace(/[-:T]/g, '').slice(2, 14)
  return der(0x17, Buffer.from(`${digits}Z`))
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}

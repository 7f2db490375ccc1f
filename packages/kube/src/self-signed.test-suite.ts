import { generateKeyPairSync, sign } from 'node:crypto'

/** A fresh certificate for localhost and 127.0.0.1 that signs itself, for TLS servers in tests. */
export function selfSigned(commonName = 'localhost'): { cert: string; key: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = tlv(0x30, oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02))
  const name = tlv(0x30, tlv(0x31, tlv(0x30, oid(0x55, 0x04, 0x03), tlv(0x0c, Buffer.from(commonName)))))
  const body = tlv(
    0x30,
    tlv(0xa0, tlv(0x02, Buffer.from([2]))),
    tlv(0x02, Buffer.from([1, ...Buffer.from(String(process.hrtime.bigint())).subarray(-8)])),
    algorithm,
    name,
    tlv(0x30, tlv(0x18, Buffer.from('20000101000000Z')), tlv(0x18, Buffer.from('21000101000000Z'))),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa3, tlv(0x30, basicConstraints(), alternativeNames())),
  )
  const signature = sign('sha256', body, privateKey)
  const certificate = tlv(0x30, body, algorithm, tlv(0x03, Buffer.concat([Buffer.from([0]), signature])))
  // An empty line before the end, as a text of whole lines would get by breaking after each, is refused by OpenSSL.
  const base64 = (certificate.toString('base64').match(/.{1,64}/g) ?? []).join('\n')
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

function basicConstraints(): Buffer {
  return tlv(0x30, oid(0x55, 0x1d, 0x13), tlv(0x04, tlv(0x30, tlv(0x01, Buffer.from([0xff])))))
}

function alternativeNames(): Buffer {
  const names = tlv(0x30, tlv(0x82, Buffer.from('localhost')), tlv(0x87, Buffer.from([127, 0, 0, 1])))
  return tlv(0x30, oid(0x55, 0x1d, 0x11), tlv(0x04, names))
}

const oid = (...bytes: number[]): Buffer => tlv(0x06, Buffer.from(bytes))

function tlv(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

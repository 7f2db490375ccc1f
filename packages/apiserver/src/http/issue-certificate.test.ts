import { X509Certificate } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { type CertificateRequest, issueCertificate } from './issue-certificate.js'

const lifetime = { notBefore: new Date('2026-01-02T03:04:05Z'), notAfter: new Date('2036-01-02T03:04:05Z') }
const authority = issueCertificate({ subject: { commonName: 'test-ca' }, purpose: 'authority', ...lifetime })
const issue = (request: Partial<CertificateRequest>): X509Certificate =>
  new X509Certificate(
    issueCertificate({ subject: { commonName: 'leaf' }, purpose: 'server', ...lifetime, ...request }, authority).cert,
  )

describe('issued certificates as OpenSSL reads them', () => {
  it('an authority signs itself and may sign others', () => {
    const ca = new X509Certificate(authority.cert)
    expect(ca.ca).toBe(true)
    expect(ca.verify(ca.publicKey)).toBe(true)
    expect(ca.checkIssued(ca)).toBe(true)
  })

  it('a leaf is signed by the authority, and by no other', () => {
    const ca = new X509Certificate(authority.cert)
    const other = issueCertificate({ subject: { commonName: 'test-ca' }, purpose: 'authority', ...lifetime })
    const leaf = issue({})
    expect(leaf.ca).toBe(false)
    expect(leaf.checkIssued(ca)).toBe(true)
    expect(leaf.verify(ca.publicKey)).toBe(true)
    expect(leaf.verify(other.publicKey)).toBe(false)
  })

  it('a certificate belongs to its key', () => {
    const issued = issueCertificate({ subject: { commonName: 'c' }, purpose: 'client', ...lifetime }, authority)
    const certificate = new X509Certificate(issued.cert)
    expect(certificate.checkPrivateKey(issued.privateKey)).toBe(true)
    expect(certificate.checkPrivateKey(authority.privateKey)).toBe(false)
  })

  it.each([
    ['a name alone', { commonName: 'one' }, 'CN=one'],
    [
      'a name and a group',
      { commonName: 'corral-admin', organisation: 'system:masters' },
      'CN=corral-admin\nO=system:masters',
    ],
    ['letters beyond ASCII', { commonName: 'grüße' }, 'CN=grüße'],
  ])('the subject carries %s', (_what, subject, text) => {
    expect(issue({ subject }).subject).toBe(text)
  })

  it.each([
    ['before 2050', '2049-12-31T23:59:59Z', 'Dec 31 23:59:59 2049 GMT'],
    ['from 2050 on', '2050-01-01T00:00:00Z', 'Jan  1 00:00:00 2050 GMT'],
  ])('the end of life is understood %s', (_what, notAfter, text) => {
    expect(issue({ notAfter: new Date(notAfter) }).validTo).toBe(text)
  })

  it.each(['127.0.0.1', '::1', 'fe80::1', '2001:db8:0:0:1::1', '::ffff:10.0.0.1'])(
    'covers the address %s',
    (address) => {
      const leaf = issue({ addresses: [address] })
      expect(leaf.checkIP(address)).toBe(address)
      expect(leaf.checkIP('10.9.9.9')).toBeUndefined()
    },
  )

  it('covers more names than fit a short length, and no others', () => {
    const names = Array.from({ length: 40 }, (_, index) => `host-${index}.example.test`)
    const leaf = issue({ names })
    for (const name of names) expect(leaf.checkHost(name)).toBe(name)
    expect(leaf.checkHost('host-40.example.test')).toBeUndefined()
  })

  it.each([
    ['server', '1.3.6.1.5.5.7.3.1'],
    ['client', '1.3.6.1.5.5.7.3.2'],
  ] as const)('a %s certificate is for nothing else', (purpose, usage) => {
    expect(issue({ purpose }).keyUsage).toEqual([usage])
  })

  it('has a serial number of its own, positive and never short', () => {
    const serials = Array.from({ length: 20 }, () => issue({}).serialNumber)
    expect(new Set(serials).size).toBe(20)
    for (const serial of serials) expect(serial).toMatch(/^[4-7][0-9A-F]{31}$/)
  })
})

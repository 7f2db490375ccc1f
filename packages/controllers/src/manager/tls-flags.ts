import { getCiphers } from 'node:tls'
import type { MetricsTls } from './options.js'

const versions: Record<string, NonNullable<MetricsTls['minVersion']>> = {
  VersionTLS10: 'TLSv1',
  VersionTLS11: 'TLSv1.1',
  VersionTLS12: 'TLSv1.2',
  VersionTLS13: 'TLSv1.3',
}

/** Reads the TLS flags of the metrics server. They mean nothing without TLS, and saying so beats ignoring them. */
export function parseTlsFlags(flags: {
  secure: boolean
  certDir: string
  minVersion: string
  cipherSuites: string
}): { tls?: MetricsTls } | { error: string } {
  const { secure, certDir, minVersion, cipherSuites } = flags
  if (!secure) {
    return certDir || minVersion || cipherSuites ? { error: 'TLS flags require --metrics-secure-serving' } : {}
  }
  const version = versions[minVersion]
  if (minVersion && !version) {
    return { error: `invalid TLS configuration: unknown tls version ${JSON.stringify(minVersion)}` }
  }
  const names = cipherSuites
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean)
  const ciphers: string[] = []
  for (const name of names) {
    const cipher = opensslName(name)
    if (!cipher) return { error: `invalid TLS configuration: Cipher suite ${name} not supported or doesn't exist` }
    ciphers.push(cipher)
  }
  return {
    tls: {
      ...(certDir && { certDir }),
      ...(version && { minVersion: version }),
      // TLS 1.3 has its own suites, which are not a matter of choice.
      ...(ciphers.length > 0 && version !== 'TLSv1.3' && { cipherSuites: ciphers }),
    },
  }
}

/** `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` as OpenSSL calls it. Undefined for what this Node cannot speak. */
function opensslName(name: string): string | undefined {
  if (name.startsWith('TLS_') && !name.includes('_WITH_')) {
    return getCiphers().includes(name.toLowerCase()) ? name : undefined
  }
  const match = /^TLS_(.+)_WITH_(.+)$/.exec(name)
  if (!match?.[1] || !match[2]) return undefined
  const exchange = match[1] === 'RSA' ? '' : `${match[1].replaceAll('_', '-')}-`
  const cipher = match[2]
    .replace(/AES_(\d+)_/, 'AES$1-')
    .replace(/-CBC_/, '-')
    .replace(/CHACHA20_POLY1305(_SHA256)?/, 'CHACHA20-POLY1305')
    .replaceAll('_', '-')
  const openssl = `${exchange}${cipher}`
  return getCiphers().includes(openssl.toLowerCase()) ? openssl : undefined
}

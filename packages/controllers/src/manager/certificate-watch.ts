import { type FSWatcher, watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'

export interface CertificatePair {
  cert: Buffer
  key: Buffer
}

export interface CertificateWatchOptions {
  /** Holds `tls.crt` and `tls.key`. */
  directory: string
  /** Told of every reading, with the error of one that failed. */
  onRead: (error?: unknown) => void
  /** Handed every pair that differs from the one before. */
  onChange: (pair: CertificatePair) => void
  /** Time between looks that nothing asked for; a mount may change without a word. */
  pollMs?: number
}

export interface CertificateWatch {
  readonly pair: CertificatePair
  stop(): void
}

/**
 * Reads a certificate and follows its files: at every change of the directory, and every ten seconds. Rejects when the
 * first pair cannot be used; of later ones it only tells, and the pair before stays.
 */
export async function watchCertificate(options: CertificateWatchOptions): Promise<CertificateWatch> {
  const { directory, onRead, onChange, pollMs = 10_000 } = options
  let current = await read(directory, onRead)
  let isReading = false
  let isChanged = false
  let isStopped = false

  async function refresh(): Promise<void> {
    isChanged = true
    if (isReading) return
    isReading = true
    while (isChanged && !isStopped) {
      isChanged = false
      // The reading has told what is wrong; a renewal writes one file after the other.
      const next = await read(directory, onRead).catch(() => current)
      const isSame = next.cert.equals(current.cert) && next.key.equals(current.key)
      current = next
      if (!isSame && !isStopped) onChange(next)
    }
    isReading = false
  }

  const timer = setInterval(() => void refresh(), pollMs).unref()
  const watcher = follow(directory, () => void refresh())
  return {
    pair: current,
    stop() {
      isStopped = true
      clearInterval(timer)
      watcher?.close()
    },
  }
}

async function read(directory: string, onRead: CertificateWatchOptions['onRead']): Promise<CertificatePair> {
  try {
    const [cert, key] = await Promise.all([readFile(join(directory, 'tls.crt')), readFile(join(directory, 'tls.key'))])
    createSecureContext({ cert, key }) // refuses a key that is not the certificate's
    onRead()
    return { cert, key }
  } catch (error) {
    onRead(error)
    throw error
  }
}

/** The directory, because files are replaced rather than written. Where nothing can be watched, the looks must do. */
function follow(directory: string, changed: () => void): FSWatcher | undefined {
  try {
    return watch(directory, { persistent: false }, changed).on('error', () => {})
  } catch {
    return undefined
  }
}

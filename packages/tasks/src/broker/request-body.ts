import type { IncomingMessage } from 'node:http'

/** The most a request may send, and the most that is kept to send it again. */
export const bodyLimits: { readonly maxBytes: number; readonly replayBytes: number } = {
  maxBytes: 64 * 1024 * 1024,
  replayBytes: 16 * 1024 * 1024,
}

const modelScanBytes = 64 * 1024

/**
 * The body of a request on its way to the provider. It flows as it comes; a copy is kept as long as it is small enough,
 * so that a provider that was busy can be asked again.
 */
export class RequestBody {
  readonly #chunks: Buffer[] = []
  readonly complete: Promise<boolean>
  size = 0

  constructor(request: IncomingMessage, onTooLarge: () => void, maxBytes: number = bodyLimits.maxBytes) {
    this.complete = new Promise((resolve) => {
      request.on('data', (chunk: Buffer) => {
        this.size += chunk.length
        if (this.size > maxBytes) onTooLarge()
        else if (this.size <= bodyLimits.replayBytes) this.#chunks.push(chunk)
        else this.#chunks.length = 0
      })
      request.once('end', () => resolve(true))
      request.once('close', () => resolve(false))
    })
  }

  /** The whole body; undefined where it was too large to be kept. Valid once it is complete. */
  replay(): Buffer | undefined {
    return this.size <= bodyLimits.replayBytes ? Buffer.concat(this.#chunks) : undefined
  }

  /** The model the request names, where it names it early. */
  get model(): string | undefined {
    const head = Buffer.concat(this.#chunks.slice(0, 4)).subarray(0, modelScanBytes).toString('utf8')
    return /"model"\s*:\s*"([^"\\]{1,200})"/.exec(head)?.[1]
  }
}

import type { IncomingMessage } from 'node:http'

/** The most a request may send, the most that is kept to send it again, and the most that is kept for one task. */
export const bodyLimits: { readonly maxBytes: number; readonly replayBytes: number; readonly taskReplayBytes: number } =
  {
    maxBytes: 64 * 1024 * 1024,
    replayBytes: 16 * 1024 * 1024,
    taskReplayBytes: 64 * 1024 * 1024,
  }

const modelScanBytes = 64 * 1024

/** Counts what is kept for each task: a sandbox may have hundreds of calls under way, and each may take minutes. */
export class ReplayRoom {
  readonly #bytes = new Map<string, number>()

  constructor(private readonly limitBytes: number = bodyLimits.taskReplayBytes) {}

  take(uid: string, bytes: number): boolean {
    const taken = (this.#bytes.get(uid) ?? 0) + bytes
    if (taken > this.limitBytes) return false
    this.#bytes.set(uid, taken)
    return true
  }

  giveBack(uid: string, bytes: number): void {
    const left = (this.#bytes.get(uid) ?? 0) - bytes
    if (left > 0) this.#bytes.set(uid, left)
    else this.#bytes.delete(uid)
  }
}

export interface RequestBodyOptions {
  uid: string
  room: ReplayRoom
  onTooLarge(): void
  maxBytes?: number | undefined
}

/**
 * The body of a request on its way to the provider. It flows as it comes; a copy is kept as long as it is small enough and
 * the task has room, so that a provider that was busy can be asked again.
 */
export class RequestBody {
  readonly #chunks: Buffer[] = []
  #keptBytes = 0
  #isKept = true
  #head = Buffer.alloc(0)
  readonly complete: Promise<boolean>
  size = 0

  constructor(
    request: IncomingMessage,
    private readonly options: RequestBodyOptions,
  ) {
    const { onTooLarge, maxBytes = bodyLimits.maxBytes } = options
    this.complete = new Promise((resolve) => {
      request.on('data', (chunk: Buffer) => {
        this.size += chunk.length
        if (this.#head.length < modelScanBytes)
          this.#head = Buffer.concat([this.#head, chunk.subarray(0, modelScanBytes - this.#head.length)])
        if (this.size > maxBytes) onTooLarge()
        else this.#keep(chunk)
      })
      request.once('end', () => resolve(true))
      request.once('close', () => resolve(false))
    })
  }

  /** The whole body; undefined where it was too large to be kept. Valid once it is complete. */
  replay(): Buffer | undefined {
    return this.#isKept ? Buffer.concat(this.#chunks) : undefined
  }

  /** The call is over: what was kept goes. */
  release(): void {
    this.#isKept = false
    this.#chunks.length = 0
    this.options.room.giveBack(this.options.uid, this.#keptBytes)
    this.#keptBytes = 0
  }

  /** The model the request names, where it names it early. */
  get model(): string | undefined {
    return /"model"\s*:\s*"([^"\\]{1,200})"/.exec(this.#head.toString('utf8'))?.[1]
  }

  #keep(chunk: Buffer): void {
    if (!this.#isKept) return
    const { uid, room } = this.options
    if (this.size > bodyLimits.replayBytes || !room.take(uid, chunk.length)) {
      this.release()
      return
    }
    this.#keptBytes += chunk.length
    this.#chunks.push(chunk)
  }
}

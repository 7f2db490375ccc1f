import * as z from 'zod'
import { processIdSchema, type StartProcessRequest, startProcessRequestSchema } from './daemon-api.js'

/**
 * A process line: after `CONNECT processes:8888` a connection carries commands, one after the other, without HTTP around each
 * of them. The client sends messages, each four bytes of length, big-endian, and JSON; the daemon answers a `start` with
 * frames of output up to the exit or a failure. Whatever breaks on it is made up for over HTTP, by the process's id.
 */
export const processLineHost = 'processes'

/** Longest message: a request with all the input it may carry. */
export const maxLineMessageBytes = 8 * 1024 * 1024

export const lineMessageSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('start'),
    id: processIdSchema,
    /** See `openProcess`. */
    boot: z.string().max(100).optional(),
    request: startProcessRequestSchema,
    /** W3C headers of the trace the command belongs to, as HTTP would carry them. */
    trace: z.record(z.string(), z.string().max(1024)).optional(),
  }),
  /** Output up to here was received. */
  z.object({ type: z.literal('confirm'), offset: z.number().int().nonnegative() }),
])
export type LineMessage =
  | {
      type: 'start'
      id: string
      boot?: string | undefined
      request: StartProcessRequest
      trace?: Record<string, string> | undefined
    }
  | { type: 'confirm'; offset: number }

export function encodeLineMessage(message: LineMessage): Uint8Array {
  const json = new TextEncoder().encode(JSON.stringify(message))
  const bytes = new Uint8Array(4 + json.length)
  new DataView(bytes.buffer).setUint32(0, json.length)
  bytes.set(json, 4)
  return bytes
}

/** Cuts what a client sends into messages; throws where it does not keep to the form. */
export class LineMessages {
  #pending: Uint8Array = new Uint8Array(0)

  push(chunk: Uint8Array): LineMessage[] {
    const bytes = new Uint8Array(this.#pending.length + chunk.length)
    bytes.set(this.#pending)
    bytes.set(chunk, this.#pending.length)
    const messages: LineMessage[] = []
    let position = 0
    while (bytes.length - position >= 4) {
      const length = new DataView(bytes.buffer, position, 4).getUint32(0)
      if (length > maxLineMessageBytes) throw new RangeError(`a message of ${length} bytes is too long`)
      const end = position + 4 + length
      if (end > bytes.length) break
      const text = new TextDecoder().decode(bytes.subarray(position + 4, end))
      messages.push(lineMessageSchema.parse(JSON.parse(text)))
      position = end
    }
    this.#pending = bytes.subarray(position)
    return messages
  }
}

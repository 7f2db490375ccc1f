import type { IncomingMessage } from 'node:http'
import type { ApiRequest, ApiUser } from '@corral/ports'
import { apiError, badRequest } from '../errors/api-error.js'

/** Bodies beyond this are refused with 413. */
export const MAX_BODY_BYTES: number = 3 * 1024 * 1024

const noQuery = new URLSearchParams()

/** The request as a plain record; an empty body is none. */
export function toApiRequest(
  message: IncomingMessage,
  user: ApiUser | undefined,
  signal?: AbortSignal,
  body?: Uint8Array,
): ApiRequest {
  const url = message.url ?? '/'
  const mark = url.indexOf('?')
  const request: { -readonly [Key in keyof ApiRequest]: ApiRequest[Key] } = {
    method: message.method === 'HEAD' ? 'GET' : (message.method ?? 'GET'),
    path: mark < 0 ? url : url.slice(0, mark),
    query: mark < 0 ? noQuery : new URLSearchParams(url.slice(mark + 1)),
    // Node joins repeated headers into one text, except for set-cookie, which no request has.
    headers: message.headers as Record<string, string | undefined>,
  }
  if (user) request.user = user
  if (signal) request.signal = signal
  if (body && body.length > 0) request.body = body
  return request
}

/** The whole body, up to 3 MiB; 413 beyond that, 400 when the client breaks off. */
export function readBody(message: IncomingMessage): Promise<Uint8Array> {
  if (Number(message.headers['content-length'] ?? 0) > MAX_BODY_BYTES) {
    message.resume()
    return Promise.reject(tooLarge())
  }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    message.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > MAX_BODY_BYTES) {
        message.removeAllListeners('data')
        message.resume()
        reject(tooLarge())
      } else chunks.push(chunk)
    })
    message.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    message.on('error', () => reject(badRequest('the request body was cut short')))
  })
}

const tooLarge = (): Error =>
  apiError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${MAX_BODY_BYTES}`)

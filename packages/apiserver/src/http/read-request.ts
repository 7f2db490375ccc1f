import type { IncomingMessage } from 'node:http'
import type { ApiRequest, ApiUser } from '@corral/resources'
import { apiError, badRequest } from '../errors/api-error.js'

/** Bodies beyond this are refused with 413. */
export const MAX_BODY_BYTES: number = 3 * 1024 * 1024

/** The request as a plain record, without its body. */
export function toApiRequest(message: IncomingMessage, user: ApiUser | undefined, signal?: AbortSignal): ApiRequest {
  const url = message.url ?? '/'
  const mark = url.indexOf('?')
  return {
    method: message.method === 'HEAD' ? 'GET' : (message.method ?? 'GET'),
    path: mark < 0 ? url : url.slice(0, mark),
    query: new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1)),
    // Node joins repeated headers into one text, except for set-cookie, which no request has.
    headers: message.headers as Record<string, string | undefined>,
    ...(user ? { user } : {}),
    ...(signal ? { signal } : {}),
  }
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

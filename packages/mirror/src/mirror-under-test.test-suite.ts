import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger } from '@corral/ports'
import { DiskCache } from './disk-cache.js'
import type { Registry } from './ecosystem.js'
import { createMirror } from './mirror.js'

/** An answer of the scripted registry. A `cut` body ends the connection before its announced end. */
export interface Answer {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body?: string | Buffer
  readonly cut?: boolean
}

/** A registry on loopback that answers from a table and remembers what it was asked. */
export async function scriptedRegistry(answer: (request: IncomingMessage) => Answer) {
  const asked: { url: string; headers: IncomingMessage['headers'] }[] = []
  const server = createServer((request, response) => {
    asked.push({ url: request.url ?? '', headers: request.headers })
    const { status = 200, headers = {}, body = '', cut = false } = answer(request)
    const bytes = Buffer.from(body)
    response.writeHead(status, { 'content-length': bytes.length + (cut ? 1 : 0), ...headers })
    if (!cut) return void response.end(bytes)
    response.write(bytes, () => response.destroy())
  })
  const url = await listen(server)
  return { url, asked, [Symbol.asyncDispose]: () => close(server) }
}

export async function startMirror(options: {
  upstream: (ecosystem: string) => readonly Registry[] | undefined | Promise<readonly Registry[] | undefined>
  budgetBytes?: number
  indexFreshMs?: number
  directory?: string
  mayReach?: (address: string) => boolean
}) {
  const directory = options.directory ?? (await mkdtemp(join(tmpdir(), 'corral-mirror-')))
  const cache = await DiskCache.open({ directory, budgetBytes: options.budgetBytes ?? 100_000_000 })
  const server = createServer()
  const url = await listen(server)
  const mirror = createMirror({
    cache,
    baseUrl: url,
    linkSecret: randomBytes(32),
    upstream: async (name) => {
      const registries = await options.upstream(name)
      return registries && { registries }
    },
    mayReach: options.mayReach ?? (() => true),
    log: silentLogger,
    ...(options.indexFreshMs !== undefined && { indexFreshMs: options.indexFreshMs }),
  })
  server.on('request', (request, response) => void mirror.handle(request, response))
  return {
    url,
    directory,
    cache,
    async [Symbol.asyncDispose]() {
      await close(server)
      await mirror.close()
      if (!options.directory) await rm(directory, { recursive: true, force: true })
    },
  }
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve, reject) => server.listen(0, '127.0.0.1', resolve).on('error', reject))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}

import { randomBytes } from 'node:crypto'
import { createReadStream, mkdirSync, writeFileSync } from 'node:fs'
import { Agent, createServer, get, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createMirror, DiskCache } from '@corral/mirror'
import { silentLogger } from '@corral/ports'
import { progress } from './common/bench-options.js'
import type { Recorder } from './common/result-file.js'
import { median } from './common/samples.js'

/** Tarballs of npm are this large in the middle; some are much larger. */
const sizes = [20_000, 200_000, 5_000_000]
const parallel = 8

/** What the mirror has on its disk, served to eight clients, against a server of plain files in the same process. */
export async function mirrorThroughput(
  recorder: Recorder,
  { directory, rounds, seconds }: { directory: string; rounds: number; seconds: number },
): Promise<void> {
  const files = join(directory, 'mirror-files')
  mkdirSync(files)
  for (const [index, size] of sizes.entries()) writeFileSync(join(files, `p${index}-1.0.0.tgz`), randomBytes(size))
  const plain = createServer((request, response) => {
    createReadStream(join(files, (request.url ?? '').split('/').at(-1) ?? ''))
      .on('error', () => response.writeHead(404).end())
      .pipe(response)
  })
  const plainUrl = await listen(plain)
  const cache = await DiskCache.open({ directory: join(directory, 'mirror-cache'), budgetBytes: 100_000_000 })
  const front = createServer()
  const url = await listen(front)
  const mirror = createMirror({
    cache,
    baseUrl: url,
    linkSecret: randomBytes(32),
    upstream: async (name) => (name === 'npm' ? { registries: [{ url: new URL(`${plainUrl}/`) }] } : undefined),
    mayReach: () => true,
    log: silentLogger,
  })
  front.on('request', (request, response) => void mirror.handle(request, response))
  const rates = { mirror: sizes.map((): number[] => []), static: sizes.map((): number[] => []) }
  try {
    for (let round = -1; round < rounds; round++) {
      for (const index of sizes.keys()) {
        const path = `p${index}/-/p${index}-1.0.0.tgz`
        const ofStatic = await rate(`${plainUrl}/${path}`, seconds)
        const ofMirror = await rate(`${url}/npm/${path}`, seconds)
        if (round < 0) continue // fills the cache and warms the code up
        rates.static[index]?.push(ofStatic)
        rates.mirror[index]?.push(ofMirror)
      }
      progress(`mirror, round ${round + 1} of ${rounds}`)
    }
  } finally {
    await mirror.close()
    for (const server of [front, plain]) server.close()
  }
  for (const [index, size] of sizes.entries()) {
    const values = { mirror: median(rates.mirror[index] ?? []), static: median(rates.static[index] ?? []) }
    const ratio = values.mirror / values.static
    recorder.row({
      measure: `package mirror, all hits, files of ${size.toLocaleString('en-US')} bytes, ${parallel} clients`,
      unit: 'MB/s',
      values,
      ratio,
      required: '>= 0.8 × a static file server',
      isMet: ratio >= 0.8,
    })
  }
}

/** Megabytes per second that clients one after the other get from an address. */
async function rate(url: string, seconds: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: parallel })
  const began = performance.now()
  const endsAt = began + seconds * 1000
  let bytes = 0
  const client = async (): Promise<void> => {
    while (performance.now() < endsAt) bytes += await fetched(url, agent)
  }
  await Promise.all(Array.from({ length: parallel }, client))
  const ms = performance.now() - began
  agent.destroy()
  return bytes / 1000 / ms
}

function fetched(url: string, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { agent }, (response) => {
      if (response.statusCode !== 200) return reject(new Error(`${url}: ${response.statusCode}`))
      let bytes = 0
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
      })
      response.on('end', () => resolve(bytes))
      response.on('error', reject)
    }).on('error', reject)
  })
}

function listen(server: Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  })
}

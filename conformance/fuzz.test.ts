import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { harmless, mutate, randomFrom, recordedRequests, type WireRequest } from './fuzz/requests.js'
import { startEmbeddedServer } from './harness/embedded-server.js'
import { HttpClient } from './harness/http-client.js'
import type { ServerUnderTest } from './harness/server-under-test.js'

const isFull = process.env.CORRAL_TEST_SIZE === 'full'
const mutations = isFull ? 10_000 : 1_000
// The same requests in every quick run: what fails there was changed there. The full size looks for news.
const seed = Number(process.env.CORRAL_TEST_SEED ?? (isFull ? Date.now() % 1_000_000 : 20_261))

describe('mutated requests', () => {
  let server: ServerUnderTest
  let http: HttpClient
  beforeAll(async () => {
    server = await startEmbeddedServer('memory')
    http = new HttpClient(server.target)
  })
  afterAll(async () => {
    http?.close()
    await server?.close()
  })

  it(`${mutations} of them never cause a 5xx, and most get past routing (seed ${seed})`, async () => {
    const random = randomFrom(seed)
    const recorded = await recordedRequests(server.target)
    const statuses = new Map<number, number>()
    const failures: string[] = []
    let unrouted = 0
    const send = async (request: WireRequest): Promise<void> => {
      const { method, path, headers, body } = request
      const answer = await http.call(method, path, {
        headers,
        timeoutMs: 240_000,
        ...(body === undefined ? {} : { body, contentType: headers['content-type'] ?? 'application/json' }),
      })
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      if (isUnrouted(answer.status, answer.text)) unrouted += 1
      // 504 answers a list at a version that does not exist yet, as a real server does.
      if (answer.status >= 500 && answer.status !== 504) {
        failures.push(
          `${method} ${path} ${JSON.stringify(headers)} ${String(body).slice(0, 300)} -> ${answer.status} ${answer.text}`,
        )
      }
    }
    let left = mutations
    const worker = async (): Promise<void> => {
      while (left-- > 0) await send(harmless(mutate(recorded[Math.floor(random() * recorded.length)]!, random)))
    }
    await Promise.all(Array.from({ length: 8 }, worker))
    const routedShare = 1 - unrouted / mutations
    const counts = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`)
    process.stdout.write(
      `fuzz: ${mutations} requests, ${(routedShare * 100).toFixed(1)} % past routing; ${counts.join(', ')}\n`,
    )
    expect(failures).toEqual([])
    expect(routedShare).toBeGreaterThanOrEqual(0.6)
    expect((await http.call('GET', '/readyz')).status).toBe(200)
  })
})

/** Turned away before any resource was looked at: an unknown path, a method that is not served, or no HTTP at all. */
function isUnrouted(status: number, text: string): boolean {
  if (status === 405) return true
  return status === 404 && text.includes('could not find the requested resource')
}

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { randomFrom } from './fuzz/requests.js'
import { type ServerProcess, startServerProcess } from './harness/server-process.js'

const rounds = process.env.CORRAL_TEST_SIZE === 'full' ? 50 : 3
const seed = Number(process.env.CORRAL_TEST_SEED ?? Date.now() % 1_000_000)
const path = '/api/v1/namespaces/default/configmaps'

/** What one writer knows of its object: the last state that was acknowledged, and what it was about to do. */
interface Known {
  value: string | undefined
  version: number
  attempted?: { value: string | undefined }
}

describe('kill -9 in a loop of writes', () => {
  let server: ServerProcess
  beforeAll(async () => {
    server = await startServerProcess('sqlite')
  })
  afterAll(() => server?.close())

  it(`131: ${rounds} times, loses no acknowledged write and gives no version twice (seed ${seed})`, async () => {
    const random = randomFrom(seed)
    const objects = new Map<string, Known>()
    const given = new Set<number>()
    let acknowledged = 0
    const acknowledge = (known: Known, value: string | undefined, version: number | undefined): void => {
      known.value = value
      if (version !== undefined) {
        expect(given.has(version), `version ${version} is given once`).toBe(false)
        given.add(version)
        known.version = version
      }
      delete known.attempted
      acknowledged += 1
    }
    for (let round = 0; round < rounds; round += 1) {
      const goal = acknowledged + 50 + Math.floor(random() * 200)
      const write = async (writer: number): Promise<void> => {
        for (let step = 0; ; step += 1) {
          const name = `r${round}-w${writer}-${Math.floor(step / 4)}`
          const known = objects.get(name) ?? { value: undefined, version: 0 }
          objects.set(name, known)
          const value = step % 4 === 3 ? undefined : String(step)
          known.attempted = { value }
          acknowledge(known, value, await writeOnce(server, name, known.value, value))
        }
      }
      const writers = Array.from({ length: 6 }, (_, writer) => write(writer).catch((error: unknown) => error))
      await expect.poll(() => acknowledged, { interval: 5 }).toBeGreaterThan(goal)
      await server.kill()
      for (const error of await Promise.all(writers)) expect(String(error)).not.toMatch(/version|instead of/)
      await server.start()
      const { items, metadata } = (await server.http.call('GET', path)).is(200)
      const stored = new Map(items.map((item) => [item.metadata.name, item]))
      for (const [name, known] of objects) {
        const item = stored.get(name)
        const value = (item?.data as { step?: string } | undefined)?.step
        const isAsAcknowledged =
          value === known.value && (!item || Number(item.metadata.resourceVersion) === known.version)
        const isAsAttempted = known.attempted !== undefined && value === known.attempted.value
        expect(isAsAcknowledged || isAsAttempted, `${name} is ${value}, was ${JSON.stringify(known)}`).toBe(true)
        Object.assign(known, { value, version: item ? Number(item.metadata.resourceVersion) : known.version })
        if (item) given.add(known.version)
        delete known.attempted
      }
      expect(Number(metadata.resourceVersion)).toBeGreaterThanOrEqual(Math.max(...given))
    }
    process.stdout.write(`kill -9: ${acknowledged} writes acknowledged over ${rounds} kills, seed ${seed}\n`)
  })
})

/** One write from a known state to another; answers the version of what it left. */
async function writeOnce(
  server: ServerProcess,
  name: string,
  from: string | undefined,
  to: string | undefined,
): Promise<number | undefined> {
  const { http } = server
  if (to === undefined) {
    ;(await http.call('DELETE', `${path}/${name}`)).is(200)
    return undefined
  }
  const body = { metadata: { name }, data: { step: to } }
  const answer = from ? await http.call('PUT', `${path}/${name}`, { body }) : await http.call('POST', path, { body })
  return Number(answer.is(from ? 200 : 201).metadata.resourceVersion)
}

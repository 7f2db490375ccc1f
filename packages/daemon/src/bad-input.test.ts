import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger, systemClock } from '@corral/ports'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDaemon, type Daemon } from './create-daemon.js'

let directory: string
let daemon: Daemon

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'corral-bad-'))
  daemon = await createDaemon({
    workDir: join(directory, 'work'),
    stateDir: join(directory, 'state'),
    clock: systemClock,
    log: silentLogger,
    env: process.env,
    defaultCwd: directory,
    onRunnerFinished: () => {},
  })
  await daemon.fetch(put('/v1/processes/p', JSON.stringify({ argv: ['sleep', '600'], stdin: 'open' })))
})
afterAll(async () => {
  await daemon.terminate(0)
  await daemon.close()
  await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
})
const put = (path: string, body: string) => new Request(`http://sandbox${path}`, { method: 'PUT', body })

describe('bad input', () => {
  it('is answered with a typed 4xx, whatever it is, and starts nothing', async () => {
    const path = fc.oneof(
      fc.constantFrom(
        '/task',
        '/v1/processes/p',
        '/v1/processes/q',
        '/v1/processes/p/signal',
        '/v1/processes/p/resize',
      ),
      fc.constantFrom('/v1/processes/p/output?offset=-1', '/v1/processes/p/output?follow=maybe', '/v1/processes'),
      fc.webPath().map((tail) => `/v1/processes${tail}`),
      fc.webPath().map((tail) => `/v1/files/no-such-directory${tail}/x`),
      fc.webPath(),
    )
    const body = fc.oneof(
      fc.json(),
      fc.string(),
      fc
        .record({ argv: fc.jsonValue(), env: fc.jsonValue(), cwd: fc.jsonValue() })
        .map((value) => JSON.stringify(value)),
      fc.record({ signal: fc.jsonValue(), group: fc.jsonValue() }).map((value) => JSON.stringify(value)),
    )
    const method = fc.constantFrom('POST', 'PUT', 'PATCH', 'OPTIONS')
    await fc.assert(
      fc.asyncProperty(path, method, body, async (route, verb, text) => {
        const response = await daemon.fetch(new Request(`http://sandbox${route || '/'}`, { method: verb, body: text }))
        const answer = await response.text()
        // Joining a process that exists and taking its input are right answers to anything.
        if (response.status < 300) expect(route).toBe('/v1/processes/p')
        else {
          expect(response.status).toBeLessThan(500)
          expect(JSON.parse(answer)).toMatchObject({ error: { code: expect.any(String), message: expect.any(String) } })
        }
      }),
      { numRuns: 400 },
    )
    expect(await readdir(join(directory, 'state', 'processes'))).toEqual(['p'])
  })

  it('a body that is too long is refused without being kept', async () => {
    const long = JSON.stringify({ argv: ['echo', 'x'.repeat(3 * 1024 * 1024)] })
    const response = await daemon.fetch(put('/v1/processes/long', long))
    expect([response.status, await response.json()]).toMatchObject([413, { error: { code: 'RequestEntityTooLarge' } }])
  })
})

import { afterAll, beforeAll, describe, it } from 'vitest'
import { allChecks } from './all-checks.js'
import { Skipped } from './harness/check.js'
import { startEmbeddedServer } from './harness/embedded-server.js'
import { HttpClient } from './harness/http-client.js'
import { runCheck } from './harness/run-check.js'
import type { ServerUnderTest } from './harness/server-under-test.js'

describe.each(['memory', 'sqlite'] as const)('the embedded server (%s)', (mode) => {
  let server: ServerUnderTest
  let http: HttpClient
  beforeAll(async () => {
    server = await startEmbeddedServer(mode)
    http = new HttpClient(server.target)
  })
  afterAll(async () => {
    http?.close()
    await server?.close()
  })

  const checks = allChecks.filter((check) => !check.realOnly && !check.needsGo && (mode === 'memory' || !check.heavy))
  const run = async (check: (typeof checks)[number], skip: (note: string) => void): Promise<void> => {
    try {
      await runCheck(check, server, http)
    } catch (error) {
      if (!(error instanceof Skipped) || process.env.CI === 'true') throw error
      process.stderr.write(`conformance ${check.number} skipped: ${error.message}\n`)
      skip(error.message)
    }
  }
  const title = ({ number, title }: (typeof checks)[number]): string => `${number}: ${title}`

  describe.concurrent('checks', () => {
    for (const check of checks.filter(({ exclusive }) => !exclusive)) {
      it(title(check), { timeout: 120_000 }, ({ skip }) => run(check, skip))
    }
  })
  describe('checks that need the server to themselves', () => {
    for (const check of checks.filter(({ exclusive }) => exclusive)) {
      it(title(check), { timeout: 120_000 }, ({ skip }) => run(check, skip))
    }
  })
})

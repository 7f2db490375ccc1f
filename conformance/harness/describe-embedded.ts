import { afterAll, beforeAll, describe, it } from 'vitest'
import { allChecks } from '../all-checks.js'
import { preparePython } from '../clients/python.js'
import { Skipped } from './check.js'
import { startEmbeddedServer } from './embedded-server.js'
import { HttpClient } from './http-client.js'
import { runCheck } from './run-check.js'
import type { ServerUnderTest } from './server-under-test.js'

/** The suite on the embedded server: everything in memory, the cheap checks on SQLite too. */
export function describeEmbedded(mode: 'memory' | 'sqlite'): void {
  describe(`the embedded server (${mode})`, () => suite(mode))
}

function suite(mode: 'memory' | 'sqlite'): void {
  let server: ServerUnderTest
  let http: HttpClient
  beforeAll(async () => {
    server = await startEmbeddedServer(mode)
    http = new HttpClient(server.target)
  })
  if (mode === 'memory') beforeAll(preparePython, 1_000_000)
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
    for (const check of checks.filter((check) => !check.exclusive)) {
      it(title(check), ({ skip }) => run(check, skip))
    }
  })
  const exclusive = checks.filter((check) => check.exclusive)
  describe.skipIf(exclusive.length === 0)('checks that need the server to themselves', () => {
    for (const check of exclusive) {
      it(title(check), ({ skip }) => run(check, skip))
    }
  })
}

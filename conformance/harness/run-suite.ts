import type { Check } from './check.js'
import { HttpClient } from './http-client.js'
import { type Result, resultOf } from './run-check.js'
import type { ServerUnderTest } from './server-under-test.js'

export interface SuiteOptions {
  /** Checks at a time; the exclusive ones run alone, at the end. */
  parallel: number
  onResult?: (result: Result) => void
}

/** Runs every check on a server and answers the results by number. Never rejects because of a check. */
export async function runSuite(
  checks: readonly Check[],
  server: ServerUnderTest,
  options: SuiteOptions,
): Promise<Result[]> {
  const http = new HttpClient(server.target)
  const results: Result[] = []
  const record = async (check: Check): Promise<void> => {
    const result = await resultOf(check, server, http)
    results.push(result)
    options.onResult?.(result)
  }
  try {
    const queue = checks.filter(({ exclusive }) => !exclusive)
    const worker = async (): Promise<void> => {
      for (let next = queue.shift(); next; next = queue.shift()) await record(next)
    }
    await Promise.all(Array.from({ length: options.parallel }, worker))
    for (const check of checks.filter(({ exclusive }) => exclusive)) await record(check)
  } finally {
    http.close()
  }
  return results.sort((a, b) => a.number - b.number)
}

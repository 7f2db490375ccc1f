import { type Check, Skipped, whyNotOn } from './check.js'
import { Context } from './context.js'
import type { HttpClient } from './http-client.js'
import type { BinaryFact } from './kubectl.js'
import type { ServerUnderTest } from './server-under-test.js'

export type Outcome = 'passed' | 'failed' | 'skipped' | 'not applicable'

/** What became of one check on one server. */
export interface Result {
  readonly number: number
  readonly title: string
  readonly outcome: Outcome
  readonly ms: number
  /** Why it failed, was skipped or does not apply. */
  readonly note?: string
  /** Programs that had a part in it. */
  readonly binaries?: readonly BinaryFact[]
}

/** Only ends a check that hangs: on a busy machine some take minutes. */
const limitMs = 600_000

/** Runs a check with a context of its own and tidies up after it. Throws what the check throws, `Skipped` included. */
export async function runCheck(
  check: Check,
  server: ServerUnderTest,
  http: HttpClient,
  context: Context = new Context(server, http),
): Promise<void> {
  const reason = whyNotOn(check, server.kind)
  if (reason) throw new Skipped(reason)
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`still running after ${limitMs} ms`)), limitMs)
  })
  try {
    await Promise.race([check.run(context), late])
  } finally {
    clearTimeout(timer)
    await context.close()
  }
}

export async function resultOf(check: Check, server: ServerUnderTest, http: HttpClient): Promise<Result> {
  const { number, title } = check
  const startedMs = Date.now()
  const context = new Context(server, http)
  const done = (outcome: Outcome, note?: string): Result => ({
    number,
    title,
    outcome,
    ms: Date.now() - startedMs,
    ...(note ? { note } : {}),
    ...(context.binaries.length > 0 ? { binaries: context.binaries } : {}),
  })
  const reason = whyNotOn(check, server.kind)
  if (reason) return done('not applicable', reason)
  try {
    await runCheck(check, server, http, context)
    return done('passed')
  } catch (error) {
    if (error instanceof Skipped) return done('skipped', error.message)
    const { message, cause } = error as Error
    return done('failed', cause instanceof Error ? `${message}: ${cause.message}` : message)
  }
}

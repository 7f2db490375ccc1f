import type { Context } from './context.js'

/** Where a check runs, and what a reader of the table must know about it. */
export interface CheckOptions {
  /** Why it makes no sense on a real server. */
  embeddedOnly?: string
  /** Why it runs on the real server only, or not at all on the embedded one. */
  realOnly?: string
  /** What differs by design between the two, shown in the table; the check itself holds on both. */
  differs?: string
  /** Long or greedy: run alone, and in one storage mode only. */
  heavy?: boolean
  /** Needs programs that only Go can build: left to `npm run conformance:real`. */
  needsGo?: boolean
  /** Needs a node that runs pods. */
  needsNode?: boolean
  /** Changes the server under everyone else (restarts it, for example). */
  exclusive?: boolean
}

/** One numbered sentence about a Kubernetes API server, and how to find out whether it holds. */
export interface Check extends CheckOptions {
  readonly number: number
  readonly title: string
  run(context: Context): Promise<void>
}

export function check(
  number: number,
  title: string,
  run: (context: Context) => Promise<void>,
  options: CheckOptions = {},
): Check {
  return { number, title, run, ...options }
}

/** Thrown by a check that cannot be made here: a client that is not installed, for example. */
export class Skipped extends Error {
  override readonly name: string = 'Skipped'
}

/** Why a check does not apply to a kind of server; undefined when it does. */
export function whyNotOn(check: Check, kind: 'embedded' | 'real'): string | undefined {
  return kind === 'real' ? check.embeddedOnly : check.realOnly
}

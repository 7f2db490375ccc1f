import type { PriceTable } from './model-price.js'
import type { ReplyHead, UsageMeter } from './usage-meter.js'

export type HeaderRecord = Record<string, string | string[] | undefined>

/** A model provider behind the broker: where it is, which routes a sandbox may use, how the key is added, what it costs. */
export interface Provider {
  readonly name: string
  /** Its name as people write it. */
  readonly title: string
  /** The wire API: the name of the provider that defined it. Agents say by this word what they speak. */
  readonly kind: string
  readonly defaultBaseUrl: string
  /** Name of the platform's secret that holds the key, and of the environment variable that may hold it instead. */
  readonly secret: string
  /** What is accepted as its key, where that is more than a key. */
  readonly keyNote?: string | undefined
  readonly keyVariable?: string | undefined
  readonly baseUrlVariable?: string | undefined
  /** A model on the own machine may want none. */
  readonly isKeyOptional?: boolean | undefined
  /** Headers in which clients of this API send their key: the broker finds its token there and passes none of them on. */
  readonly keyHeaders: readonly string[]
  /** A call of a model, something beside it that costs nothing, or a route that is not open to sandboxes. */
  routeOf(method: string, path: string): 'call' | 'aside' | undefined
  /** Adds the key. Some kinds of keys bring headers of their own. */
  authorize(headers: HeaderRecord, key: string): void
  /** Environment by which programs that use this API find the broker. */
  clientEnvironment(baseUrl: string, token: string): Readonly<Record<string, string>>
  createMeter(reply: ReplyHead): UsageMeter
  /** An error in the shape the provider's own clients understand. */
  errorBody(status: number, message: string): object
  /** The provider says "not now": the same request may succeed later. */
  isOverloaded(status: number, body: string): boolean
  /** List prices; models that are not here have no known price. */
  readonly prices: PriceTable
}

/** Whether waiting helps with a 429: a quota that is used up comes back on another day, if at all. */
export function isRateLimit(status: number, body: string, exhausted: RegExp): boolean {
  return status === 429 && !exhausted.test(body)
}

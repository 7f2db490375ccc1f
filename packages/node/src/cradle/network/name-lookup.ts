import { lookup } from 'node:dns/promises'
import { isPlainName } from './dns-message.js'

export interface NameLookupOptions {
  /** The machine's resolver. */
  resolve?: (name: string) => Promise<readonly string[]>
  now?: () => number
  /** Lookups under way at once: each holds a thread of the process until the resolver answers. */
  atOnce?: number
  atOncePerPod?: number
}

const freshMs = 30_000
const failedFreshMs = 5_000
const answerMs = 10_000
const remembered = 2048

interface Answer {
  addresses: readonly string[]
  until: number
}

/**
 * Addresses of the names pods connect to. Each name is asked for once at a time and its answer remembered for a while,
 * that it has none as well. A pod that asks for many names waits for its own turn and does not delay other pods.
 */
export class NameLookup {
  readonly #answers = new Map<string, Answer>()
  readonly #asking = new Map<string, Promise<readonly string[]>>()
  readonly #waiting: { pod: string; start: () => void }[] = []
  readonly #running = new Map<string, number>()
  #count = 0
  readonly #options: Required<NameLookupOptions>

  constructor(options: NameLookupOptions = {}) {
    this.#options = { resolve: resolveHere, now: Date.now, atOnce: 4, atOncePerPod: 2, ...options }
  }

  /** Every address of the name; none when it has none, cannot be asked for, or no answer came in time. */
  async addressesOf(name: string, pod: string): Promise<readonly string[]> {
    if (!isPlainName(name)) return []
    const known = this.#answers.get(name)
    if (known && known.until > this.#options.now()) return known.addresses
    const key = `${pod}/${name}`
    const asking = this.#asking.get(key) ?? this.#ask(name, pod).finally(() => this.#asking.delete(key))
    this.#asking.set(key, asking)
    return await asking
  }

  async #ask(name: string, pod: string): Promise<readonly string[]> {
    await this.#turn(pod)
    // The turn lasts as long as the resolver takes; who asked waits no longer than `answerMs`.
    const resolving = this.#options
      .resolve(name)
      .catch(() => [])
      .finally(() => this.#done(pod))
    const addresses = await Promise.race([resolving, expire(answerMs)])
    const until = this.#options.now() + (addresses.length > 0 ? freshMs : failedFreshMs)
    if (this.#answers.size >= remembered) this.#answers.delete(this.#answers.keys().next().value ?? '')
    this.#answers.set(name, { addresses, until })
    return addresses
  }

  #turn(pod: string): Promise<void> {
    return new Promise((start) => {
      this.#waiting.push({ pod, start })
      this.#startNext()
    })
  }

  #startNext(): void {
    const { atOnce, atOncePerPod } = this.#options
    while (this.#count < atOnce) {
      const index = this.#waiting.findIndex(({ pod }) => (this.#running.get(pod) ?? 0) < atOncePerPod)
      const [next] = index < 0 ? [] : this.#waiting.splice(index, 1)
      if (!next) return
      this.#count++
      this.#running.set(next.pod, (this.#running.get(next.pod) ?? 0) + 1)
      next.start()
    }
  }

  #done(pod: string): void {
    this.#count--
    const left = (this.#running.get(pod) ?? 1) - 1
    if (left > 0) this.#running.set(pod, left)
    else this.#running.delete(pod)
    this.#startNext()
  }
}

async function resolveHere(name: string): Promise<string[]> {
  const found = await lookup(name, { all: true })
  return found.map(({ address }) => address)
}

function expire(milliseconds: number): Promise<readonly string[]> {
  return new Promise((resolve) => {
    setTimeout(() => resolve([]), milliseconds).unref()
  })
}

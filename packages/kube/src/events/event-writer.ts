import type { Logger } from '@corral/ports'

/** One request about one event. */
export interface EventRequest {
  /** Requests about the same event are sent one after another, so that a count never overtakes its creation. */
  event: string
  send(): Promise<unknown>
}

const maxWaiting = 10_000
const maxInFlight = 4

/** Sends events in the background, a few at a time; a server that stays away costs events and nothing else. */
export class EventWriter {
  readonly #waiting: EventRequest[] = []
  readonly #inFlight = new Map<string, Promise<void>>()

  constructor(private readonly log: Logger) {}

  /** The oldest request is dropped where too many wait. */
  push(request: EventRequest): void {
    if (this.#waiting.length >= maxWaiting) this.#waiting.shift()
    this.#waiting.push(request)
    this.#pump()
  }

  /** Settles once everything pushed so far has been sent or given up. */
  async drain(): Promise<void> {
    while (this.#inFlight.size > 0) await Promise.all(this.#inFlight.values())
  }

  #pump(): void {
    while (this.#inFlight.size < maxInFlight) {
      const index = this.#waiting.findIndex(({ event }) => !this.#inFlight.has(event))
      const [next] = index < 0 ? [] : this.#waiting.splice(index, 1)
      if (!next) return
      this.#inFlight.set(next.event, this.#send(next))
    }
  }

  async #send({ event, send }: EventRequest): Promise<void> {
    try {
      await send()
    } catch (error) {
      // Events are best effort: the condition on the object carries the same news.
      this.log.debug('event not recorded', { event, error })
    }
    this.#inFlight.delete(event)
    this.#pump()
  }
}

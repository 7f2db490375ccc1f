import type { IncomingMessage } from 'node:http'
import { type KubeBody, parse } from './kube-body.js'

export interface RawEvent {
  readonly type: string
  readonly object: KubeBody
}

/** A watch that has begun, read event by event. Everything it waits for has a deadline. */
export class WatchStream {
  readonly seen: RawEvent[] = []
  private readonly waiting: RawEvent[] = []
  private wake: (() => void) | undefined
  private rest = ''
  private hasEnded = false
  private failure: Error | undefined

  constructor(
    readonly response: IncomingMessage,
    private readonly asked: string,
  ) {
    response.setEncoding('utf8')
    response.on('data', (text: string) => this.take(text))
    response.once('error', (error) => this.end(error))
    response.once('close', () => this.end())
  }

  /** The next event, or undefined at the end of the stream. */
  async next(timeoutMs = 240_000): Promise<RawEvent | undefined> {
    const deadline = Date.now() + timeoutMs
    while (true) {
      const event = this.waiting.shift()
      if (event) return event
      if (this.failure && !this.hasEnded) throw this.failure
      if (this.hasEnded) return undefined
      const leftMs = deadline - Date.now()
      if (leftMs <= 0) throw new Error(`${this.asked}: no event in ${timeoutMs} ms after ${this.describe()}`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs)
        this.wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  /** Events up to and including the first that fits. */
  async until(fits: (event: RawEvent) => boolean, timeoutMs = 240_000): Promise<RawEvent[]> {
    const events: RawEvent[] = []
    const deadline = Date.now() + timeoutMs
    while (true) {
      const event = await this.next(Math.max(1, deadline - Date.now()))
      if (!event) throw new Error(`${this.asked}: ended before what was awaited, after ${this.describe()}`)
      events.push(event)
      if (fits(event)) return events
    }
  }

  /** Everything until the server ends the stream. */
  async untilEnd(timeoutMs = 240_000): Promise<RawEvent[]> {
    const events: RawEvent[] = []
    const deadline = Date.now() + timeoutMs
    while (true) {
      const event = await this.next(Math.max(1, deadline - Date.now()))
      if (!event) return events
      events.push(event)
    }
  }

  close(): void {
    this.response.destroy()
  }

  private take(text: string): void {
    const lines = (this.rest + text).split('\n')
    this.rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line.trim() === '') continue
      const event = parse(line, this.asked) as unknown as RawEvent // the wire form of a watch event
      this.seen.push(event)
      this.waiting.push(event)
    }
    this.wake?.()
  }

  private end(error?: Error): void {
    if (error) this.failure = error
    this.hasEnded = true
    this.wake?.()
  }

  private describe(): string {
    return `[${this.seen.map(({ type, object }) => `${type} ${object.metadata?.name ?? object.reason ?? ''}`).join(', ')}]`
  }
}

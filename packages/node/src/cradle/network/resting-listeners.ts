import { Server } from 'node:net'
import type { Listener } from './namespace.js'
import type { NetworkPlan } from './network-plan.js'

const restMs = 1_000

type Places = Pick<NetworkPlan, 'dns' | 'listeners'>

/**
 * Listeners that are closed for a moment because more came in than the platform looks at. The kernel refuses meanwhile,
 * inside the pod's own share of the processor; connections that are carried go on.
 */
export class RestingListeners {
  #places: Places = { dns: [], listeners: [] }
  #timer: NodeJS.Timeout | undefined

  constructor(
    /** Those that are open. */
    private readonly open: Listener[],
    /** Opens these again; a failure means another rest. */
    private readonly wake: (places: Places) => Promise<void>,
  ) {}

  rest(listener: Listener): void {
    const index = this.open.indexOf(listener)
    const place = listener.address()
    if (index < 0 || typeof place !== 'object' || place === null) return
    this.open.splice(index, 1)
    listener.close()
    const { address, port } = place
    const { dns, listeners } = this.#places
    this.#places =
      listener instanceof Server
        ? { dns, listeners: [...listeners, { address, port }] }
        : { dns: [...dns, address], listeners }
    this.#wakeLater()
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #wakeLater(): void {
    this.#timer ??= setTimeout(() => void this.#wake(), restMs).unref()
  }

  async #wake(): Promise<void> {
    const places = this.#places
    this.#places = { dns: [], listeners: [] }
    this.#timer = undefined
    try {
      await this.wake(places)
    } catch {
      // No process or descriptor to be had just now: a moment later there may be.
      this.#places = {
        dns: [...places.dns, ...this.#places.dns],
        listeners: [...places.listeners, ...this.#places.listeners],
      }
      this.#wakeLater()
    }
  }
}

import type { SupervisorProgram } from '../protocol/messages.js'
import type { PodBudget } from './connection-budget.js'
import { type Listener, type Namespace, openListeners } from './namespace.js'
import { type Destination, type NetworkPlan, wildcardPorts } from './network-plan.js'

export interface WildcardNamesOptions {
  wildcards: NetworkPlan['wildcards']
  /** The address of a name, a new one where it has none yet; undefined when there are no more. */
  handOut(name: string): string | undefined
  /** Whether there is a listener at `address:port` already. */
  isOpen(place: string): boolean
  supervisor: SupervisorProgram
  namespace: Namespace
  budget: PodBudget
  /** New destinations by `address:port`, with the listeners for them. */
  onOpened(destinations: ReadonlyMap<string, Destination>, listeners: readonly Listener[]): void
}

interface Wanted {
  name: string
  address: string
  ports: readonly number[]
  settle(address: string | undefined): void
}

/**
 * Names under a pod's wildcard rules: each gets its address and its listeners when it is first asked for. Opening them
 * takes a process; all names asked for while one is at work share the next, so that a pod has one of them at a time.
 */
export class WildcardNames {
  readonly #addresses = new Map<string, Promise<string | undefined>>()
  readonly #queue: Wanted[] = []
  #wildcards: NetworkPlan['wildcards']
  #isOpening = false

  constructor(private readonly options: WildcardNamesOptions) {
    this.#wildcards = options.wildcards
  }

  /** Other rules from now on: each name is looked at anew when it is next asked for. */
  change(wildcards: NetworkPlan['wildcards']): void {
    this.#wildcards = wildcards
    this.#addresses.clear()
  }

  covers(name: string, port?: number): boolean {
    const ports = wildcardPorts(name, this.#wildcards)
    return port === undefined ? ports.length > 0 : ports.includes(port)
  }

  /** Undefined when no rule covers the name, or when the pod has used up the names it may have. */
  addressOf(name: string): Promise<string | undefined> {
    const known = this.#addresses.get(name)
    if (known) return known
    const granted = wildcardPorts(name, this.#wildcards)
    const address = granted.length > 0 ? this.options.handOut(name) : undefined
    if (address === undefined) return Promise.resolve(undefined)
    const ports = granted.filter((port) => !this.options.isOpen(`${address}:${port}`))
    if (!this.options.budget.takeListeners(ports.length)) return Promise.resolve(undefined)
    const opening = new Promise<string | undefined>((settle) => this.#queue.push({ name, address, ports, settle }))
    this.#addresses.set(name, opening)
    void this.#open()
    return opening
  }

  async #open(): Promise<void> {
    if (this.#isOpening) return
    this.#isOpening = true
    for (let wanted = this.#queue.splice(0); wanted.length > 0; wanted = this.#queue.splice(0)) {
      const places = wanted.flatMap(({ name, address, ports }) => ports.map((port) => ({ host: name, address, port })))
      try {
        const { supervisor, namespace } = this.options
        const listeners = await openListeners(supervisor, namespace, { listeners: places })
        const destinations = places.map(({ host, address, port }): [string, Destination] => [
          `${address}:${port}`,
          { kind: 'host', host, port, mayBeLoopback: false },
        ])
        this.options.onOpened(new Map(destinations), listeners)
        for (const { address, settle } of wanted) settle(address)
      } catch {
        // Asked for again they are tried again, until the pod has used up what it may open.
        for (const { name, settle } of wanted) {
          this.#addresses.delete(name)
          settle(undefined)
        }
      }
    }
    this.#isOpening = false
  }
}

import type { SupervisorProgram } from '../protocol/messages.js'
import {
  makeNamespace,
  makeSpareNamespace,
  type Namespace,
  type NamespaceShape,
  type SpareNamespace,
} from './namespace.js'

export interface SpareNamespacesOptions {
  supervisor: SupervisorProgram
  spares: number
}

/** After the groups of `Slots`, so that the two do not get in each other's way. */
const refillAfterMs = 60

/**
 * Namespaces for pods, a few of them made ahead: a process, a namespace and its listeners cost a large part of a pod's
 * start, and most pods want the same. Two pods in a row of one shape make it the usual one; another is made when asked
 * for. A namespace is used by one pod, once.
 */
export class SpareNamespaces {
  readonly #spares: SpareNamespace[] = []
  #lastKey: string | undefined
  /** The shape the spares have. */
  #usual: { key: string; shape: NamespaceShape } | undefined
  #refill: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(private readonly options: SpareNamespacesOptions) {}

  /** How many wait for a pod. */
  get ready(): number {
    return this.#spares.length
  }

  /** A namespace of this shape in which `address` is local as well. */
  async take(shape: NamespaceShape, address: string, whileStarting: (pid: number) => void): Promise<Namespace> {
    const spare = this.#takeSpare(shape)
    // One that ended while it waited is no loss: there is another way.
    const ready = await spare?.complete(address).catch(() => undefined)
    if (ready) return ready
    const whole = { ...shape, routes: [address, ...shape.routes] }
    return await makeNamespace(this.options.supervisor, whole, whileStarting)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#refill)
    this.#discardAll()
  }

  #takeSpare(shape: NamespaceShape): SpareNamespace | undefined {
    const key = JSON.stringify(shape)
    if (key === this.#lastKey && key !== this.#usual?.key) {
      this.#discardAll()
      this.#usual = { key, shape }
    }
    this.#lastKey = key
    this.#refillSoon()
    if (key !== this.#usual?.key) return undefined
    for (let spare = this.#spares.shift(); spare; spare = this.#spares.shift()) if (spare.isAlive) return spare
    return undefined
  }

  #refillSoon(): void {
    // Without the compiled program a helper is a whole interpreter: too heavy to keep.
    if (this.#isClosed || this.options.supervisor.kind !== 'native') return
    clearTimeout(this.#refill)
    this.#refill = setTimeout(() => void this.#add(), refillAfterMs)
  }

  async #add(): Promise<void> {
    const usual = this.#usual
    if (!usual || this.#spares.length >= this.options.spares) return
    try {
      const spare = await makeSpareNamespace(this.options.supervisor, usual.shape)
      if (this.#isClosed || this.#usual !== usual) return spare.discard()
      this.#spares.push(spare)
      this.#refillSoon()
    } catch {
      // No pod uses a spare yet; the next pod reports what is wrong.
    }
  }

  #discardAll(): void {
    for (const spare of this.#spares.splice(0)) spare.discard()
  }
}

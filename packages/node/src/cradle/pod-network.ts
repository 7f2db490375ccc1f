import { Server } from 'node:net'
import type { PodPlan } from '../isolation/isolation.js'
import { readDnsQuestion, writeDnsAnswer } from './dns-message.js'
import { forward } from './egress-dial.js'
import { closeNamespace, type Listener, type Namespace, openListeners } from './namespace.js'
import {
  canHandOut,
  type Destination,
  type NetworkPlan,
  normalizeName,
  planNetwork,
  syntheticAddress,
  wildcardPorts,
} from './network-plan.js'
import type { SupervisorProgram } from './protocol.js'
import type { SpareNamespaces } from './spare-namespaces.js'

/**
 * A pod's network namespace and the listeners in it, which belong to this process: names are answered and connections
 * carried from here, and nothing of it runs inside. The namespace lives as long as its descriptors.
 */
export class PodNetwork {
  readonly #names: Map<string, string>
  readonly #destinations: Map<string, Destination>
  readonly #pending = new Map<string, Promise<string | undefined>>()
  #next: number
  #isClosed = false

  private constructor(
    private readonly namespace: Namespace,
    private readonly supervisor: SupervisorProgram,
    private readonly plan: NetworkPlan,
  ) {
    this.#names = new Map(plan.names)
    this.#destinations = new Map(plan.destinations)
    this.#next = plan.nextAddress
    for (const listener of namespace.listeners) this.#serve(listener)
  }

  get netFd(): number {
    return this.namespace.netFd
  }
  get userFd(): number | undefined {
    return this.namespace.userFd
  }

  /** A namespace with everything the pod may reach; see `makeNamespace` for `whileStarting`. */
  static async create(
    pod: PodPlan,
    supervisor: SupervisorProgram,
    namespaces: SpareNamespaces,
    whileStarting: (pid: number) => void,
  ): Promise<PodNetwork> {
    const plan = planNetwork(pod)
    const own = `${pod.podIP}/32`
    const { dns, listeners } = plan
    const shape = { routes: plan.routes.filter((route) => route !== own), dns, listeners }
    return new PodNetwork(await namespaces.take(shape, own, whileStarting), supervisor, plan)
  }

  /** Safe to repeat: a descriptor closed twice may by then be somebody else's. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    closeNamespace(this.namespace)
  }

  #serve(handle: Listener): void {
    if (handle instanceof Server) {
      // Not in Node's types, but what a server made with this option has; a handed-over one is made without options.
      ;(handle as Server & { allowHalfOpen: boolean }).allowHalfOpen = true
      handle.on('connection', (socket) => {
        const destination = this.#destinations.get(`${socket.localAddress}:${socket.localPort}`)
        if (destination) forward(socket, destination)
        else socket.destroy()
      })
      return
    }
    handle.on('message', (query, from) => {
      const question = readDnsQuestion(query)
      if (!question) return
      const reply = (address: string | undefined): void => {
        handle.send(writeDnsAnswer(query, question, address), from.port, from.address, () => {
          // The one who asked may be gone; it asks again if it still wants to know.
        })
      }
      this.#resolve(question.name).then(reply, () => reply(undefined))
    })
  }

  /** The synthetic address of an allowed name. A name under a wildcard gets its address and listeners when first asked. */
  async #resolve(question: string): Promise<string | undefined> {
    const name = normalizeName(question)
    const known = this.#names.get(name)
    if (known !== undefined) return known
    const ports = wildcardPorts(name, this.plan.wildcards)
    if (ports.length === 0 || !canHandOut(this.#next)) return undefined
    const pending = this.#pending.get(name) ?? this.#open(name, ports)
    this.#pending.set(name, pending)
    return await pending.finally(() => this.#pending.delete(name))
  }

  async #open(name: string, ports: readonly number[]): Promise<string> {
    const address = syntheticAddress(this.#next++)
    const places = ports.map((port) => ({ address, port }))
    const listeners = await openListeners(this.supervisor, this.namespace, places)
    for (const port of ports) {
      this.#destinations.set(`${address}:${port}`, { kind: 'host', host: name, port, mayBeLoopback: false })
    }
    for (const listener of listeners) this.#serve(listener)
    if (this.#isClosed) for (const listener of listeners) listener.close()
    else this.namespace.listeners.push(...listeners)
    this.#names.set(name, address)
    return address
  }
}

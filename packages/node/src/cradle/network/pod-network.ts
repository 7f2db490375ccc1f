import { Server, type Socket } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import type { NetworkReport, PodPlan, PodReach } from '../../isolation/isolation.js'
import type { SupervisorProgram } from '../protocol/messages.js'
import { ArrivalRate } from './arrival-rate.js'
import { findAskingProcess } from './asking-process.js'
import type { ConnectionBudget, PodBudget } from './connection-budget.js'
import { dnsTypeA, readDnsQuestion, writeDnsAnswer } from './dns-message.js'
import { forward } from './egress-dial.js'
import type { NameLookup } from './name-lookup.js'
import { closeNamespace, type Listener, type Namespace, openListeners } from './namespace.js'
import { canHandOut, type Destination, type NetworkPlan, planNetwork, syntheticAddress } from './network-plan.js'
import { Refusals } from './refusals.js'
import { RestingListeners } from './resting-listeners.js'
import type { SpareNamespaces } from './spare-namespaces.js'
import { WildcardNames } from './wildcard-names.js'

/** How many names at once the process behind the question is looked for. */
const mostAskers = 4

export interface PodNetworkPorts {
  supervisor: SupervisorProgram
  namespaces: SpareNamespaces
  budget: ConnectionBudget
  lookup: NameLookup
  now: () => Date
  /** What was refused to the pod so far, after each change. */
  onReport(report: NetworkReport): void
}

/**
 * A pod's network namespace and the listeners in it, which belong to this process: names are answered and connections
 * carried from here, and nothing of it runs inside. The namespace lives as long as its descriptors.
 */
export class PodNetwork {
  #names: ReadonlyMap<string, string>
  /** By `address:port`; each has a listener. */
  readonly #destinations: Map<string, Destination>
  readonly #addresses: Map<string, string>
  #next: number
  #routes: ReadonlySet<string>
  readonly #wildcards: WildcardNames
  readonly #budget: PodBudget
  readonly #refusals: Refusals
  readonly #connections = new Set<Socket>()
  readonly #askers = new Map<string, Promise<string | undefined>>()
  readonly #connectionRate: ArrivalRate
  readonly #questionRate: ArrivalRate
  readonly #resting: RestingListeners
  #changing: Promise<void> = Promise.resolve()
  #isClosed = false

  private constructor(
    private readonly pod: PodPlan,
    private readonly namespace: Namespace,
    private readonly ports: PodNetworkPorts,
  ) {
    const plan = planNetwork(pod)
    const { supervisor, budget, now } = ports
    this.#names = plan.names
    this.#destinations = new Map(plan.destinations)
    this.#addresses = new Map(plan.names)
    this.#next = plan.nextAddress
    this.#routes = new Set(plan.routes)
    this.#budget = budget.forPod()
    this.#connectionRate = new ArrivalRate(budget.limits.arrivals.connections)
    this.#questionRate = new ArrivalRate(budget.limits.arrivals.questions)
    this.#resting = new RestingListeners(namespace.listeners, (shape) => this.#inTurn(() => this.#wake(shape)))
    this.#refusals = new Refusals({ podUid: pod.podUid, now, onChange: (report) => ports.onReport(report) })
    this.#wildcards = new WildcardNames({
      wildcards: plan.wildcards,
      handOut: (name) => this.#handOut(name),
      isOpen: (place) => this.#destinations.has(place),
      supervisor,
      namespace,
      budget: this.#budget,
      onOpened: (opened, listeners) => {
        // The rules may have changed while the listeners were opened.
        const isAllowed = (place: string): boolean => {
          const destination = opened.get(place)
          return destination?.kind === 'host' && this.#wildcards.covers(destination.host, destination.port)
        }
        for (const [place, destination] of opened) if (isAllowed(place)) this.#destinations.set(place, destination)
        this.#adopt(listeners, isAllowed)
      },
    })
    for (const listener of namespace.listeners) this.#serve(listener)
  }

  get netFd(): number {
    return this.namespace.netFd
  }
  get userFd(): number | undefined {
    return this.namespace.userFd
  }
  /** What was refused so far; undefined while nothing was. */
  get report(): NetworkReport | undefined {
    return this.#refusals.report
  }

  /** A namespace with everything the pod may reach; see `makeNamespace` for `whileStarting`. */
  static async create(pod: PodPlan, ports: PodNetworkPorts, whileStarting: (pid: number) => void): Promise<PodNetwork> {
    const plan = planNetwork(pod)
    const own = `${pod.podIP}/32`
    const { dns, listeners } = plan
    const shape = { routes: plan.routes.filter((route) => route !== own), dns, listeners }
    return new PodNetwork(pod, await ports.namespaces.take(shape, own, whileStarting), ports)
  }

  /** See `Isolation.setNetwork`. What is taken away is gone before what is added is opened. */
  change(reach: PodReach): Promise<void> {
    return this.#inTurn(() => this.#change(reach))
  }

  #inTurn(change: () => Promise<void>): Promise<void> {
    const changing = this.#changing.then(change)
    // The next change is made whatever became of this one; who asked for this one hears of it.
    this.#changing = changing.catch(() => undefined)
    return changing
  }

  async #change(reach: PodReach): Promise<void> {
    if (this.#isClosed) return
    const { podIP } = this.pod
    const plan = planNetwork({ podIP, ...reach }, { addresses: this.#addresses, next: this.#next })
    this.#next = plan.nextAddress
    for (const [name, address] of plan.names) this.#addresses.set(name, address)
    this.#wildcards.change(plan.wildcards)
    this.#names = new Map([...this.#names].filter(([name]) => plan.names.has(name)))
    this.#closeAllBut(plan.destinations)
    await this.#open(plan)
    if (!this.#isClosed) this.#names = plan.names
  }

  /** Ends listeners and connections of what is not granted any more, or leads elsewhere now. */
  #closeAllBut(granted: ReadonlyMap<string, Destination>): void {
    for (const [place, destination] of [...this.#destinations]) {
      const isKept =
        isDeepStrictEqual(granted.get(place), destination) ||
        (destination.kind === 'host' && this.#wildcards.covers(destination.host, destination.port))
      if (!isKept) this.#destinations.delete(place)
    }
    const { listeners } = this.namespace
    for (const listener of listeners.splice(0)) {
      if (!(listener instanceof Server) || this.#destinations.has(placeOf(listener))) listeners.push(listener)
      else listener.close()
    }
    for (const socket of this.#connections)
      if (!this.#destinations.has(`${socket.localAddress}:${socket.localPort}`)) socket.resetAndDestroy()
  }

  async #open(plan: NetworkPlan): Promise<void> {
    const routes = plan.routes.filter((route) => !this.#routes.has(route))
    const listeners = plan.listeners.filter(({ address, port }) => !this.#destinations.has(`${address}:${port}`))
    const answered = new Set(this.namespace.listeners.map((each) => each.address()).map(addressOf))
    const dns = plan.dns.filter((address) => !answered.has(address))
    if (routes.length === 0 && listeners.length === 0 && dns.length === 0) return
    const opened = await openListeners(this.ports.supervisor, this.namespace, { routes, dns, listeners })
    this.#routes = new Set([...this.#routes, ...routes])
    for (const [place, destination] of plan.destinations) this.#destinations.set(place, destination)
    this.#adopt(opened, (place) => this.#destinations.has(place))
  }

  /** Opens again what rested and is still granted. */
  async #wake({ dns, listeners }: Pick<NetworkPlan, 'dns' | 'listeners'>): Promise<void> {
    if (this.#isClosed) return
    const open = new Set(this.namespace.listeners.map(placeOf))
    const shape = {
      dns: dns.filter((address) => !open.has(`${address}:53`)),
      listeners: listeners.filter(({ address, port }) => {
        const place = `${address}:${port}`
        return !open.has(place) && this.#destinations.has(place)
      }),
    }
    if (shape.dns.length === 0 && shape.listeners.length === 0) return
    const opened = await openListeners(this.ports.supervisor, this.namespace, shape)
    this.#adopt(opened, (place) => this.#destinations.has(place))
  }

  /** Takes over listeners that were opened for this pod; those not wanted any more are closed. */
  #adopt(listeners: readonly Listener[], isWanted: (place: string) => boolean): void {
    for (const listener of listeners) {
      if (this.#isClosed || (listener instanceof Server && !isWanted(placeOf(listener)))) {
        listener.close()
        continue
      }
      this.#serve(listener)
      this.namespace.listeners.push(listener)
    }
  }

  #handOut(name: string): string | undefined {
    const known = this.#addresses.get(name)
    if (known !== undefined || !canHandOut(this.#next)) return known
    const address = syntheticAddress(this.#next++)
    this.#addresses.set(name, address)
    return address
  }

  /** Safe to repeat: a descriptor closed twice may by then be another pod's. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#resting.close()
    closeNamespace(this.namespace)
    for (const socket of this.#connections) socket.destroy()
    this.#budget.returnListeners()
    this.#refusals.close()
  }

  #serve(handle: Listener): void {
    if (handle instanceof Server) {
      // Not in Node's types, but what a server made with this option has; a handed-over one is made without options.
      ;(handle as Server & { allowHalfOpen: boolean }).allowHalfOpen = true
      handle.on('connection', (socket) => {
        if (this.#connectionRate.take()) {
          this.#carry(socket)
          return
        }
        socket.resetAndDestroy()
        const { perSecond } = this.ports.budget.limits.arrivals.connections
        this.#refusals.connection({ of: 'second', connections: perSecond })
        this.#resting.rest(handle)
      })
      return
    }
    handle.on('message', (query, from) => {
      if (!this.#questionRate.take()) {
        this.#resting.rest(handle)
        return
      }
      const question = readDnsQuestion(query)
      if (!question) return
      const reply = (address: string | undefined): void => {
        handle.send(writeDnsAnswer(query, question, address), from.port, from.address, () => {
          // The one who asked may be gone; it asks again if it still wants to know.
        })
      }
      this.#resolve(question.name, question.type, from.port).then(reply, () => reply(undefined))
    })
  }

  #carry(socket: Socket): void {
    const destination = this.#destinations.get(`${socket.localAddress}:${socket.localPort}`)
    if (!destination || this.#isClosed) {
      socket.destroy()
      return
    }
    const taken = this.#budget.takeConnection()
    if (taken !== 'taken') {
      socket.resetAndDestroy()
      const { connectionsPerPod, connections } = this.ports.budget.limits
      this.#refusals.connection(
        taken === 'pod' ? { of: 'pod', connections: connectionsPerPod } : { of: 'node', connections },
      )
      return
    }
    this.#connections.add(socket)
    socket.on('close', () => {
      this.#connections.delete(socket)
      this.#budget.returnConnection()
    })
    forward(socket, destination, {
      addressesOf: (name) => this.ports.lookup.addressesOf(name, this.pod.podUid),
      onFailure: ({ host, port, reason }) => this.#refusals.host(host, reason, port),
    })
  }

  /** The synthetic address of an allowed name. */
  async #resolve(name: string | undefined, type: number, port: number): Promise<string | undefined> {
    if (name === undefined) return undefined
    const address = this.#names.get(name) ?? (await this.#wildcards.addressOf(name))
    // A program asks for IPv4 and IPv6 at once: counted is one of the two.
    if (address === undefined && type === dnsTypeA) {
      // Looked for before the answer: the process that asked has its socket open until then.
      const asker = await this.#askerOf(name, port)
      this.#refusals.host(name, this.#wildcards.covers(name) ? 'TooManyNames' : 'NotAllowed', undefined, asker)
    }
    return address
  }

  /** The process behind the first question for a name. A look goes through all processes: each name gets one, few at once. */
  #askerOf(name: string, port: number): Promise<string | undefined> | undefined {
    const under = this.#askers.get(name)
    if (under) return under
    if (this.#refusals.knows(name) || this.#isClosed || this.#askers.size >= mostAskers) return undefined
    const asker = findAskingProcess(this.namespace.netFd, port).finally(() => this.#askers.delete(name))
    this.#askers.set(name, asker)
    return asker
  }
}

function addressOf(place: ReturnType<Listener['address']>): string {
  return typeof place === 'object' && place !== null ? place.address : ''
}

function placeOf(listener: Listener): string {
  const place = listener.address()
  return typeof place === 'object' && place !== null ? `${place.address}:${place.port}` : ''
}

import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket as DatagramSocket } from 'node:dgram'
import { closeSync, openSync } from 'node:fs'
import { Server } from 'node:net'
import type { PodPlan } from '../isolation/isolation.js'
import { IsolationError } from '../isolation/isolation-error.js'
import { readDnsQuestion, writeDnsAnswer } from './dns-message.js'
import { forward } from './egress-dial.js'
import { type HelperCommand, networkHelper } from './network-helper.js'
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

const setupTimeoutMs = 10_000

/**
 * A pod's network namespace and the listeners in it, which belong to this process: names are answered and connections
 * carried from here, and nothing of it runs inside. The namespace lives as long as its descriptors.
 */
export class PodNetwork {
  readonly #names: Map<string, string>
  readonly #destinations: Map<string, Destination>
  readonly #handles: (Server | DatagramSocket)[] = []
  readonly #pending = new Map<string, Promise<string | undefined>>()
  #next: number
  #isClosed = false

  private constructor(
    readonly netFd: number,
    readonly userFd: number | undefined,
    private readonly supervisor: SupervisorProgram,
    private readonly plan: NetworkPlan,
  ) {
    this.#names = new Map(plan.names)
    this.#destinations = new Map(plan.destinations)
    this.#next = plan.nextAddress
  }

  /**
   * Makes the namespace with everything the pod may reach. `whileStarting` hears the pid of the short-lived process that does it.
   */
  static async create(
    pod: PodPlan,
    supervisor: SupervisorProgram,
    whileStarting: (pid: number) => void,
  ): Promise<PodNetwork> {
    const plan = planNetwork(pod)
    const isRoot = process.getuid?.() === 0
    const args: string[] = []
    for (const route of plan.routes) args.push('--route', route)
    for (const address of plan.dns) args.push('--udp', `dns=${address}:53`)
    for (const { address, port } of plan.listeners) args.push('--tcp', `tcp=${address}:${port}`)
    const wantsHandles = plan.dns.length + plan.listeners.length > 0
    let fds: { net: number; user: number | undefined } | undefined
    const handles = await runHelper(
      networkHelper(supervisor, 'make', isRoot),
      args,
      [],
      wantsHandles,
      whileStarting,
      (pid) => {
        fds = {
          net: openSync(`/proc/${pid}/ns/net`, 'r'),
          user: isRoot ? undefined : openSync(`/proc/${pid}/ns/user`, 'r'),
        }
      },
    )
    if (!fds) throw new IsolationError('StartFailed', 'the network helper left no namespace behind')
    const network = new PodNetwork(fds.net, fds.user, supervisor, plan)
    for (const handle of handles) network.#own(handle)
    return network
  }

  /** Safe to repeat: a descriptor closed twice may by then be somebody else's. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const handle of this.#handles) handle.close()
    this.#handles.length = 0
    closeSync(this.netFd)
    if (this.userFd !== undefined) closeSync(this.userFd)
  }

  #own(handle: Server | DatagramSocket): void {
    this.#handles.push(handle)
    handle.on('error', () => {
      // A listener that fails refuses connections from inside; the pod itself goes on.
    })
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
    const fds = this.userFd === undefined ? [this.netFd] : [this.netFd, this.userFd]
    const helper = networkHelper(this.supervisor, 'join', this.userFd === undefined)
    const listeners = ports.flatMap((port) => ['--tcp', `tcp=${address}:${port}`])
    const handles = await runHelper(
      helper,
      listeners,
      fds,
      true,
      () => {},
      () => {},
    )
    for (const port of ports) {
      this.#destinations.set(`${address}:${port}`, { kind: 'host', host: name, port, mayBeLoopback: false })
    }
    for (const handle of handles) this.#own(handle)
    if (this.#isClosed) for (const handle of handles) handle.close()
    this.#names.set(name, address)
    return address
  }
}

/** Runs the network helper; `whileReady` is called while its namespace can be opened through /proc. */
function runHelper(
  helper: HelperCommand,
  args: readonly string[],
  fds: readonly number[],
  wantsHandles: boolean,
  whileStarting: (pid: number) => void,
  whileReady: (pid: number) => void,
): Promise<(Server | DatagramSocket)[]> {
  return new Promise((resolve, reject) => {
    const child: ChildProcess = spawn(helper.program, [...helper.args, ...args], {
      stdio: ['pipe', 'pipe', 'pipe', wantsHandles ? 'ipc' : 'ignore', ...fds],
      env: { PATH: process.env.PATH ?? '/usr/sbin:/usr/bin:/sbin:/bin' },
    })
    if (child.pid !== undefined) whileStarting(child.pid)
    const handles: (Server | DatagramSocket)[] = []
    let problem = ''
    const timer = setTimeout(() => child.kill('SIGKILL'), setupTimeoutMs)
    child.on('message', (_message, handle) => {
      if (handle) handles.push(handle as Server | DatagramSocket)
    })
    child.stderr?.on('data', (chunk: Buffer) => {
      problem += chunk.toString()
    })
    let isReady = false
    child.stdout?.on('data', () => {
      if (isReady || child.pid === undefined) return
      isReady = true
      try {
        whileReady(child.pid)
      } catch (error) {
        problem += String(error)
        isReady = false
      }
      if (child.connected) child.disconnect()
      child.stdin?.end()
      if (isReady) resolve(handles)
    })
    child.on('error', (error) => {
      problem += error.message
    })
    child.on('close', () => {
      clearTimeout(timer)
      if (isReady) return
      for (const handle of handles) handle.close()
      reject(new IsolationError('StartFailed', `network namespace: ${problem.trim() || 'the helper did not answer'}`))
    })
    child.stdin?.on('error', () => {
      // The helper ended by itself; `close` reports why.
    })
  })
}

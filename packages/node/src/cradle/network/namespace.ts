import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket as DatagramSocket } from 'node:dgram'
import { closeSync, openSync } from 'node:fs'
import type { Server } from 'node:net'
import { IsolationError } from '../../isolation/isolation-error.js'
import type { SupervisorProgram } from '../protocol/messages.js'
import { type HelperCommand, networkHelper } from './network-helper.js'
import type { NetworkPlan } from './network-plan.js'

const setupTimeoutMs = 10_000

export type Listener = Server | DatagramSocket

/** What a namespace offers: addresses that are its own, sockets that answer names, listeners. */
export type NamespaceShape = Pick<NetworkPlan, 'routes' | 'dns' | 'listeners'>

/** A network namespace, alive as long as its descriptors, with the sockets in it, which belong to this process. */
export interface Namespace {
  netFd: number
  /** Without root it lies in a user namespace of its own. */
  userFd: number | undefined
  listeners: Listener[]
}

/** A namespace made before its pod: it misses the pod's own address. */
export interface SpareNamespace {
  /** False once its helper has ended. */
  readonly isAlive: boolean
  /** Makes `cidr` local in it and hands it out. Rejects when the helper is gone. */
  complete(cidr: string): Promise<Namespace>
  discard(): void
}

/** Makes a namespace of this shape. `whileStarting` hears the pid of the short-lived process that does it. */
export async function makeNamespace(
  supervisor: SupervisorProgram,
  shape: NamespaceShape,
  whileStarting: (pid: number) => void,
): Promise<Namespace> {
  const helper = startHelper(makingHelper(supervisor), shapeArguments(shape), [])
  if (helper.pid !== undefined) whileStarting(helper.pid)
  await helper.said('ready')
  return helper.release()
}

/** Makes one of this shape for a pod still to come. */
export async function makeSpareNamespace(
  supervisor: SupervisorProgram,
  shape: NamespaceShape,
): Promise<SpareNamespace> {
  const helper = startHelper(makingHelper(supervisor), ['--spare', ...shapeArguments(shape)], [])
  await helper.said('made')
  return {
    get isAlive() {
      return helper.isAlive
    },
    async complete(cidr) {
      helper.tell(`${cidr}\n`)
      await helper.said('ready')
      return helper.release()
    },
    discard: () => helper.discard(),
  }
}

/** Opens more listeners in a namespace that exists, with the addresses they need. */
export async function openListeners(
  supervisor: SupervisorProgram,
  { netFd, userFd }: Pick<Namespace, 'netFd' | 'userFd'>,
  { routes = [], dns = [], listeners }: Partial<NamespaceShape> & Pick<NamespaceShape, 'listeners'>,
): Promise<Listener[]> {
  const command = networkHelper(supervisor, 'join', userFd === undefined)
  const fds = userFd === undefined ? [netFd] : [netFd, userFd]
  const helper = startHelper(command, shapeArguments({ routes, dns, listeners }), fds)
  await helper.said('ready')
  return helper.leave()
}

/** Closes descriptors and sockets: with them the namespace goes. */
export function closeNamespace({ netFd, userFd, listeners }: Namespace): void {
  for (const listener of listeners) listener.close()
  closeSync(netFd)
  if (userFd !== undefined) closeSync(userFd)
}

const isRoot = (): boolean => process.getuid?.() === 0

const makingHelper = (supervisor: SupervisorProgram): HelperCommand => networkHelper(supervisor, 'make', isRoot())

function shapeArguments({ routes, dns, listeners }: NamespaceShape): string[] {
  return [
    ...routes.flatMap((route) => ['--route', route]),
    ...dns.flatMap((address) => ['--udp', `dns=${address}:53`]),
    ...listeners.flatMap(({ address, port }) => ['--tcp', `tcp=${address}:${port}`]),
  ]
}

interface Helper {
  readonly pid: number | undefined
  readonly isAlive: boolean
  tell(line: string): void
  /** Settles when it has said the word; rejects with what went wrong when it ends before. */
  said(word: 'made' | 'ready'): Promise<void>
  /** Takes over namespace and listeners, and lets the helper end. */
  release(): Namespace
  /** Takes over the listeners alone. */
  leave(): Listener[]
  discard(): void
}

function startHelper(command: HelperCommand, args: readonly string[], fds: readonly number[]): Helper {
  const wantsHandles = args.includes('--udp') || args.includes('--tcp')
  const child: ChildProcess = spawn(command.program, [...command.args, ...args], {
    stdio: ['pipe', 'pipe', 'pipe', wantsHandles ? 'ipc' : 'ignore', ...fds],
    env: { PATH: process.env.PATH ?? '/usr/sbin:/usr/bin:/sbin:/bin' },
  })
  const listeners: Listener[] = []
  const waiting = new Set<() => void>()
  let output = ''
  let problem = ''
  let isAlive = true
  const look = (): void => {
    for (const check of waiting) check()
  }
  const ignore = (): void => {
    // The helper ended by itself; `close` reports why.
  }
  child.stdin?.on('error', ignore)
  child.on('message', (_message, handle) => {
    if (!handle) return
    const listener = handle as Listener // nothing else is handed over
    listener.on('error', () => {
      // A listener that fails refuses connections from inside; the pod itself goes on.
    })
    listeners.push(listener)
  })
  child.stdout?.on('data', (chunk: Buffer) => {
    output += chunk.toString()
    look()
  })
  child.stderr?.on('data', (chunk: Buffer) => {
    problem += chunk.toString()
  })
  child.on('error', (error) => {
    problem += error.message
  })
  child.on('close', () => {
    isAlive = false
    look()
  })

  function leave(): Listener[] {
    if (child.connected) child.disconnect()
    child.stdin?.end()
    return listeners.splice(0)
  }
  function discard(): void {
    for (const listener of leave()) listener.close()
  }
  return {
    pid: child.pid,
    get isAlive() {
      return isAlive
    },
    tell: (line) => void child.stdin?.write(line),
    said: (word) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => child.kill('SIGKILL'), setupTimeoutMs)
        const check = (): void => {
          const hasSaid = output.includes(`${word}\n`)
          if (!hasSaid && isAlive) return
          waiting.delete(check)
          clearTimeout(timer)
          if (hasSaid) {
            resolve()
            return
          }
          discard()
          const why = problem.trim() || 'the helper did not answer'
          reject(new IsolationError('StartFailed', `network namespace: ${why}`))
        }
        waiting.add(check)
        check()
      }),
    release() {
      try {
        const netFd = openSync(`/proc/${child.pid}/ns/net`, 'r')
        const userFd = isRoot() ? undefined : openSync(`/proc/${child.pid}/ns/user`, 'r')
        return { netFd, userFd, listeners: leave() }
      } catch (cause) {
        discard()
        throw new IsolationError('StartFailed', 'the network helper left no namespace behind', { cause })
      }
    },
    leave,
    discard,
  }
}

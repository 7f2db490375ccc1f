import { createServer, type Server, type Socket } from 'node:net'
import type { ByteStream } from '@corral/ports'
import { defineKind, errorCode, KubeError, type KubeObject } from '@corral/resources'
import type { KubeClient, ObjectRef } from '../kube-client.js'

interface Pod extends KubeObject {
  status?: { phase?: string }
}
const pods = defineKind<Pod>('v1', 'Pod', 'pods')

export interface ListenPortOptions {
  /** 0, the default, lets the system choose. */
  localPort?: number
  /** `127.0.0.1` without it. */
  host?: string
  signal?: AbortSignal
  /** Told of every connection that failed, the tunnel's death apart. */
  onError?: (error: unknown) => void
}

/** A local TCP port that leads to a port of a pod. */
export interface PortListener {
  readonly host: string
  readonly port: number
  /**
   * Settles with the reason as soon as the tunnel cannot work again (the pod is gone or has ended), with undefined when
   * it was closed. Open connections are dropped and the port is free by then.
   */
  readonly ended: Promise<KubeError | undefined>
  close(): Promise<void>
}

/** Listens on a local port and carries each connection to the pod's. Rejects when pod or local port are not to be had. */
export async function listenPort(
  client: Pick<KubeClient, 'get' | 'watch' | 'portForward' | 'defaultNamespace'>,
  pod: ObjectRef,
  port: number,
  options: ListenPortOptions = {},
): Promise<PortListener> {
  const { localPort = 0, host = '127.0.0.1', onError = () => {} } = options
  const lifetime = new AbortController()
  const sockets = new Set<Socket>()
  let death: KubeError | undefined

  const current = await client.get(pods, pod, options.signal ? { signal: options.signal } : {})
  const problem = endOf(current, pod)
  if (problem) throw problem

  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {}) // the carrying promise sees it
    socket.once('close', () => sockets.delete(socket))
    carry(client, pod, port, socket, lifetime.signal).catch((error: unknown) => {
      socket.destroy()
      if (lifetime.signal.aborted) return
      if (errorCode(error) === 'NotFound') end(error as KubeError)
      else onError(error)
    })
  })
  await listen(server, localPort, host)
  const address = server.address()
  if (address === null || typeof address === 'string') throw new TypeError('a TCP server has a port')

  const closed = new Promise<void>((resolve) => server.once('close', resolve))
  function end(reason?: KubeError): void {
    death ??= reason
    lifetime.abort(reason)
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  const abort = () => end()
  if (options.signal?.aborted) abort()
  options.signal?.addEventListener('abort', abort, { once: true })
  const watching = watchPod(client, pod, current.metadata.uid, current.metadata.resourceVersion, lifetime.signal, end)
  const ended = Promise.all([closed, watching]).then(() => {
    options.signal?.removeEventListener('abort', abort)
    return death
  })
  return {
    host,
    port: address.port,
    ended,
    async close() {
      end()
      await ended
    },
  }
}

async function watchPod(
  client: Pick<KubeClient, 'watch' | 'defaultNamespace'>,
  pod: ObjectRef,
  uid: string,
  resourceVersion: string,
  signal: AbortSignal,
  end: (reason: KubeError) => void,
): Promise<void> {
  const { name, namespace = client.defaultNamespace } = pod
  const fieldSelector = `metadata.name=${name}`
  try {
    for await (const { type, object } of client.watch(pods, { namespace, fieldSelector, resourceVersion, signal })) {
      const isGone = type === 'DELETED' || object.metadata.uid !== uid
      const reason = isGone ? new KubeError('NotFound', `pod "${name}" was deleted`) : endOf(object, pod)
      if (reason) return end(reason)
    }
  } catch (cause) {
    end(new KubeError('ConnectionLost', `pod "${name}" cannot be watched`, { cause }))
  }
}

function endOf({ status }: Pod, { name }: ObjectRef): KubeError | undefined {
  if (status?.phase !== 'Succeeded' && status?.phase !== 'Failed') return undefined
  return new KubeError('Gone', `pod "${name}" has ended (${status.phase})`)
}

async function carry(
  client: Pick<KubeClient, 'portForward'>,
  pod: ObjectRef,
  port: number,
  socket: Socket,
  signal: AbortSignal,
): Promise<void> {
  const stream = await client.portForward(pod, port, { signal })
  // A local client that resets its connection takes the remote one with it.
  socket.once('close', () => stream.destroy())
  await Promise.all([intoStream(socket, stream), intoSocket(stream, socket)])
}

async function intoStream(socket: Socket, stream: ByteStream): Promise<void> {
  try {
    for await (const chunk of socket.iterator({ destroyOnReturn: false })) await stream.write(chunk as Buffer)
  } catch {
    return // the other direction carries the reason, if there is one
  }
  stream.end()
}

async function intoSocket(stream: ByteStream, socket: Socket): Promise<void> {
  for await (const chunk of stream) {
    if (!socket.writable) return stream.destroy()
    if (socket.write(chunk)) continue
    await new Promise<void>((resolve) => {
      const done = () => {
        socket.off('drain', done).off('close', done)
        resolve()
      }
      socket.on('drain', done).on('close', done)
    })
  }
  socket.end()
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      reject(new KubeError('PortUnavailable', `cannot listen on ${host}:${port}`, { cause }))
    })
    server.listen(port, host, resolve)
  })
}

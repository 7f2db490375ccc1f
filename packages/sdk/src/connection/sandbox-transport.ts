import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { KubeClient, ObjectRef } from '@corral/kube'
import type { ByteStream } from '@corral/ports'
import type { Fetch } from '@corral/protocol'
import { SandboxError } from '../sandbox-error.js'
import { type StreamFetch, streamFetch } from '../stream-fetch.js'
import { reach } from './reach.js'
import { retryingFetch } from './retrying-fetch.js'
import { socketStream } from './socket-stream.js'

/** How requests get to the ports of one sandbox. */
export interface SandboxTransport {
  readonly kind: 'port-forward' | 'in-cluster-pod-ip' | 'in-cluster-service' | 'router' | 'gateway' | 'direct'
  /** HTTP to a port; the host of the URL does not matter. Connections are kept and used again. */
  fetchTo(port: number): Fetch
  /** A bare connection to a port; absent where only HTTP passes. */
  readonly dial?: (port: number, signal?: AbortSignal) => Promise<ByteStream>
  /** Drops every connection; nothing inside ends. */
  close(): void
}

/** Through the API server, which works wherever kubectl does. */
export function portForwardTransport(kube: KubeClient, pod: ObjectRef, connectMs: number): SandboxTransport {
  const dial = (port: number, signal?: AbortSignal) => {
    const call = signal ? { signal } : {}
    return reach((timeoutMs) => kube.portForward(pod, port, { ...call, timeoutMs }), { connectMs }, signal)
  }
  return { kind: 'port-forward', dial, ...perPort(dial, connectMs) }
}

/** Straight to the pod, for clients inside the cluster. */
export function addressTransport(kind: 'in-cluster-pod-ip' | 'in-cluster-service', host: string): SandboxTransport {
  const dial = (port: number, signal?: AbortSignal) => socketStream(connectTcp({ host, port, noDelay: true }), signal)
  return { kind, dial, ...perPort(dial, 0) }
}

export interface UrlTransportOptions {
  readonly kind: 'router' | 'gateway' | 'direct'
  /** Where the router, gateway or runtime listens. */
  readonly url: URL
  /** How long it is tried while it cannot be reached. */
  readonly connectMs: number
  /** Added to every request; called once per request, since tokens expire. */
  readonly headers: (port: number) => Promise<Record<string, string>>
  /** Instead of a connection of our own. */
  readonly fetch?: Fetch | undefined
  /** PEM of the authority that signed the server's certificate. */
  readonly ca?: string | undefined
  readonly rejectUnauthorized?: boolean | undefined
}

/** HTTP to a fixed address that knows where the sandbox is. Redirects are answers, never followed. */
export function urlTransport(options: UrlTransportOptions): SandboxTransport {
  const { url, connectMs } = options
  const lines = options.fetch ? undefined : streamFetch((signal) => dialUrl(options, signal), connectMs)
  const send: Fetch = retryingFetch(options.fetch ?? lines!.fetch)
  const base = url.href.replace(/\/+$/, '')
  return {
    kind: options.kind,
    fetchTo:
      (port) =>
      async (target, init = {}) => {
        const { pathname, search } = splitTarget(target)
        const headers = new Headers(init.headers)
        for (const [name, value] of Object.entries(await options.headers(port))) headers.set(name, value)
        return send(`${base}${pathname}${search}`, { ...init, headers, redirect: 'manual' })
      },
    close: () => lines?.close(),
  }
}

function dialUrl(options: UrlTransportOptions, signal: AbortSignal): Promise<ByteStream> {
  const { connectMs, url } = options
  return reach((withinMs) => dialOnce(options, withinMs, signal), { connectMs, server: url.origin }, signal)
}

async function dialOnce(options: UrlTransportOptions, withinMs: number, signal: AbortSignal): Promise<ByteStream> {
  const { url, ca, rejectUnauthorized = true } = options
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  const socket =
    url.protocol === 'https:'
      ? connectTls({ host, port, servername: host, rejectUnauthorized, ...(ca ? { ca } : {}) })
      : connectTcp({ host, port, noDelay: true })
  const timer = setTimeout(() => socket.destroy(timedOut(withinMs)), withinMs)
  try {
    return await socketStream(socket, signal, url.protocol === 'https:' ? 'secureConnect' : 'connect')
  } finally {
    clearTimeout(timer)
  }
}

const timedOut = (withinMs: number) => new SandboxError('Timeout', `no connection within ${withinMs} ms`)

/** The path as it was written: a URL parser would fold encoded dots away. */
function splitTarget(target: string): { pathname: string; search: string } {
  const path = target.replace(/^[a-z]+:\/\/[^/?]*/i, '')
  const question = path.indexOf('?')
  return question < 0
    ? { pathname: path || '/', search: '' }
    : { pathname: path.slice(0, question) || '/', search: path.slice(question) }
}

function perPort(dial: (port: number, signal?: AbortSignal) => Promise<ByteStream>, connectMs: number) {
  const ports = new Map<number, StreamFetch>()
  const at = (port: number): StreamFetch => {
    const known = ports.get(port) ?? streamFetch((signal) => dial(port, signal), connectMs)
    ports.set(port, known)
    return known
  }
  return {
    fetchTo: (port: number): Fetch => at(port).fetch,
    close: () => {
      for (const line of ports.values()) line.close()
      ports.clear()
    },
  }
}

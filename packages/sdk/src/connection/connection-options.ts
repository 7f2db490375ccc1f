import { isIP } from 'node:net'
import type { KubeClient } from '@corral/kube'
import type { Fetch } from '@corral/protocol'
import { defineKind, type KubeObject, type Sandbox, Services, type Stored } from '@corral/resources'
import { SandboxError } from '../sandbox-error.js'
import { podAddress } from './pod-address.js'
import { addressTransport, portForwardTransport, type SandboxTransport, urlTransport } from './sandbox-transport.js'

type Token = string | (() => string | Promise<string>)

/** What every way over HTTP can carry. */
export interface HttpConnectionOptions {
  /** Bearer token of the router. */
  readonly token?: Token
  readonly headers?: Readonly<Record<string, string>>
  readonly ca?: string
  readonly fetch?: Fetch
  /** `X-Sandbox-Pod-IP`: `auto` sends it when it is known and no scoped token is used. */
  readonly podIP?: 'auto' | 'always' | 'never'
}

/** How to reach sandboxes. `auto`: the API server's port-forward, or where that is refused the kubelet's exec alone. */
export type ConnectionOptions =
  | { readonly type: 'auto' | 'port-forward' | 'in-cluster-pod-ip' | 'in-cluster-service' | 'pod-exec' }
  | ({ readonly type: 'router'; readonly url?: string; readonly namespace?: string } & HttpConnectionOptions)
  | ({
      readonly type: 'gateway'
      readonly name: string
      readonly namespace?: string
      readonly scheme?: 'http' | 'https'
    } & HttpConnectionOptions)
  | ({ readonly type: 'direct'; readonly url: string } & HttpConnectionOptions)

interface Gateway extends KubeObject {
  status?: { addresses?: { type?: string; value?: unknown }[] }
}
const Gateways = defineKind<Gateway>('gateway.networking.k8s.io/v1', 'Gateway', 'gateways')
const routerService = 'sandbox-router-svc'
const routerPort = 8080

const connectionTypes: readonly string[] = [
  'auto',
  'port-forward',
  'in-cluster-pod-ip',
  'in-cluster-service',
  'pod-exec',
  'router',
  'gateway',
  'direct',
]

/** Refuses options that cannot work, before anything is sent. */
export function checkConnection(options: ConnectionOptions): void {
  if (!connectionTypes.includes(options.type))
    throw new SandboxError('Invalid', `"${options.type}" is no type of connection: ${connectionTypes.join(', ')}`)
  if (options.type === 'direct' && !options.url) throw new SandboxError('Invalid', 'a direct connection needs a url')
  if ('url' in options && options.url !== undefined) {
    const url = URL.canParse(options.url) ? new URL(options.url) : undefined
    if (!url || !/^https?:$/.test(url.protocol) || !url.hostname) {
      throw new SandboxError('Invalid', `"${options.url}" is not an http:// or https:// address`)
    }
  }
  if (options.type === 'gateway' && !options.name) throw new SandboxError('Invalid', 'a gateway needs a name')
}

/** The way to one sandbox. */
export async function openTransport(
  options: ConnectionOptions,
  kube: KubeClient,
  sandbox: Stored<Sandbox>,
  podName: string,
  call: { signal?: AbortSignal | undefined; connectMs: number },
): Promise<SandboxTransport> {
  const { signal, connectMs } = call
  const { name, namespace = 'default' } = sandbox.metadata
  switch (options.type) {
    case 'auto':
    case 'port-forward':
    case 'pod-exec':
      return portForwardTransport(kube, { name: podName, namespace }, connectMs)
    case 'in-cluster-pod-ip': {
      const address = podAddress(sandbox.status?.podIPs)
      if (!address) throw new SandboxError('SandboxNotReady', `sandbox "${name}" has no address yet`)
      return addressTransport(options.type, address)
    }
    case 'in-cluster-service': {
      const host = sandbox.status?.serviceFQDN
      if (!host) {
        throw new SandboxError('Unsupported', `sandbox "${name}" has no service`, {
          hint: 'Set spec.service in its template, or connect with in-cluster-pod-ip.',
        })
      }
      return addressTransport(options.type, host)
    }
    case 'direct':
      return urlTransport({
        ...plain(options),
        kind: 'direct',
        url: new URL(options.url),
        connectMs,
        headers: headersFor(options, sandbox),
      })
    case 'gateway': {
      const url = await gatewayUrl(kube, options, signal)
      return urlTransport({ ...plain(options), kind: 'gateway', url, connectMs, headers: headersFor(options, sandbox) })
    }
    case 'router': {
      const headers = headersFor(options, sandbox)
      if (options.url)
        return urlTransport({ ...plain(options), kind: 'router', url: new URL(options.url), connectMs, headers })
      const pod = await routerPod(kube, options.namespace ?? 'agent-sandbox-system', signal)
      const tunnel = portForwardTransport(kube, pod, connectMs)
      const url = new URL(`http://${routerService}`)
      const through = urlTransport({ kind: 'router', url, connectMs, headers, fetch: tunnel.fetchTo(routerPort) })
      return { ...through, close: () => tunnel.close() }
    }
  }
}

function plain(options: HttpConnectionOptions) {
  return { ...(options.fetch ? { fetch: options.fetch } : {}), ...(options.ca ? { ca: options.ca } : {}) }
}

function headersFor(options: HttpConnectionOptions, sandbox: Stored<Sandbox>) {
  return async (port: number): Promise<Record<string, string>> => {
    const token = typeof options.token === 'function' ? await options.token() : options.token
    // A scoped token names the sandbox; a router that sees an address beside it must refuse.
    const isScoped = /^v\d\./.test(token ?? '')
    const address = podAddress(sandbox.status?.podIPs)
    const isShown = options.podIP === 'always' || (options.podIP !== 'never' && !isScoped)
    return {
      ...options.headers,
      'x-sandbox-id': sandbox.metadata.name,
      'x-sandbox-namespace': sandbox.metadata.namespace ?? 'default',
      'x-sandbox-port': String(port),
      ...(isShown && address ? { 'x-sandbox-pod-ip': address } : {}),
      ...(token ? { authorization: `Bearer ${token}` } : {}),
    }
  }
}

async function routerPod(kube: KubeClient, namespace: string, signal?: AbortSignal) {
  const call = signal ? { signal } : {}
  const { spec } = await kube.get(Services, { name: routerService, namespace }, call)
  const { Pods } = await import('@corral/resources')
  const labelSelector = Object.entries(spec?.selector ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .join(',')
  const { items } = await kube.list(Pods, { namespace, labelSelector, ...call })
  const running = items.find((pod) => pod.status?.phase === 'Running')
  if (!running) throw new SandboxError('ServiceUnavailable', `no pod of ${routerService} in "${namespace}" runs`)
  return { name: running.metadata.name, namespace }
}

/** The first address of a gateway that is an address and nothing else. Waits until it has one, for up to three minutes. */
async function gatewayUrl(
  kube: KubeClient,
  options: { name: string; namespace?: string; scheme?: 'http' | 'https' },
  signal?: AbortSignal,
): Promise<URL> {
  const { name, namespace = 'default', scheme = 'http' } = options
  const { waitFor } = await import('../wait-for.js')
  const gateway = await waitFor(
    kube,
    Gateways,
    { name, namespace },
    (object) => (gatewayHost(object) ? { done: true } : { done: false, why: 'it has no usable address' }),
    { signal },
  )
  return new URL(`${scheme}://${gatewayHost(gateway)}`)
}

/** Exported for its table of hostile addresses. */
export function gatewayHost(gateway: { status?: { addresses?: readonly { value?: unknown }[] } }): string | undefined {
  for (const address of gateway.status?.addresses ?? []) {
    const value = typeof address === 'object' && address !== null ? address.value : undefined
    if (typeof value !== 'string') continue
    if (isIP(value) === 6) return `[${value}]`
    if (isIP(value) === 4) return value
    // A number in disguise would be read as an IPv4 address.
    const labels = value.split('.')
    const isName = value.length <= 253 && labels.every((label) => /^(?!-)[a-z0-9-]{1,63}(?<!-)$/i.test(label))
    const isNumber = /^(0x[0-9a-f]*|\d+)$/i.test(labels.at(-1) ?? '')
    if (isName && !isNumber) return value
  }
  return undefined
}

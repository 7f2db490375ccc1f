import { createInformer, httpTransport, type KubeClient, type KubeTransport, type TransportRequest } from '@corral/kube'
import type {
  AttachStreamOptions,
  ByteStream,
  DuplexProcess,
  LogStreamOptions,
  PodRef,
  PodStreams,
} from '@corral/ports'
import { KubeError, type Node, Nodes, Pods } from '@corral/resources'

export interface KubeletStreamsOptions {
  /** Says on which node a pod runs, and where that node is. */
  client: Pick<KubeClient, 'get' | 'observe'>
  /** What the API server shows to nodes, PEM. */
  cert: string
  key: string
  /** Authority of the nodes' own certificates. Without it they are not verified, as with kube-apiserver. */
  ca?: string | undefined
}

export interface KubeletStreams extends PodStreams {
  /** Ends every stream. */
  close(): Promise<void>
}

interface Kubelet {
  readonly server: string
  readonly transport: KubeTransport
}

/** The streams of pods on nodes in other processes, by the kubelet's routes on the address each node has published. */
export function kubeletStreams(options: KubeletStreamsOptions): KubeletStreams {
  /** By the name of the node. */
  const kubelets = new Map<string, Kubelet>()
  const closing = new Set<Promise<void>>()
  const nodes = createInformer({ client: options.client, kind: Nodes })
  nodes.subscribe({
    update: (node) => letGo(node.metadata.name, serverOf(node)),
    delete: (node) => letGo(node.metadata.name, 'nowhere'),
  })

  /** Closes the connections to a node that is no longer where they lead. */
  function letGo(name: string, server: string | undefined): void {
    const kubelet = kubelets.get(name)
    if (!kubelet || server === undefined || kubelet.server === server) return
    kubelets.delete(name)
    // The node is gone or has another address: an error while its connections close changes nothing.
    const closed = kubelet.transport
      .close()
      .catch(() => {})
      .finally(() => closing.delete(closed))
    closing.add(closed)
  }

  async function kubeletOf({ namespace, name }: PodRef): Promise<KubeTransport> {
    const { spec } = await options.client.get(Pods, { namespace, name })
    const nodeName = spec?.nodeName ?? ''
    const server = serverOf(await options.client.get(Nodes, { name: nodeName }))
    if (server === undefined)
      throw new KubeError('ServiceUnavailable', `node "${nodeName}" publishes no port for streams of pods`)
    letGo(nodeName, server)
    const known = kubelets.get(nodeName)
    if (known) return known.transport
    const transport = connectionTo(new URL(server), options)
    kubelets.set(nodeName, { server, transport })
    return transport
  }

  async function process(route: string, pod: PodRef, asked: AttachStreamOptions, command: readonly string[]) {
    const query = new URLSearchParams()
    for (const word of command) query.append('command', word)
    const { stdin, stdout, stderr, tty, container, signal } = asked
    for (const [name, isWanted] of Object.entries({ input: stdin, output: stdout, error: stderr, tty }))
      if (isWanted) query.set(name, '1')
    const kubelet = await kubeletOf(pod)
    const connection = await dialled(kubelet.connect(get(`/${route}/${pathOf(pod)}/${container}`, query, signal)))
    if (connection.type !== 'process') throw new KubeError('BadRequest', `${route} of ${pod.name} opened no process`)
    return connection.process
  }

  return {
    exec: (pod, { command, ...asked }): Promise<DuplexProcess> => process('exec', pod, asked, command),
    attach: (pod, asked): Promise<DuplexProcess> => process('attach', pod, asked, []),
    async logs(pod, { container, signal, ...asked }) {
      const kubelet = await kubeletOf(pod)
      return dialled(kubelet.stream(get(`/containerLogs/${pathOf(pod)}/${container}`, logQuery(asked), signal)))
    },
    async portForward(pod, port, { signal } = {}): Promise<ByteStream> {
      const query = new URLSearchParams({ ports: String(port) })
      const kubelet = await kubeletOf(pod)
      const connection = await dialled(kubelet.connect(get(`/portForward/${pathOf(pod)}`, query, signal)))
      if (connection.type !== 'port') throw new KubeError('BadRequest', `port ${port} of ${pod.name} is no stream`)
      return connection.stream
    },
    async close() {
      await nodes.stop()
      await Promise.all([...closing, ...[...kubelets.values()].map(({ transport }) => transport.close())])
    },
  }
}

/** Where the node listens, by what it says about itself. */
function serverOf({ status }: Node): string | undefined {
  const address = status?.addresses?.find(({ type }) => type === 'InternalIP')?.address
  const port = status?.daemonEndpoints?.kubeletEndpoint?.Port
  if (!address || !port) return undefined
  return `https://${address.includes(':') ? `[${address}]` : address}:${port}`
}

function connectionTo(server: URL, { cert, key, ca }: KubeletStreamsOptions): KubeTransport {
  return httpTransport(
    {
      server,
      namespace: '',
      tls: { rejectUnauthorized: ca !== undefined, ...(ca === undefined ? {} : { ca }) },
      credentials: async () => ({ cert, key }),
      origin: server.href,
    },
    { userAgent: 'corral-apiserver' },
  )
}

const unreachable = new Set(['ConnectionLost', 'Timeout', 'CertificateInvalid'])

/** A node that cannot be reached is no defect of the server that asks it. */
async function dialled<T>(connecting: Promise<T>): Promise<T> {
  try {
    return await connecting
  } catch (cause) {
    if (!(cause instanceof KubeError) || !unreachable.has(cause.code)) throw cause
    throw new KubeError('ServiceUnavailable', `error dialing backend: ${cause.message}`, { cause })
  }
}

const pathOf = ({ namespace, name }: PodRef): string => `${namespace}/${name}`

const get = (path: string, query: URLSearchParams, signal: AbortSignal | undefined): TransportRequest => ({
  method: 'GET',
  path,
  query,
  signal,
})

function logQuery(asked: Omit<LogStreamOptions, 'container' | 'signal'>): URLSearchParams {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(asked))
    if (value !== undefined && value !== false) query.set(name, String(value))
  return query
}

import { type AddressInfo, createServer } from 'node:net'
import { PassThrough } from 'node:stream'
import {
  CoreV1Api,
  CustomObjectsApi,
  Exec,
  KubeConfig,
  makeInformer,
  PortForward,
  type V1Status,
} from '@kubernetes/client-node'
import { plainGet } from '../harness/http-client.js'

export function clientNodeConfig(kubeconfig: string): KubeConfig {
  const config = new KubeConfig()
  config.loadFromFile(kubeconfig)
  return config
}

const agents = { group: 'agents.x-k8s.io', version: 'v1beta1', plural: 'sandboxes' }

/** Its default kind of patch, JSON patch, on a Pod and on a Sandbox. */
export async function clientNodePatches(kubeconfig: string, namespace: string, name: string): Promise<void> {
  const config = clientNodeConfig(kubeconfig)
  const body = [{ op: 'add', path: '/metadata/labels', value: { node: 'yes' } }]
  await config.makeApiClient(CoreV1Api).patchNamespacedPod({ name, namespace, body })
  await config.makeApiClient(CustomObjectsApi).patchNamespacedCustomObject({ ...agents, namespace, name, body })
}

export interface ExecResult {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Runs a command through its `Exec`; with a terminal of the given size where one is asked for. */
export async function clientNodeExec(
  kubeconfig: string,
  namespace: string,
  pod: string,
  command: string[],
  terminal?: { tty: true; rows: number; columns: number },
): Promise<ExecResult> {
  const out = terminal ? new SizedOutput(terminal) : new PassThrough()
  const err = new PassThrough()
  const [outText, errText] = [collect(out), collect(err)]
  const code = await new Promise<number>((resolve, reject) => {
    const done = (status: V1Status): void => {
      const cause = status.details?.causes?.find(({ reason }) => reason === 'ExitCode')
      resolve(status.status === 'Success' ? 0 : Number(cause?.message ?? 1))
    }
    new Exec(clientNodeConfig(kubeconfig))
      .exec(namespace, pod, 'main', command, out, terminal ? null : err, null, terminal !== undefined, done)
      .then(
        (socket) =>
          socket.on('close', () => setTimeout(() => reject(new Error('closed without a status')), 1_000).unref()),
        reject,
      )
  })
  out.end()
  err.end()
  return { code, out: outText(), err: errText() }
}

/** What client-node asks for the size of the terminal. */
class SizedOutput extends PassThrough {
  readonly rows: number
  readonly columns: number
  constructor({ rows, columns }: { rows: number; columns: number }) {
    super()
    this.rows = rows
    this.columns = columns
    // A person drags the corner of the window: the size is told again and again.
    const timer = setInterval(() => this.emit('resize'), 100)
    this.once('close', () => clearInterval(timer))
  }
}

function collect(stream: PassThrough): () => string {
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  return () => Buffer.concat(chunks).toString()
}

/** One GET through its `PortForward`; answers the body. */
export async function clientNodeForward(
  kubeconfig: string,
  namespace: string,
  pod: string,
  port: number,
): Promise<string> {
  const forward = new PortForward(clientNodeConfig(kubeconfig))
  const server = createServer((socket) => {
    socket.on('error', () => {})
    forward
      .portForward(namespace, pod, [port], socket, null, socket)
      .catch((error: unknown) => socket.destroy(error as Error))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const { port: local } = server.address() as AddressInfo // a TCP server that listens has one
    return (await plainGet(local)).bytes.toString()
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
}

export interface Informed {
  /** `add name`, `update name`, `delete name`, in order. */
  readonly heard: readonly string[]
  /** What its cache holds, in order. */
  names(): string[]
  stop(): Promise<void>
}

/** Its informer on the Secrets of a namespace, started again after an error as its documentation tells programs to. */
export async function watchWithInformer(kubeconfig: string, namespace: string): Promise<Informed> {
  const config = clientNodeConfig(kubeconfig)
  const api = config.makeApiClient(CoreV1Api)
  const informer = makeInformer(config, `/api/v1/namespaces/${namespace}/secrets`, () =>
    api.listNamespacedSecret({ namespace }),
  )
  const heard: string[] = []
  for (const verb of ['add', 'update', 'delete'] as const) {
    informer.on(verb, (object) => void heard.push(`${verb} ${object.metadata?.name}`))
  }
  let isStopped = false
  let again: NodeJS.Timeout | undefined
  const start = (): void => {
    if (!isStopped) informer.start().catch(startLater)
  }
  const startLater = (): void => {
    clearTimeout(again)
    again = setTimeout(start, 100)
  }
  informer.on('error', startLater)
  const connected = new Promise<void>((resolve) => {
    informer.on('connect', () => resolve())
  })
  await informer.start()
  await connected
  return {
    heard,
    names: () =>
      informer
        .list()
        .map(({ metadata }) => metadata?.name ?? '')
        .sort(),
    async stop() {
      isStopped = true
      clearTimeout(again)
      await informer.stop()
    },
  }
}

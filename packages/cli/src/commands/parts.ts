import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import {
  createApiServer,
  ensureCertificates,
  memoryStorage,
  serveHttps,
  sqliteStorage,
  writeKubeconfig,
} from '@corral/apiserver'
import { type KubeClient, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { pickIsolation, processIsolation, startKubeletServer, startNode } from '@corral/node'
import { embeddedCrds, systemClock } from '@corral/resources'
import { type Command, Option } from 'commander'
import { Registry } from 'prom-client'
import { jsonLogger, type LogLevel } from '../output/logger.js'
import { parseCount, parsePort } from '../output/parse-duration.js'
import { daemonImages } from '../platform/daemon-image.js'
import {
  dataDirectoryAt,
  defaultDataDirectory,
  ensureSecret,
  lockDataDirectory,
  prepareDataDirectory,
  readPorts,
  writeAtomically,
} from '../platform/data-directory.js'
import { brokerService, brokerServicePort, platformNamespace } from '../platform/defaults.js'
import { installRuntime } from '../platform/runtime-files.js'
import { startTaskPlatform } from '../platform/task-platform.js'
import { untilStopSignal } from './common.js'

interface PartOptions {
  dataDir?: string
  readyFile?: string
  logLevel: LogLevel
}

const logLevel = (): Option =>
  new Option('--log-level <level>', 'what is logged to standard error')
    .choices(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')

/** The parts of the platform one by one, for tests and for clusters. */
export function addPartCommands(program: Command): void {
  program
    .command('apiserver')
    .summary('only the Kubernetes API, with our kinds installed')
    .option('--data-dir <dir>', 'where objects and certificates are kept')
    .option('--api-port <port>', 'port; 0 takes a free one', parsePort, 0)
    .option('--ready-file <file>', 'write {"url","kubeconfig","token","pid"} there when ready')
    .option('--memory', 'keep objects in memory only')
    .addOption(logLevel())
    .action(runApiServer)
  program
    .command('node')
    .summary('only the node agent, for any API server')
    .requiredOption('--kubeconfig <file>', 'the API server to serve')
    .option('--data-dir <dir>', 'where pods and volumes are kept')
    .option('--name <name>', 'name of the node', hostname().toLowerCase())
    .option('--kubelet-port <port>', 'port of the kubelet routes (exec, logs, port-forward)', parsePort, 10250)
    .option(
      '--client-ca <file>',
      'let only clients with a certificate of this CA in; without it the routes are on loopback only',
    )
    .option('--broker <host:port>', 'where the model broker listens, for the Service corral-broker')
    .addOption(new Option('--isolation <tier>', 'insist on a tier').choices(['bubblewrap', 'process']))
    .option('--ready-file <file>', 'write {"node","isolation","pid"} there when ready')
    .addOption(logLevel())
    .action(runNode)
  program
    .command('server')
    .summary('only tasks, broker and HTTP API, on any cluster')
    .requiredOption('--kubeconfig <file>', 'the cluster; in a cluster leave its value empty for the ServiceAccount')
    .option('--data-dir <dir>', 'where event logs and mirrors are kept')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <port>', 'port of the HTTP API', parsePort, 0)
    .option('--broker-port <port>', 'port of the model broker', parsePort, brokerServicePort)
    .option('--namespace <name>', 'namespace of tasks and sandboxes', platformNamespace)
    .option('--max-tasks <n>', 'tasks that run at once', parseCount, 10)
    .option('--agent <name>', 'agent of tasks that name none', 'claude')
    .option('--ready-file <file>', 'write {"url","token","pid"} there when ready')
    .addOption(logLevel())
    .action(runServer)
}

async function runApiServer(options: PartOptions & { apiPort: number; memory?: boolean }): Promise<void> {
  const stop = untilStopSignal()
  const directory = dataDirectoryAt(options.dataDir ?? defaultDataDirectory(process.env))
  prepareDataDirectory(directory)
  const log = jsonLogger(options.logLevel)
  const server = await createApiServer({
    storage: options.memory ? memoryStorage() : sqliteStorage({ directory: directory.api }),
    crds: embeddedCrds(),
    log,
    tokenKey: Buffer.from(ensureSecret(directory, 'secrets/service-account-key')),
  })
  const https = await serveHttps({ server, port: options.apiPort, dataDir: directory.path, log })
  writeKubeconfig(directory.kubeconfig, https)
  announce(options, { url: https.url, kubeconfig: directory.kubeconfig, token: https.token, pid: process.pid })
  await stop
  await https.close()
  await server.close()
}

interface NodeCommandOptions extends PartOptions {
  kubeconfig: string
  name: string
  kubeletPort: number
  broker?: string
  clientCa?: string
  isolation?: 'bubblewrap' | 'process'
}

async function runNode(options: NodeCommandOptions): Promise<void> {
  const stop = untilStopSignal()
  const directory = dataDirectoryAt(options.dataDir ?? defaultDataDirectory(process.env))
  prepareDataDirectory(directory)
  const lock = await lockDataDirectory(directory)
  const log = jsonLogger(options.logLevel)
  const client = await clientFor(options.kubeconfig)
  const runtime = installRuntime(directory.runtime)
  const isolationOptions = {
    dataDir: directory.path,
    cradleEntry: runtime.cradle,
    supervisorPath: runtime.supervisor ?? null,
    ...(runtime.supervisorScript ? { supervisorScript: runtime.supervisorScript } : {}),
    log,
  }
  const isolation =
    options.isolation === 'process'
      ? processIsolation(isolationOptions)
      : (await pickIsolation({ ...isolationOptions, allowProcess: false })).isolation
  const [brokerHost, brokerPort] = (options.broker ?? `127.0.0.1:${brokerServicePort}`).split(':')
  const node = await startNode({
    client,
    isolation,
    dataDir: directory.path,
    nodeName: options.name,
    images: daemonImages(runtime, directory.agents),
    services: [
      {
        names: [brokerService, `${brokerService}.${platformNamespace}`],
        port: brokerServicePort,
        target: { host: brokerHost ?? '127.0.0.1', port: Number(brokerPort) },
      },
    ],
    kubeletPort: options.kubeletPort,
    hostIP: '127.0.0.1',
    clock: systemClock,
    log,
  })
  const { server } = await ensureCertificates(directory.tls, ['127.0.0.1'])
  const clientCa = options.clientCa ? readFileSync(options.clientCa, 'utf8') : undefined
  const kubelet = await startKubeletServer({
    node,
    port: options.kubeletPort,
    tls: { cert: server.cert, key: server.key, ...(clientCa ? { clientCa } : {}) },
    log,
  })
  await node.ready
  announce(options, { node: options.name, isolation: isolation.tier, pid: process.pid })
  await stop
  await kubelet.close()
  await node.stop({ endPods: true })
  await isolation.close({ endPods: true })
  await client.close()
  await lock.release()
}

interface ServerCommandOptions extends PartOptions {
  kubeconfig: string
  host: string
  port: number
  brokerPort: number
  namespace: string
  maxTasks: number
  agent: string
}

async function runServer(options: ServerCommandOptions): Promise<void> {
  const stop = untilStopSignal()
  const directory = dataDirectoryAt(options.dataDir ?? defaultDataDirectory(process.env))
  prepareDataDirectory(directory)
  const lock = await lockDataDirectory(directory)
  const client = await clientFor(options.kubeconfig)
  const token = ensureSecret(directory, 'token')
  let isReady = false
  const tasks = await startTaskPlatform({
    client,
    directory,
    env: process.env,
    httpHost: options.host,
    httpPort: options.port,
    brokerHost: options.host,
    brokerPort: options.brokerPort,
    remembered: readPorts(directory),
    token,
    maxConcurrent: options.maxTasks,
    defaultAgent: options.agent,
    registry: new Registry(),
    namespace: options.namespace,
    isReady: () => isReady,
    clock: systemClock,
    log: jsonLogger(options.logLevel),
  })
  await tasks.ready
  isReady = true
  announce(options, { url: tasks.http.url, token, pid: process.pid })
  await stop
  await tasks.stop({ graceMs: 60_000 })
  await client.close()
  await lock.release()
}

async function clientFor(kubeconfig: string): Promise<KubeClient> {
  return kubeClientFromConfig(await loadKubeConfig(kubeconfig ? { path: kubeconfig } : {}))
}

function announce(options: PartOptions, record: object): void {
  const text = `${JSON.stringify(record)}\n`
  if (options.readyFile) writeAtomically(options.readyFile, text, 0o600)
  process.stdout.write(text)
}

import { readFileSync } from 'node:fs'
import {
  createApiServer,
  ensureCertificates,
  memoryStorage,
  serveHttps,
  sqliteStorage,
  writeKubeconfig,
} from '@corral/apiserver'
import { type KubeClient, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { pickIsolation, processIsolation, startKubeletServer, startNode, subjectAccess } from '@corral/node'
import { embeddedCrds, systemClock } from '@corral/resources'
import { Registry } from 'prom-client'
import { CliError } from '../cli-error.js'
import { untilStopSignal } from '../commands/common.js'
import { jsonLogger, type LogLevel } from '../output/logger.js'
import { daemonImages } from './daemon-image.js'
import {
  dataDirectoryAt,
  defaultDataDirectory,
  ensureSecret,
  lockDataDirectory,
  prepareDataDirectory,
  readPorts,
  writeAtomically,
} from './data-directory.js'
import { brokerService, brokerServicePort, platformNamespace } from './names.js'
import { installRuntime } from './runtime-files.js'
import { startTaskPlatform } from './task-platform.js'

interface PartOptions {
  dataDir?: string
  readyFile?: string
  logLevel: LogLevel
}

export interface ApiServerCommandOptions extends PartOptions {
  apiPort: number
  memory?: boolean
}

/** `corral apiserver`. */
export async function runApiServer(options: ApiServerCommandOptions): Promise<void> {
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

export interface NodeCommandOptions extends PartOptions {
  kubeconfig: string
  name: string
  kubeletPort: number
  broker?: string
  clientCa?: string
  isolation?: 'bubblewrap' | 'process'
}

export async function runNode(options: NodeCommandOptions): Promise<void> {
  const stop = untilStopSignal()
  const directory = dataDirectoryAt(options.dataDir ?? defaultDataDirectory(process.env))
  prepareDataDirectory(directory)
  const lock = await lockDataDirectory(directory)
  const log = jsonLogger(options.logLevel)
  const access = await loadKubeConfig({ path: options.kubeconfig })
  const client = kubeClientFromConfig(access)
  const clientCa = options.clientCa ? readFileSync(options.clientCa, 'utf8') : access.tls.ca
  if (!clientCa)
    throw new CliError('nothing says which clients the kubelet routes may trust', {
      exitCode: 2,
      hint: 'Give --client-ca, or a kubeconfig with the certificate authority of the cluster.',
    })
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
  const kubelet = await startKubeletServer({
    node,
    port: options.kubeletPort,
    tls: { cert: server.cert, key: server.key, clientCa },
    authorize: subjectAccess(client, options.name),
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

export interface ServerCommandOptions extends PartOptions {
  kubeconfig: string
  host: string
  port: number
  brokerPort: number
  namespace: string
  maxTasks: number
  agent: string
  localRepositories?: boolean
}

export async function runServer(options: ServerCommandOptions): Promise<void> {
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
    localRepositories: options.localRepositories ?? false,
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

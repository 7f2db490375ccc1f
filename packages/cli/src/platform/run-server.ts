import { type KubeClient, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { systemClock } from '@corral/ports'
import { createProbeApp, type HttpServer, listen, type ProbeOptions } from '@corral/server'
import { openArchiveDirectory } from '@corral/tasks'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { jsonLogger } from '../output/logger.js'
import type { ListenAddress } from '../output/parse-address.js'
import {
  dataDirectoryOf,
  ensureSecret,
  lockDataDirectory,
  prepareDataDirectory,
  readPorts,
  readSecretFile,
} from './data-directory.js'
import { ensureDefaults } from './defaults.js'
import { electionIdentity } from './election.js'
import { startExternalMetrics } from './external-metrics.js'
import { identityFrom } from './identity-option.js'
import { announce, type PartOptions } from './part.js'
import { explainPort } from './port-holder.js'
import { startTaskParts, type TaskPart } from './task-platform.js'
import { untilStopSignal } from './until-stop-signal.js'

export interface ServerCommandOptions extends PartOptions {
  kubeconfig: string
  host: string
  port: number
  allowHost: readonly string[]
  brokerPort: number
  namespace: string
  maxTasks: number
  maxHeld: number
  /** What environments that were built may take of the data directory; 0 keeps none. */
  snapshotBudget: number
  agent: string
  localRepositories?: boolean
  author?: string
  parts: readonly TaskPart[]
  metricsAddress?: ListenAddress
  tokenFile?: string
  brokerSecretFile?: string
  externalMetricsAddress?: ListenAddress
  externalMetricsTls: string
  /** Makes the default template, pool and Service where they are missing, with this many sandboxes kept ready. */
  warm?: number
  egressByName?: boolean
  provider?: string
  reach: 'auto' | 'port-forward' | 'pod-address'
}

/** `corral server`. */
export async function runServer(options: ServerCommandOptions): Promise<void> {
  const author = options.author ? identityFrom('--author', options.author) : undefined
  const stop = untilStopSignal()
  const directory = dataDirectoryOf(options)
  prepareDataDirectory(directory)
  const parts = new Set(options.parts)
  // The controller writes to the data directory; who only answers requests reads beside it.
  const lock = parts.has('controller') ? await lockDataDirectory(directory) : undefined
  const client = await clientFor(options.kubeconfig)
  const token = options.tokenFile ? readSecretFile(options.tokenFile, '--token-file') : ensureSecret(directory, 'token')
  const log = jsonLogger(options.logLevel)
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  let isReady = false
  let isStandingBy = (): boolean => false
  const probes = options.metricsAddress
    ? await startProbes(options.metricsAddress, {
        isReady: () => isReady,
        isStandingBy: () => isStandingBy(),
        registry,
      })
    : undefined
  if (options.warm !== undefined)
    await ensureDefaults(client, { warmSandboxes: options.warm, namespace: options.namespace })
  const tasks = await startTaskParts(parts, {
    client,
    directory,
    env: process.env,
    httpHost: options.host,
    httpPort: options.port,
    allowedHosts: [...options.allowHost, ...serviceNames(options.namespace)],
    brokerHost: options.host,
    brokerPort: options.brokerPort,
    remembered: readPorts(directory),
    token,
    election: { identity: electionIdentity(directory) },
    maxConcurrent: options.maxTasks,
    maxHeld: options.maxHeld,
    ...(parts.has('controller') && options.snapshotBudget > 0
      ? {
          snapshots: { openArchives: () => openArchiveDirectory(directory.environments) },
          snapshotBudgetBytes: options.snapshotBudget,
        }
      : {}),
    defaultAgent: options.agent,
    localRepositories: options.localRepositories ?? false,
    ...(author ? { findIdentity: async () => author } : {}),
    registry,
    ...(options.brokerSecretFile
      ? { brokerSecret: readSecretFile(options.brokerSecretFile, '--broker-secret-file') }
      : {}),
    hasEgressByName: options.egressByName ?? false,
    connection: { type: reachOf(options) },
    ownProvider: 'kubernetes',
    ...(options.provider ? { defaultProvider: options.provider } : {}),
    namespace: options.namespace,
    runsOn: { provider: 'kubernetes', isGiven: true },
    isReady: () => isReady,
    clock: systemClock,
    log,
  })
  const { controller } = tasks
  if (controller) isStandingBy = () => controller.isStandingBy()
  await tasks.ready
  isReady = true
  const externalMetrics = options.externalMetricsAddress
    ? await startExternalMetrics({
        client,
        address: options.externalMetricsAddress,
        certificates: options.externalMetricsTls,
        namespace: options.namespace,
        demand: () => tasks.controller?.demand(),
        log,
      })
    : undefined
  announce(options, {
    // A token that was given is known to who gave it, and the output of a pod is read by many.
    ...(tasks.http ? { url: tasks.http.url, ...(options.tokenFile ? {} : { token }) } : {}),
    ...(probes ? { metrics: `${probes.url}/metrics` } : {}),
    pid: process.pid,
  })
  await stop
  isReady = false
  await externalMetrics?.close()
  await tasks.stop()
  await probes?.close()
  await client.close()
  await lock?.release()
}

/** Inside the cluster pods are reached straight, which asks nothing of the API server and works under any runtime. */
function reachOf({ reach, kubeconfig }: ServerCommandOptions): 'port-forward' | 'in-cluster-pod-ip' {
  if (reach === 'auto') return kubeconfig === '' ? 'in-cluster-pod-ip' : 'port-forward'
  return reach === 'pod-address' ? 'in-cluster-pod-ip' : 'port-forward'
}

async function startProbes(address: ListenAddress, options: ProbeOptions): Promise<HttpServer> {
  try {
    return await listen({ fetch: createProbeApp(options), ...address })
  } catch (error) {
    throw explainPort(error, address.port, '--metrics-address')
  }
}

async function clientFor(kubeconfig: string): Promise<KubeClient> {
  return kubeClientFromConfig(await loadKubeConfig(kubeconfig ? { path: kubeconfig } : {}))
}

/** The names of the Service `corral`. Only the cluster's DNS resolves them, so a page of another host cannot use them as its own. */
function serviceNames(namespace: string): string[] {
  const service = `corral.${namespace}`
  return ['corral', service, `${service}.svc`, `${service}.svc.cluster.local`]
}

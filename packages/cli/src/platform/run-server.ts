import { type KubeClient, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { systemClock } from '@corral/resources'
import { Registry } from 'prom-client'
import { untilStopSignal } from '../commands/common.js'
import { jsonLogger } from '../output/logger.js'
import {
  dataDirectoryAt,
  defaultDataDirectory,
  ensureSecret,
  lockDataDirectory,
  prepareDataDirectory,
  readPorts,
} from './data-directory.js'
import { announce, type PartOptions } from './part.js'
import { startTaskPlatform } from './task-platform.js'

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

/** `corral server`. */
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

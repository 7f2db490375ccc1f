import { rmSync } from 'node:fs'
import { createApiServer, serveHttps, sqliteStorage, writeKubeconfig } from '@corral/apiserver'
import { defaultManagerOptions, startManager, startShadowPools } from '@corral/controllers'
import { inProcessKubeClient } from '@corral/kube'
import { type Isolation, pickIsolation, processIsolation, startNode, type Tier } from '@corral/node'
import { embeddedCrds, type Logger, systemClock } from '@corral/resources'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { daemonImages } from './daemon-image.js'
import {
  type DataDirectory,
  dataDirectoryAt,
  ensureSecret,
  lockDataDirectory,
  prepareDataDirectory,
  type ReadyRecord,
  readPorts,
  writeAtomically,
  writePorts,
} from './data-directory.js'
import { ensureDefaults } from './defaults.js'
import { listenRemembered } from './free-port.js'
import { brokerService, brokerServicePort, platformNamespace } from './names.js'
import { installRuntime, isolationFiles, journalThread, type RuntimeFiles } from './runtime-files.js'
import { startTaskPlatform } from './task-platform.js'

export interface PlatformOptions {
  dataDir: string
  httpPort: number
  apiPort: number
  readyFile?: string
  /** Undefined: the best tier that isolates; `process` only when asked for by name. */
  isolation?: Tier
  /** Fall back to the `process` tier where nothing better works, instead of refusing to start. */
  allowProcess?: boolean
  maxConcurrent: number
  warmSandboxes: number
  defaultAgent: string
  env: NodeJS.ProcessEnv
  log: Logger
}

export interface Platform {
  readonly ready: ReadyRecord
  /** What the operator can do for better isolation, where there is something. */
  readonly remedy: string | undefined
  isBusy(): boolean
  /** Ends tasks and sandboxes, flushes everything. Safe to repeat. */
  stop(): Promise<void>
}

const taskStopGraceMs = 60_000

/**
 * The platform on one machine, in one process: API server, controllers, node, tasks, broker, HTTP API. Resolves when
 * all of it is ready. What was started is stopped again when a later part fails.
 */
export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const directory = dataDirectoryAt(options.dataDir)
  prepareDataDirectory(directory)
  const stops: (() => Promise<void>)[] = []
  const unwind = async (): Promise<void> => {
    for (let stop = stops.pop(); stop; stop = stops.pop())
      await stop().catch((error: unknown) => options.log.error('a part did not stop cleanly', { error }))
  }
  try {
    return await assemble(options, directory, stops, unwind)
  } catch (error) {
    await unwind()
    throw error
  }
}

async function assemble(
  options: PlatformOptions,
  directory: DataDirectory,
  stops: (() => Promise<void>)[],
  unwind: () => Promise<void>,
): Promise<Platform> {
  const { log, env } = options
  const lock = await lockDataDirectory(directory)
  stops.push(() => lock.release())
  rmSync(directory.readyFile, { force: true })
  const remembered = readPorts(directory)
  const token = ensureSecret(directory, 'token')
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })

  const picking = pick(options, directory)
  picking.catch(() => undefined) // looked at below; an earlier failure must not leave it unowned
  const api = await createApiServer({
    // Controllers, node and tasks share this thread: the journal gets one of its own.
    storage: sqliteStorage({ directory: directory.api, ...journalThread() }),
    crds: embeddedCrds(),
    log: log.child({ part: 'apiserver' }),
    tokenKey: Buffer.from(ensureSecret(directory, 'secrets/service-account-key')),
  })
  stops.push(() => api.close())
  const https = await listenRemembered(options.apiPort, remembered.api, (port) =>
    serveHttps({ server: api, port, dataDir: directory.path, log: log.child({ part: 'apiserver' }) }),
  )
  stops.push(() => https.close())
  writeKubeconfig(directory.kubeconfig, https, { namespace: platformNamespace })
  const client = inProcessKubeClient(api, { defaultNamespace: platformNamespace, userAgent: 'corral' })
  await ensureDefaults(client, { warmSandboxes: options.warmSandboxes })

  const manager = startManager({
    client,
    options: { ...defaultManagerOptions(), sandbox: { ...defaultManagerOptions().sandbox, explainNotReady: true } },
    metrics: registry,
    log: log.child({ part: 'controllers' }),
  })
  stops.push(() => manager.stop())
  manager.ready.catch(() => undefined) // looked at below; a failure before that is the one to tell
  const shadowPools = startShadowPools({ client, log: log.child({ part: 'shadow-pools' }) })
  stops.push(() => shadowPools.stop())
  shadowPools.ready.catch(() => undefined)

  const { isolation, runtime, remedy } = await picking
  stops.push(() => isolation.close({ endPods: true }))
  let isReady = false
  const tasks = await startTaskPlatform({
    client,
    directory,
    env,
    httpPort: options.httpPort,
    brokerPort: 0,
    remembered,
    token,
    maxConcurrent: options.maxConcurrent,
    defaultAgent: options.defaultAgent,
    localRepositories: true,
    isolation: isolation.tier,
    registry,
    isReady: () => isReady,
    clock: systemClock,
    log: log.child({ part: 'tasks' }),
  })
  stops.push(() => tasks.stop({ graceMs: 0 }))
  const node = await startNode({
    client,
    isolation,
    dataDir: directory.path,
    nodeName: 'corral',
    images: daemonImages(runtime, directory.agents),
    services: [
      {
        names: [
          brokerService,
          `${brokerService}.${platformNamespace}`,
          `${brokerService}.${platformNamespace}.svc`,
          `${brokerService}.${platformNamespace}.svc.cluster.local`,
        ],
        port: brokerServicePort,
        target: { host: '127.0.0.1', port: tasks.broker.port },
      },
    ],
    clock: systemClock,
    log: log.child({ part: 'node' }),
  })
  api.setPodStreams(node.podStreams)
  stops.push(() => node.stop({ endPods: true }))
  stops.push(() => tasks.stop({ graceMs: taskStopGraceMs }))
  await Promise.all([manager.ready, shadowPools.ready, node.ready, tasks.ready])

  isReady = true
  writePorts(directory, { http: tasks.http.port, api: https.port, broker: tasks.broker.port })
  const ready: ReadyRecord = {
    url: tasks.http.url,
    token,
    kubeconfig: directory.kubeconfig,
    pid: process.pid,
    isolation: isolation.tier,
  }
  const record = `${JSON.stringify(ready)}\n`
  writeAtomically(directory.readyFile, record, 0o600)
  if (options.readyFile) writeAtomically(options.readyFile, record, 0o600)
  stops.push(async () => rmSync(directory.readyFile, { force: true }))
  return { ready, remedy, isBusy: () => tasks.isBusy(), stop: unwind }
}

interface Picked {
  isolation: Isolation
  runtime: RuntimeFiles
  remedy: string | undefined
}

async function pick(options: PlatformOptions, directory: DataDirectory): Promise<Picked> {
  const runtime = installRuntime(directory.runtime)
  const isolationOptions = {
    dataDir: directory.path,
    ...isolationFiles(runtime),
    log: options.log.child({ part: 'isolation' }),
  }
  if (options.isolation === 'process')
    return { isolation: processIsolation(isolationOptions), runtime, remedy: undefined }
  const { isolation, rejected } = await pickIsolation({
    ...isolationOptions,
    allowProcess: options.allowProcess === true,
  })
  return { isolation, runtime, remedy: rejected[0]?.remedy }
}

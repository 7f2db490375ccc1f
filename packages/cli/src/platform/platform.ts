import { rmSync } from 'node:fs'
import { createApiServer, serveHttps, sqliteStorage, writeKubeconfig } from '@corral/apiserver'
import { defaultManagerOptions, startManager, startShadowPools } from '@corral/controllers'
import { inProcessKubeClient } from '@corral/kube'
import {
  type Isolation,
  isSandboxTier,
  type NodeAgent,
  pickIsolation,
  startNode,
  type Tier,
  thawPods,
} from '@corral/node'
import { type Logger, systemClock } from '@corral/ports'
import { embeddedCrds } from '@corral/resources'
import { configuredIdentity, createGit, rememberIdentities, writeGlobalConfig } from '@corral/tasks'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { confineGit } from './confine-git.js'
import { daemonImages } from './daemon-image.js'
import {
  type DataDirectory,
  dataDirectoryAt,
  ensureSecret,
  lockDataDirectory,
  makeDataDirectory,
  prepareDataDirectory,
  type ReadyRecord,
  readPorts,
  writeAtomically,
  writePorts,
} from './data-directory.js'
import { ensureDefaults } from './defaults.js'
import { electionIdentity, quietElection } from './election.js'
import { listenRemembered } from './free-port.js'
import { isInstalled } from './installed-agents.js'
import { brokerService, brokerServicePort, platformNamespace } from './names.js'
import { startPackageMirror } from './package-mirror.js'
import { requireRoom } from './require-room.js'
import { installRuntime, isolationFiles, journalThread, type RuntimeFiles, usageThread } from './runtime-files.js'
import { explainStorage } from './storage-failure.js'
import { startTaskPlatform } from './task-platform.js'

/** Longer than a task needs from its claim until its agent runs. The start of a daemon in a replacement takes as much of a processor. */
const poolSettleMs = 2000

export interface PlatformOptions {
  dataDir: string
  httpPort: number
  /** Host names the HTTP API answers to besides those of loopback. */
  allowedHosts?: readonly string[]
  apiPort: number
  readyFile?: string
  /** Undefined: the best tier that isolates; `process` only when asked for by name. */
  isolation?: Tier
  /** Fall back to the `process` tier where nothing better works, instead of refusing to start. */
  allowProcess?: boolean
  maxConcurrent: number
  maxHeld?: number
  warmSandboxes: number
  /** Processes and threads one sandbox may have. */
  podPids?: number
  defaultAgent: string
  /** The provider of tasks that name none; this machine's own where left out. */
  defaultProvider?: string
  /** What the package mirror may keep on disk. */
  packageCacheBytes: number
  /** What snapshots of environments may take on the disk. */
  snapshotBudgetBytes?: number
  env: NodeJS.ProcessEnv
  log: Logger
}

export interface Platform {
  readonly ready: ReadyRecord
  /** Whether the tier in use holds back hostile code. */
  readonly isSandbox: boolean
  /** What the operator can do for better isolation, where there is something. */
  readonly remedy: string | undefined
  isBusy(): boolean
  /** Ids of the tasks whose sandboxes would outlive a stop. */
  heldTasks(): string[]
  /**
   * Ends this process's part and every sandbox without a task. Tasks stay as they are: their sandboxes go on, and with
   * them the cradle, until the last one's deadline; the next start continues with them. Safe to repeat; settles within
   * seconds, whatever the parts do.
   */
  stop(): Promise<void>
  /**
   * Where no task needs a sandbox, lets all of them end with this process, however it ends. The first part of a stop;
   * takes a second at most.
   */
  letGo(): Promise<void>
}

/**
 * What all parts together may take to stop, and what each may take all the same once that is used up: a part that hangs,
 * such as one that waits for the cradle, costs the others nothing but the wait.
 */
const stopBudgetMs = 3_000
const leastPartStopMs = 150
const announceMs = 1_000

/**
 * The platform on one machine, in one process: API server, controllers, node, tasks, broker, HTTP API. Resolves when
 * all of it is ready. What was started is stopped again when a later part fails.
 */
export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const directory = dataDirectoryAt(options.dataDir)
  makeDataDirectory(directory.path)
  const stops: (() => Promise<void>)[] = []
  const unwind = async (): Promise<void> => {
    const deadline = Date.now() + stopBudgetMs
    for (let stop = stops.pop(); stop; stop = stops.pop())
      await within(Math.max(leastPartStopMs, deadline - Date.now()), stop()).catch((error: unknown) =>
        options.log.error('a part did not stop cleanly', { error }),
      )
  }
  try {
    return await assemble(options, directory, stops, unwind)
  } catch (error) {
    await unwind()
    throw explainStorage(error, directory)
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
  stops.push(async () => thawPods(directory.path))
  requireRoom(directory, log)
  prepareDataDirectory(directory)
  rmSync(directory.readyFile, { force: true })
  const remembered = readPorts(directory)
  const token = ensureSecret(directory, 'token')
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })

  const picking = pick(options, directory)
  picking.catch(() => undefined) // looked at below; an earlier failure must not leave it unowned
  let isPicked = false
  // The cradle starts beside the API server: where that fails, it has to be let go, or this process would wait for it.
  stops.push(async () => {
    if (!isPicked)
      await picking.then(({ isolation: unused }) => unused.close({ endPods: false })).catch(() => undefined)
  })
  const api = await createApiServer({
    // Controllers, node and tasks share this thread: the journal gets one of its own.
    storage: sqliteStorage({ directory: directory.api, ...journalThread() }),
    crds: embeddedCrds(),
    log: log.child({ part: 'apiserver' }),
    tokenKey: Buffer.from(ensureSecret(directory, 'secrets/service-account-key')),
  })
  stops.push(() => api.close())
  const https = await listenRemembered(
    options.apiPort,
    remembered.api,
    (port) => serveHttps({ server: api, port, dataDir: directory.path, log: log.child({ part: 'apiserver' }) }),
    '--api-port',
  )
  stops.push(() => https.close())
  writeKubeconfig(directory.kubeconfig, https, { namespace: platformNamespace })
  const client = inProcessKubeClient(api, { defaultNamespace: platformNamespace, userAgent: 'corral' })
  await ensureDefaults(client, { warmSandboxes: options.warmSandboxes })

  const defaults = defaultManagerOptions()
  const manager = startManager({
    client,
    options: {
      ...defaults,
      sandbox: { ...defaults.sandbox, explainNotReady: true },
      pool: { ...defaults.pool, settleMs: poolSettleMs },
    },
    metrics: registry,
    log: log.child({ part: 'controllers' }),
  })
  stops.push(() => manager.stop())
  manager.ready.catch(() => undefined) // looked at below; a failure before that is the one to tell
  const shadowPools = startShadowPools({ client, log: log.child({ part: 'shadow-pools' }) })
  stops.push(() => shadowPools.stop())
  shadowPools.ready.catch(() => undefined)

  const { isolation, runtime, remedy } = await picking
  isPicked = true
  let keepsSandboxes = true
  // A node that was too slow to end its pods leaves them to the cradle, which ends all of them where no task needs one.
  stops.push(() => isolation.close({ endPods: !keepsSandboxes }))
  let isReady = false
  let diskProblem: string | undefined
  const git = createGit({ globalConfig: await writeGlobalConfig(directory.git, env), env })
  let node: NodeAgent | undefined
  const tasks = await startTaskPlatform({
    client,
    directory,
    env,
    httpPort: options.httpPort,
    ...(options.allowedHosts ? { allowedHosts: options.allowedHosts } : {}),
    brokerPort: 0,
    remembered,
    token,
    election: { identity: electionIdentity(directory), ...quietElection },
    maxConcurrent: options.maxConcurrent,
    ...(options.maxHeld === undefined ? {} : { maxHeld: options.maxHeld }),
    defaultAgent: options.defaultAgent,
    ownProvider: 'embedded',
    ...(options.defaultProvider ? { defaultProvider: options.defaultProvider } : {}),
    localRepositories: true,
    findIdentity: rememberIdentities((path) => configuredIdentity(git, path)),
    isInstalled: (program) => isInstalled(program, directory.agents),
    isolation: isolation.tier,
    snapshots: () => node?.snapshots,
    ...(options.snapshotBudgetBytes === undefined ? {} : { snapshotBudgetBytes: options.snapshotBudgetBytes }),
    confine: confineGit(isolation, env.PATH),
    onSandboxesNeeded: (until) => void isolation.keepUntil(until),
    registry,
    isReady: () => isReady,
    diskProblem: () => diskProblem,
    clock: systemClock,
    log: log.child({ part: 'tasks' }),
  })
  stops.push(() => tasks.stop())
  const mirror = await startPackageMirror({
    directory,
    budgetBytes: options.packageCacheBytes,
    env,
    log: log.child({ part: 'packages' }),
  })
  stops.push(() => mirror.close())
  const running = await startNode({
    client,
    isolation,
    dataDir: directory.path,
    nodeName: 'corral',
    ...(options.podPids === undefined ? {} : { pidsLimit: options.podPids }),
    images: daemonImages(runtime, directory),
    services: [
      {
        names: [
          brokerService,
          `${brokerService}.${platformNamespace}`,
          `${brokerService}.${platformNamespace}.svc`,
          `${brokerService}.${platformNamespace}.svc.cluster.local`,
        ],
        port: brokerServicePort,
        target: { host: '127.0.0.1', port: tasks.controller.broker.port },
      },
      mirror.service,
    ],
    ...usageThread(),
    supervisorPath: runtime.supervisor ?? null,
    onDiskChecked: () => thawPods(directory.path),
    onDiskPressure: (problem) => {
      diskProblem = problem
    },
    clock: systemClock,
    log: log.child({ part: 'node' }),
  })
  node = running
  api.setPodStreams(running.podStreams)
  // Sandboxes of other clusters go on without this machine.
  const holdersHere = () => tasks.controller.holders().filter(({ status }) => !status?.sandbox?.provider)
  const podsOfTasks = (): Set<string | undefined> =>
    new Set(holdersHere().map(({ status }) => status?.sandbox?.podName))
  stops.push(() => {
    const held = podsOfTasks()
    keepsSandboxes = holdersHere().length > 0
    return running.stop({
      endPods: true,
      keeps: ({ metadata }) => metadata?.namespace === platformNamespace && held.has(metadata.name),
    })
  })
  stops.push(() => tasks.stop())
  await Promise.all([manager.ready, shadowPools.ready, running.ready, tasks.ready])

  const letGo = async (): Promise<void> => {
    if (holdersHere().length > 0) return
    await within(announceMs, isolation.announceEnd?.() ?? Promise.resolve()).catch(() => undefined)
  }
  isReady = true
  writePorts(directory, { http: tasks.http.port, api: https.port, broker: tasks.controller.broker.port })
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
  return {
    ready,
    isSandbox: isSandboxTier(isolation.tier),
    remedy,
    isBusy: () => tasks.controller.isBusy(),
    heldTasks: () => tasks.controller.holders().map(({ metadata }) => metadata.name),
    letGo,
    async stop() {
      await letGo()
      await unwind()
    },
  }
}

async function within(limitMs: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${limitMs} ms`)), limitMs)
  })
  await Promise.race([work, late]).finally(() => clearTimeout(timer))
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
  const { isolation, rejected } = await pickIsolation({
    ...isolationOptions,
    tier: options.isolation,
    allowUnconfined: options.allowProcess === true,
  })
  // Its process starts while this one sets up the API server: nothing of it is needed before the node starts.
  isolation.warmUp?.()
  return { isolation, runtime, remedy: rejected[0]?.remedy }
}

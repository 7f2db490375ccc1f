import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createInformer, type Informer, type KubeClient } from '@corral/kube'
import type { Clock, Logger, PodStreams, SnapshotStore } from '@corral/ports'
import { NetworkPolicies, type NetworkPolicy, type Pod, Pods } from '@corral/resources'
import { DiskGuard } from './disk/disk-guard.js'
import { reserveFile } from './disk/reserve-file.js'
import { usageMeter } from './disk/usage-meter.js'
import { ImageDirectory } from './images/image-directory.js'
import { imagesDirectory } from './images/rooted-image.js'
import type { HostService, Isolation } from './isolation/isolation.js'
import { hostToolchain } from './launch/host-toolchain.js'
import type { ImageMap } from './launch/image-map.js'
import type { Toolchain } from './launch/launch-plan.js'
import { type NodeFacts, readCapacity, readMachine } from './node-object.js'
import { keepLease, registerNode, reportDiskPressure, reportNotReady } from './node-registration.js'
import { podEvents } from './pod-events.js'
import { PodSet } from './pod-set.js'
import { podDirectories } from './records/pod-directories.js'
import { SnapshotDirectory } from './snapshots/snapshot-directory.js'
import { snapshotStore } from './snapshots/snapshot-store.js'
import { podStreams } from './streams/pod-streams.js'
import { claimDirectories } from './volumes/claim-directories.js'
import { type Provisioner, startProvisioner } from './volumes/provisioner.js'

export interface NodeOptions {
  client: KubeClient
  isolation: Isolation
  /** Pods, volumes and copies of tools live below it. */
  dataDir: string
  nodeName: string
  images: ImageMap
  /** Names every pod may reach whatever its egress says: the broker. */
  services: readonly HostService[]
  clock: Clock
  log: Logger
  /** Aborting it is `stop({ endPods: false })`. */
  signal?: AbortSignal
  /** The host's tools; found on this machine where absent. */
  toolchain?: Toolchain
  /** Where the API server finds this node's streaming routes; absent when they are served in process. */
  kubeletPort?: number
  hostIP?: string
  /** Processes and threads one pod may have; 1024 where absent. */
  pidsLimit?: number
  version?: string
  /** `disk/usage-thread` as one JavaScript file: counts what pods take. Without it this thread counts. */
  usageThread?: string
  /** The compiled supervisor, which seals snapshots; looked for beside the package when left out, null to go without. */
  supervisorPath?: string | null
  /** Told when the data directory's disk becomes full (`problem` says how) and when it has room again. */
  onDiskPressure?: (problem: string | undefined) => void
  /** Called once the disk has been looked at and the pods that fill it are being evicted. */
  onDiskChecked?: () => void
  /** How often mounted ConfigMaps and Secrets are refreshed. */
  upkeepMs?: number
}

export interface NodeStopOptions {
  endPods: boolean
  /** With `endPods`: pods that go on all the same. */
  keeps?: (pod: Pod) => boolean
}

/** A node at work. */
export interface NodeAgent {
  /** Exec, attach, logs and port-forward of the pods on this node. */
  readonly podStreams: PodStreams
  /** Directory trees that pods of this node get copy-on-write. */
  readonly snapshots: SnapshotStore
  /** Settles once the node is registered and has taken over the pods that were there; rejects when it cannot. */
  readonly ready: Promise<void>
  /**
   * Ends the agent; safe to repeat. The containers of pods that `keeps` names go on for the next agent to adopt; with
   * `endPods` those of all others are stopped first. The isolation stays open: who made it closes it.
   */
  stop(options: NodeStopOptions): Promise<void>
}

/**
 * Every process of a sandbox maps the same C library as those of the others, and the kernel keeps one queue of those who
 * fork, start and end for each such file: a start in another sandbox waits behind as many as a fork bomb may have.
 */
const defaultPidsLimit = 1024
const registerTries = 6
const firstRetryMs = 100
const defaultUpkeepMs = 30_000
const shutdownGraceSeconds = 2

/** Starts the node: registers it, takes over what an earlier agent left, runs the pods bound to it. */
export async function startNode(options: NodeOptions): Promise<NodeAgent> {
  const { client, isolation, dataDir, nodeName, clock, log } = options
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  const life = new AbortController()
  const facts = await nodeFacts(options)
  const events = podEvents({ client, component: 'corral-node', host: nodeName, clock, log })
  const directories = podDirectories(dataDir)
  const claims = claimDirectories(dataDir)
  const snapshots = new SnapshotDirectory(dataDir, log)
  const imported = new ImageDirectory(join(dataDir, imagesDirectory))
  await imported.sweep()
  const toolchain = options.toolchain ?? (await hostToolchain({ dataDir }))
  const leftovers = { records: await directories.load(), cells: await isolation.adopt() }
  const provisioner = startProvisioner({ client, claims, nodeName, log, signal: life.signal })
  const policies = createInformer({ client, kind: NetworkPolicies, log, signal: life.signal })
  const pods = new PodSet(
    {
      client,
      isolation,
      directories,
      snapshots,
      claims,
      images: options.images,
      imported,
      services: options.services,
      toolchain,
      pidsLimit: options.pidsLimit ?? defaultPidsLimit,
      events,
      clock,
      log,
      findClaim: (namespace, name) => provisioner.find(namespace, name),
      policies: () => policies.list(),
      facts: { hostIP: facts.hostIP, nodeName, allocatable: facts.capacity },
    },
    leftovers,
  )
  isolation.watchNetwork((report) => pods.networkRefused(report))
  isolation.watchOomKills?.((report) => pods.oomKilled(report))
  isolation.watchBraked?.((podUid, reason) => pods.braked(podUid, reason))
  const registration = { client, facts, clock, log, signal: life.signal }
  const informer = createInformer({
    client,
    kind: Pods,
    fieldSelector: `spec.nodeName=${nodeName}`,
    log,
    signal: life.signal,
  })
  const sweeping = snapshots
    .sweep()
    .catch((error: unknown) => log.warn('half a snapshot could not be removed', { error }))
  const lease = keepLease(registration)
  const ready = becomeReady(registration, { informer, policies, provisioner }, pods)
  const upkeep = repeat(() => pods.upkeep(), options.upkeepMs ?? defaultUpkeepMs, life.signal)
  const guard = new DiskGuard({
    dataDir,
    pods: () => pods.guarded(),
    meter: usageMeter(options.usageThread),
    reserve: reserveFile(dataDir),
    onPressure: (problem) => {
      options.onDiskPressure?.(problem)
      // On a full disk the API takes it once the reserve is released.
      reportDiskPressure(registration, () => guard.problem).catch((error: unknown) =>
        log.warn('disk pressure not reported', { error }),
      )
    },
    onChecked: options.onDiskChecked,
    log,
    signal: life.signal,
  })
  const guarding = ready.then(
    () => guard.run(),
    () => {}, // callers that await `ready` get the error
  )
  ready.catch(() => {}) // callers that await it still get the rejection

  let stopped: Promise<void> | undefined
  async function stop({ endPods, keeps = () => false }: NodeStopOptions): Promise<void> {
    life.abort()
    await Promise.all([
      lease,
      upkeep,
      guarding,
      sweeping,
      informer.stop(),
      policies.stop(),
      provisioner.stop(),
      ready.catch(() => {}),
    ])
    await pods.leave(shutdownGraceSeconds, (pod) => !endPods || keeps(pod))
    await events.drain()
    await reportNotReady(registration).catch((error: unknown) => log.debug('node not reported as stopped', { error }))
  }
  const agent: NodeAgent = {
    podStreams: podStreams(pods, clock),
    snapshots: snapshotStore(
      { directory: snapshots, find: (uid) => pods.sealable(uid), clock },
      options.supervisorPath,
    ),
    ready,
    stop(how) {
      stopped ??= stop(how)
      return stopped
    },
  }
  const onAbort = (): void => {
    agent.stop({ endPods: false }).catch((error: unknown) => log.error('node not stopped cleanly', { error }))
  }
  if (options.signal?.aborted) onAbort()
  options.signal?.addEventListener('abort', onAbort, { once: true })
  return agent
}

async function becomeReady(
  registration: Parameters<typeof registerNode>[0],
  sources: { informer: Informer<Pod>; policies: Informer<NetworkPolicy>; provisioner: Provisioner },
  pods: PodSet,
): Promise<void> {
  const { informer, policies, provisioner } = sources
  await Promise.all([register(registration), provisioner.ready, policies.hasSynced])
  policies.subscribe({ add: (policy) => pods.policyChanged(policy), update: (policy) => pods.policyChanged(policy) })
  informer.subscribe({
    add: (pod) => pods.observe(pod),
    update(pod, old) {
      if (pod.metadata.uid !== old.metadata.uid) pods.gone(old.metadata.uid)
      pods.observe(pod)
    },
    delete: (pod) => pods.gone(pod.metadata.uid),
  })
  await informer.hasSynced
  await pods.sweep()
}

/** A server that is just coming up is asked a few times. */
async function register(registration: Parameters<typeof registerNode>[0]): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await registerNode(registration)
      return
    } catch (error) {
      if (tries === registerTries || registration.signal.aborted) throw error
      registration.log.warn('node not registered yet', { error })
      await sleep(firstRetryMs * 2 ** tries, undefined, { signal: registration.signal })
    }
  }
}

async function repeat(work: () => Promise<void>, everyMs: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(everyMs, undefined, { signal }).catch(() => {}) // aborted: the loop ends by its condition
    if (!signal.aborted) await work()
  }
}

async function nodeFacts(options: NodeOptions): Promise<NodeFacts> {
  return {
    name: options.nodeName,
    tier: options.isolation.tier,
    hostIP: options.hostIP ?? '127.0.0.1',
    capacity: await readCapacity(options.dataDir),
    machine: readMachine(),
    kubeletPort: options.kubeletPort,
    version: options.version ?? 'v1.34.4+corral',
  }
}

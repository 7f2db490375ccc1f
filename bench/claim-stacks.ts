import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type KubeClient, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import {
  type ControlPlane,
  freePorts,
  installUpstreamCrds,
  startControlPlane,
  startUpstreamController,
} from '../tools/oracle/index.js'
import { startProgram, untilReady } from '../tools/oracle/program.js'
import { bundle } from './common/corral-process.js'
import { startWorker } from './common/worker.js'

/** An API server with a manager and an instant node: what claims are made on. */
export interface ClaimStack {
  readonly name: string
  /** The measuring client: over TLS, 16 connections. */
  readonly client: KubeClient
  readonly kubeconfig: string
  readonly managerPid: number
  /** API server, its storage, managers: everything but the node and the measuring client. */
  readonly pids: readonly number[]
  readonly versions: Readonly<Record<string, string>>
  stop(): Promise<void>
}

export type ManagerName = 'upstream' | 'corral'

export interface RealStackOptions {
  manager: ManagerName
  directory: string
  /** Added to the manager's command line; both managers know the same flags. */
  managerFlags?: readonly string[]
  apiserverFlags?: readonly string[]
}

/** A fresh kube-apiserver with etcd and controller manager, upstream's CRDs, and one of the two managers on it. */
export async function startRealStack(options: RealStackOptions): Promise<ClaimStack> {
  const stops: (() => Promise<void>)[] = []
  const stop = async (): Promise<void> => {
    for (let next = stops.pop(); next; next = stops.pop()) await next()
  }
  try {
    const plane: ControlPlane = await startControlPlane({ apiserverFlags: options.apiserverFlags ?? [] })
    stops.push(() => plane.stop())
    const { kubeconfig } = plane
    const client = await measuringClient(kubeconfig)
    stops.push(() => client.close())
    await installUpstreamCrds(client)
    const node = await startWorker(new URL('./instant-node-worker.ts', import.meta.url), [kubeconfig])
    stops.push(() => node.stop())
    const flags = options.managerFlags ?? []
    const versions: Record<string, string> = {}
    for (const { name, version, sha256 } of Object.values(plane.binaries))
      versions[name] = `${version} sha256:${sha256}`
    let managerPid: number
    if (options.manager === 'upstream') {
      const upstream = await startUpstreamController({ kubeconfig, flags, crds: false })
      stops.push(() => upstream.stop())
      versions['agent-sandbox-controller'] = `${upstream.binary.version} sha256:${upstream.binary.sha256}`
      managerPid = upstream.pid
    } else {
      const ours = await startCorralController(kubeconfig, options.directory, flags)
      stops.push(() => ours.stop())
      managerPid = ours.pid
    }
    const pids = [managerPid, ...Object.values(plane.pids)]
    return { name: `${options.manager} on real`, client, kubeconfig, managerPid, pids, versions, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** API server, manager and node in one process on SQLite, as `corral up` has them. */
export async function startEmbeddedStack(options: { directory: string; refill: boolean }): Promise<ClaimStack> {
  const dataDir = mkdtempSync(join(options.directory, 'embedded-'))
  mkdirSync(join(dataDir, 'api'), { recursive: true })
  const module = new URL('./embedded-stack-worker.ts', import.meta.url)
  const worker = await startWorker<{ kubeconfig: string }>(module, [
    dataDir,
    options.refill ? 'on' : 'off',
    join(dirname(bundle), 'journal.mjs'),
  ])
  const { kubeconfig } = worker.ready
  const client = await measuringClient(kubeconfig)
  const stop = async (): Promise<void> => {
    await client.close()
    await worker.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
  const { pid } = worker
  return { name: 'corral on embedded', client, kubeconfig, managerPid: pid, pids: [pid], versions: {}, stop }
}

/** `corral controller` from the bundle, with upstream's defaults and no election, as upstream's is started too. */
export async function startCorralController(
  kubeconfig: string,
  directory: string,
  flags: readonly string[] = [],
): Promise<{ pid: number; stop(): Promise<void> }> {
  const [metricsPort = 0, healthPort = 0] = await freePorts(2)
  const program = startProgram({
    name: 'corral controller',
    path: process.execPath,
    args: [
      bundle,
      'controller',
      `--kubeconfig=${kubeconfig}`,
      '--extensions',
      '--leader-elect=false',
      `--metrics-bind-address=127.0.0.1:${metricsPort}`,
      `--health-probe-bind-address=127.0.0.1:${healthPort}`,
      ...flags,
    ],
    logFile: join(directory, `controller-${healthPort}.log`),
  })
  const isReady = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${healthPort}/readyz`)).ok
  await untilReady('corral controller', [program], isReady, { timeoutMs: 60_000 })
  return program
}

async function measuringClient(kubeconfig: string): Promise<KubeClient> {
  const access = await loadKubeConfig({ path: kubeconfig })
  return kubeClientFromConfig(access, { userAgent: 'corral-bench', connections: 16 })
}

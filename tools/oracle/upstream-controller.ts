import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type KubeClient, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { defineKind, type KubeObject, type ResourceKind } from '@corral/resources'
import { loadAll } from 'js-yaml'
import { type EnsureOptions, ensureOracle, moduleDirectory, type OracleBinary } from './binaries.js'
import { freePorts, startProgram, untilReady } from './program.js'

export interface UpstreamControllerOptions extends EnsureOptions {
  kubeconfig: string
  /** Added to or overriding `--extensions --leader-elect=false` and the loopback addresses. */
  flags?: readonly string[]
  /** Install upstream's CRDs first. True unless said otherwise; false where a server brings its own. */
  crds?: boolean
  /** Also install upstream's ClusterRoles, as its manifest does. The controller itself runs as the kubeconfig's user. */
  rbac?: boolean
  keepFiles?: boolean
}

/** Upstream's unmodified agent-sandbox controller, working on some API server. */
export interface UpstreamController {
  readonly binary: OracleBinary
  readonly pid: number
  readonly logFile: string
  /** Metrics in Prometheus' text form. */
  readonly metricsUrl: string
  stop(): Promise<void>
}

/** Installs what the controller needs, starts it, and resolves once it reports ready. */
export async function startUpstreamController(options: UpstreamControllerOptions): Promise<UpstreamController> {
  const { 'agent-sandbox-controller': binary } = await ensureOracle(['agent-sandbox-controller'], options)
  const client = kubeClientFromConfig(await loadKubeConfig({ path: options.kubeconfig }))
  try {
    if (options.crds !== false) await installUpstreamCrds(client)
    if (options.rbac)
      await applyFiles(client, await upstreamManifests(['rbac.generated.yaml', 'extensions-rbac.generated.yaml']))
  } finally {
    await client.close()
  }
  const directory = mkdtempSync(join(tmpdir(), 'corral-upstream-'))
  const logFile = join(directory, 'controller.log')
  const [metricsPort = 0, healthPort = 0] = await freePorts(2)
  const program = startProgram({
    name: 'agent-sandbox-controller',
    path: binary.path,
    args: [
      `--kubeconfig=${options.kubeconfig}`,
      '--extensions',
      '--leader-elect=false',
      `--metrics-bind-address=127.0.0.1:${metricsPort}`,
      `--health-probe-bind-address=127.0.0.1:${healthPort}`,
      ...(options.flags ?? []),
    ],
    logFile,
  })
  const stop = async (): Promise<void> => {
    await program.stop()
    if (!options.keepFiles) rmSync(directory, { recursive: true, force: true })
  }
  try {
    const isReady = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${healthPort}/readyz`)).ok
    await untilReady('agent-sandbox-controller', [program], isReady, { timeoutMs: 240_000, signal: options.signal })
  } catch (error) {
    await stop()
    throw error
  }
  return { binary, pid: program.pid, logFile, metricsUrl: `http://127.0.0.1:${metricsPort}/metrics`, stop }
}

/** Upstream's four CRDs, straight from its Go module: applied on the server, then awaited until established. */
export async function installUpstreamCrds(client: KubeClient): Promise<void> {
  const directory = join(await upstreamDirectory(), 'k8s', 'crds')
  const files = readdirSync(directory).filter((name) => name.endsWith('.yaml'))
  const crds = files.flatMap((name) => readManifests(join(directory, name)))
  await applyFiles(client, crds)
  const waiting = new Set(crds.map((crd) => crd.metadata.name))
  const deadline = Date.now() + 240_000
  while (waiting.size > 0) {
    for (const name of [...waiting]) {
      const crd = await client.get(definitions, { name })
      if (crd.status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True'))
        waiting.delete(name)
    }
    if (Date.now() > deadline) throw new Error(`not established: ${[...waiting].join(', ')}`)
    if (waiting.size > 0) await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Where upstream's sources, manifests and examples lie. */
export function upstreamDirectory(): Promise<string> {
  return moduleDirectory('agent-sandbox', 'sigs.k8s.io/agent-sandbox')
}

interface Manifest extends KubeObject {
  metadata: { name: string; namespace?: string }
}

interface Definition extends KubeObject {
  status?: { conditions?: { type: string; status: string }[] }
}

const definitions = defineKind<Definition>(
  'apiextensions.k8s.io/v1',
  'CustomResourceDefinition',
  'customresourcedefinitions',
  'Cluster',
)
const kinds: Readonly<Record<string, ResourceKind<KubeObject>>> = {
  CustomResourceDefinition: definitions,
  ClusterRole: defineKind('rbac.authorization.k8s.io/v1', 'ClusterRole', 'clusterroles', 'Cluster'),
}

async function upstreamManifests(names: readonly string[]): Promise<Manifest[]> {
  const directory = join(await upstreamDirectory(), 'k8s')
  return names.flatMap((name) => readManifests(join(directory, name)))
}

function readManifests(path: string): Manifest[] {
  return loadAll(readFileSync(path, 'utf8')).filter((document) => document) as Manifest[] // upstream's own files
}

async function applyFiles(client: KubeClient, objects: readonly Manifest[]): Promise<void> {
  for (const object of objects) {
    const kind = kinds[object.kind ?? '']
    if (kind) await client.apply(kind, object, { fieldManager: 'corral-oracle', force: true })
  }
}

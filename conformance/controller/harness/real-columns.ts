import { createHash } from 'node:crypto'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type KubeClient, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { ClusterRoleBindings, CustomResourceDefinitions, crdManifests, ServiceAccounts } from '@corral/resources'
import {
  type ControlPlane,
  freePorts,
  installUpstreamCrds,
  startControlPlane,
  startUpstreamController,
  upstreamDirectory,
} from '../../../tools/oracle/index.js'
import { startProgram, untilReady } from '../../../tools/oracle/program.js'
import { auditLog } from './audit-log.js'
import type { Column } from './column.js'
import { type Account, accountKubeconfig, applyPermissions, ensureNamespace } from './service-account.js'

const repository = join(import.meta.dirname, '../../..')
const tsxLoader = createRequire(import.meta.url).resolve('tsx')

/** `corral controller` as a process of its own on a real kube-apiserver, with no more rights than `config/rbac` gives. */
export async function startOursReal(): Promise<Column> {
  const account = { namespace: 'corral-system', name: 'corral-controller' }
  const base = await startPlane('ours')
  const { plane, client } = base
  await installOurCrds(client)
  for (const file of ['service-account', 'controller', 'extensions', 'leader-election'])
    await applyPermissions(client, join(repository, 'config/rbac', `${file}.yaml`))
  const kubeconfig = await accountKubeconfig(client, plane, account)
  return {
    id: 'ours-real',
    title: 'ours, real API',
    client,
    facts: { ...base.facts, manager: { name: 'corral controller', node: process.version, ...sourceHash() } },
    calls: () => base.callsOf(account),
    close: base.close,
    async startManager(flags) {
      const [metricsPort = 0, healthPort = 0] = await freePorts(2)
      const program = startProgram({
        name: 'corral-controller',
        path: process.execPath,
        args: [
          ...['--conditions=corral-source', '--import', tsxLoader, join(repository, 'packages/cli/src/corral.ts')],
          ...['controller', `--kubeconfig=${kubeconfig}`, '--extensions'],
          `--metrics-bind-address=127.0.0.1:${metricsPort}`,
          `--health-probe-bind-address=127.0.0.1:${healthPort}`,
          ...['--leader-elect=true', `--leader-election-namespace=${account.namespace}`, ...flags],
        ],
        logFile: join(plane.directory, 'logs', 'corral-controller.log'),
      })
      const isReady = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${healthPort}/readyz`)).ok
      await untilReady('corral-controller', [program], isReady, { timeoutMs: 60_000, signal: undefined })
      return { stop: () => program.stop() }
    },
  }
}

/** Upstream's unmodified controller on a real kube-apiserver, with the rights of its own manifests. */
export async function startUpstreamReal(): Promise<Column> {
  const account = { namespace: 'agent-sandbox-system', name: 'agent-sandbox-controller' }
  const base = await startPlane('upstream')
  const { plane, client } = base
  await installUpstreamCrds(client)
  await ensureNamespace(client, account.namespace)
  const manifests = join(await upstreamDirectory(), 'k8s')
  await client.create(ServiceAccounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: account })
  for (const [file, role] of [
    ['rbac.generated.yaml', 'agent-sandbox-controller'],
    ['extensions-rbac.generated.yaml', 'agent-sandbox-controller-extensions'],
  ] as const) {
    await applyPermissions(client, join(manifests, file))
    await bind(client, role, account)
  }
  const kubeconfig = await accountKubeconfig(client, plane, account)
  const facts: Record<string, unknown> = { ...base.facts }
  return {
    id: 'upstream',
    title: 'upstream, real API',
    client,
    facts,
    calls: () => base.callsOf(account),
    close: base.close,
    async startManager(flags) {
      const election = ['--leader-elect=true', `--leader-election-namespace=${account.namespace}`]
      const manager = await startUpstreamController({ kubeconfig, crds: false, flags: [...election, ...flags] })
      const { name, version, sha256 } = manager.binary
      facts.manager = { name, version, sha256 }
      return manager
    },
  }
}

interface Plane {
  plane: ControlPlane
  client: KubeClient
  facts: Record<string, unknown>
  callsOf(account: Account): ReturnType<ReturnType<typeof auditLog>['callsOf']>
  close(): Promise<void>
}

async function startPlane(name: string): Promise<Plane> {
  const directory = mkdtempSync(join(tmpdir(), 'corral-judge-'))
  const audit = auditLog(directory)
  // Clusters that check who may block a deletion make `update` on finalizers a real permission.
  const admission = '--enable-admission-plugins=OwnerReferencesPermissionEnforcement'
  const plane = await startControlPlane({ directory, apiserverFlags: [...audit.flags, admission] })
  const client = kubeClientFromConfig(await loadKubeConfig({ path: plane.kubeconfig }))
  const binaries = Object.values(plane.binaries).map(({ name, version, sha256 }) => ({ name, version, sha256 }))
  return {
    plane,
    client,
    facts: { binaries },
    callsOf: ({ namespace, name }) => audit.callsOf(`system:serviceaccount:${namespace}:${name}`),
    async close() {
      await client.close()
      const kept = join(repository, 'conformance/results', `logs-${name}`)
      cpSync(join(directory, 'logs'), kept, { recursive: true })
      await plane.stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

async function installOurCrds(client: KubeClient): Promise<void> {
  const crds = crdManifests('cluster')
  for (const crd of crds)
    await client.apply(CustomResourceDefinitions, crd, { fieldManager: 'conformance', force: true })
  const deadlineMs = Date.now() + 30_000
  for (const name of crds.map(({ metadata }) => metadata?.name ?? '')) {
    for (;;) {
      const { status } = await client.get(CustomResourceDefinitions, { name })
      if (status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True')) break
      if (Date.now() > deadlineMs) throw new Error(`${name} is not established`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

async function bind(client: KubeClient, role: string, account: Account): Promise<void> {
  await client.create(ClusterRoleBindings, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: role },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'ServiceAccount', ...account }],
  })
}

function sourceHash(): { sha256: string } {
  const lock = readFileSync(join(repository, 'packages/controllers/src/manager.ts'))
  return { sha256: createHash('sha256').update(lock).digest('hex') }
}

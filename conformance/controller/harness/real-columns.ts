import { createHash } from 'node:crypto'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type KubeClient, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { ClusterRoleBindings, ServiceAccounts } from '@corral/resources'
import {
  type ControlPlane,
  installUpstreamCrds,
  startControlPlane,
  startUpstreamController,
  upstreamDirectory,
} from '../../../tools/oracle/index.js'
import { auditLog } from './audit-log.js'
import type { Column } from './column.js'
import { installOurManager, ourAccount } from './our-manager.js'
import { type Account, accountKubeconfig, applyPermissions, ensureNamespace } from './service-account.js'

const repository = join(import.meta.dirname, '../../..')

/** `corral controller` as a process of its own on a real kube-apiserver, with no more rights than `config/rbac` gives. */
export async function startOursReal(): Promise<Column> {
  const base = await startPlane('ours')
  const { plane, client } = base
  const startManager = await installOurManager(plane, client)
  return {
    id: 'ours-real',
    title: 'ours, real API',
    client,
    facts: { ...base.facts, manager: { name: 'corral controller', node: process.version, ...sourceHash() } },
    calls: () => base.callsOf(ourAccount),
    close: base.close,
    startManager,
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

async function bind(client: KubeClient, role: string, account: Account): Promise<void> {
  await client.create(ClusterRoleBindings, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: role },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'ServiceAccount', ...account }],
  })
}

/** One hash over the controllers' sources, whatever their files are called. */
function sourceHash(): { sha256: string } {
  const sources = join(repository, 'packages/controllers/src')
  const hash = createHash('sha256')
  for (const path of readdirSync(sources, { recursive: true, encoding: 'utf8' }).sort()) {
    if (path.endsWith('.ts')) hash.update(path).update(readFileSync(join(sources, path)))
  }
  return { sha256: hash.digest('hex') }
}

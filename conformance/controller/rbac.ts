/**
 * Whether every permission of `config/rbac` is needed: each is taken away in turn, the manager started anew on a real
 * kube-apiserver, and the smallest thing that needs it must then fail to happen. `npm run conformance:rbac`.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import {
  type KubeObject,
  type ResourceKind,
  SandboxClaims,
  Sandboxes,
  SandboxTemplates,
  SandboxWarmPools,
} from '@corral/resources'
import { findGo, startControlPlane } from '../../tools/oracle/index.js'
import { type Activity, startActivity } from './harness/activity.js'
import { installOurManager, type OurManager, ourAccount } from './harness/our-manager.js'
import { applyRoles, grantsOf, ourRoles, withoutGrant } from './harness/our-roles.js'
import { type PermissionProbe, permissionProbes } from './harness/permission-probes.js'
import { Scene } from './harness/scene.js'
import { type ScriptedNode, startScriptedNode } from './harness/scripted-node.js'
import { ensureNamespace } from './harness/service-account.js'

const { values: options } = parseArgs({ options: { only: { type: 'string' } } })
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
process.exitCode = await main()

interface Row {
  readonly grant: string
  readonly probe: string
  /** What became of the probe without the permission; undefined when it happened all the same. */
  readonly failure: string | undefined
}

type Client = ReturnType<typeof kubeClientFromConfig>

async function main(): Promise<number> {
  if (!(await findGo())) {
    process.stderr.write('conformance: Go is not installed, so there is no real Kubernetes to ask; skipped\n')
    return 0
  }
  const missing = grantsOf(ourRoles()).filter((grant) => !permissionProbes.some(({ grants }) => grants.includes(grant)))
  for (const grant of missing) process.stdout.write(`NO  ${grant}: no probe\n`)
  const plane = await startControlPlane({
    apiserverFlags: [
      // Clusters that guard owner references, and servers that cannot stream a list, need more than others.
      '--enable-admission-plugins=OwnerReferencesPermissionEnforcement',
      '--feature-gates=WatchList=false',
    ],
  })
  const client = kubeClientFromConfig(await loadKubeConfig({ path: plane.kubeconfig }))
  try {
    const startManager = await installOurManager(plane, client)
    const node = await startScriptedNode(client)
    const activity = await startActivity(client)
    try {
      const rows = await takeAway({ client, node, activity, startManager })
      writeResults(rows)
      const needless = rows.filter(({ failure }) => failure === undefined)
      process.stdout.write(`${rows.length} permissions, ${rows.length - needless.length} needed\n`)
      return needless.length + missing.length > 0 ? 1 : 0
    } finally {
      await node.stop()
      await activity.stop()
    }
  } finally {
    await client.close()
    await plane.stop()
  }
}

interface Judge {
  client: Client
  node: ScriptedNode
  activity: Activity
  startManager: (flags: readonly string[]) => Promise<OurManager>
}

async function takeAway(judge: Judge): Promise<Row[]> {
  const roles = ourRoles()
  const rows: Row[] = []
  let count = 0
  for (const probe of permissionProbes) {
    const grants = probe.grants.filter((grant) => !options.only || grant.includes(options.only))
    if (grants.length === 0) continue
    const startedMs = Date.now()
    const control = await attempt(judge, probe, `p-${++count}`, 60_000)
    if (control !== undefined) throw new Error(`with every permission: ${probe.title}: ${control}`)
    // What takes that much longer does not happen.
    const patienceMs = 2_000 + 2 * (Date.now() - startedMs)
    for (const grant of grants) {
      await applyRoles(judge.client, withoutGrant(roles, grant), { account: ourAccount, grant, allowed: false })
      const failure = await attempt(judge, probe, `p-${++count}`, patienceMs)
      await applyRoles(judge.client, roles, { account: ourAccount, grant, allowed: true })
      rows.push({ grant, probe: probe.title, failure })
      process.stdout.write(`${failure === undefined ? 'NO ' : 'yes'} ${grant}: ${probe.title}\n`)
    }
  }
  return rows
}

/** Plays a probe under a manager of its own. Answers why it failed, or undefined. */
async function attempt(
  { client, node, activity, startManager }: Judge,
  probe: PermissionProbe,
  namespace: string,
  patienceMs: number,
): Promise<string | undefined> {
  await ensureNamespace(client, namespace)
  const lifetime = new AbortController()
  const scene = new Scene({ client, node, activity, namespace, quietMs: 0, signal: lifetime.signal })
  await probe.prepare?.(scene)
  let manager: OurManager
  const timer = setTimeout(() => lifetime.abort(new Error(`not within ${patienceMs} ms`)), patienceMs)
  try {
    manager = await startManager(probe.flags)
  } catch (error) {
    clearTimeout(timer)
    return (error as Error).message
  }
  try {
    await probe.run(scene)
    return undefined
  } catch (error) {
    return lifetime.signal.aborted ? (lifetime.signal.reason as Error).message : (error as Error).message
  } finally {
    clearTimeout(timer)
    await manager.stop()
    // What a manager without rights could not finish must not busy the next one.
    await tidy(client, namespace)
  }
}

async function tidy(client: Client, namespace: string): Promise<void> {
  const kinds: readonly ResourceKind<KubeObject>[] = [SandboxClaims, SandboxWarmPools, SandboxTemplates, Sandboxes]
  for (const kind of kinds)
    for (const { metadata } of (await client.list(kind, { namespace })).items)
      await client.delete(kind, { name: metadata.name, namespace }).catch(() => {}) // gone with its owner
}

function writeResults(rows: readonly Row[]): void {
  const directory = join(import.meta.dirname, '../results')
  mkdirSync(directory, { recursive: true })
  writeFileSync(
    join(directory, `rbac-${new Date().toISOString().replaceAll(':', '-')}.json`),
    `${JSON.stringify(rows, null, 1)}\n`,
  )
}

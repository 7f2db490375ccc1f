import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { KubeClient } from '@corral/kube'
import {
  AgentTasks,
  ClusterRoleBindings,
  ClusterRoles,
  CustomResourceDefinitions,
  Deployments,
  isNotFound,
  type KubeObject,
  Namespaces,
  NetworkPolicies,
  PersistentVolumeClaims,
  PodDisruptionBudgets,
  type ResourceKind,
  RoleBindings,
  Roles,
  SandboxTemplates,
  SandboxWarmPools,
  Secrets,
  ServiceAccounts,
  Services,
} from '@corral/resources'
import { CliError } from '../cli-error.js'
import { serverLabels } from './server-objects.js'

const kinds: readonly ResourceKind<KubeObject>[] = [
  AgentTasks,
  ClusterRoleBindings,
  ClusterRoles,
  CustomResourceDefinitions,
  Deployments,
  Namespaces,
  NetworkPolicies,
  PersistentVolumeClaims,
  PodDisruptionBudgets,
  RoleBindings,
  Roles,
  SandboxTemplates,
  SandboxWarmPools,
  Secrets,
  ServiceAccounts,
  Services,
] as readonly ResourceKind<KubeObject>[]

/** One object of an installation and what becomes of it. */
export interface PlannedObject {
  readonly action: 'create' | 'apply'
  readonly kind: string
  readonly name: string
  readonly object: KubeObject
}

/** What an installation would do to the cluster as it is. Changes nothing. */
export async function planInstall(client: KubeClient, manifests: readonly object[]): Promise<PlannedObject[]> {
  const planned: PlannedObject[] = []
  for (const manifest of manifests) {
    const object = manifest as KubeObject // built by this package
    const { name = '' } = object.metadata ?? {}
    const exists = await client.find(kindOf(object), refOf(object)).catch((error: unknown) => {
      if (isNotFound(error)) return undefined // not even its kind is there
      throw error
    })
    planned.push({ action: exists ? 'apply' : 'create', kind: object.kind ?? '', name, object })
  }
  return planned
}

/** The Secret of the server, made once: who has the token keeps it. Undefined where there is one. */
export async function newServerSecret(client: KubeClient, namespace: string): Promise<object | undefined> {
  const name = 'corral-server'
  const exists = await client.find(Secrets, { namespace, name })
  if (exists) return undefined
  const secret = (): string => randomBytes(32).toString('hex')
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace, labels: serverLabels },
    type: 'Opaque',
    stringData: { token: secret(), 'broker-secret': secret() },
  }
}

const fieldManager = 'corral-install'

/** Applies in order. Kinds are served before their first object is sent. Safe to repeat. */
export async function applyObjects(
  client: KubeClient,
  planned: readonly PlannedObject[],
  options: { say(line: string): void; timeoutMs: number },
): Promise<void> {
  const deadlineMs = Date.now() + options.timeoutMs
  for (const { object, kind, name } of planned) {
    await client.apply(kindOf(object), object, { fieldManager, force: true })
    options.say(`${kind} ${name} applied`)
    if (kind === 'CustomResourceDefinition') await untilEstablished(client, name, deadlineMs)
  }
}

async function untilEstablished(client: KubeClient, name: string, deadlineMs: number): Promise<void> {
  for (;;) {
    const { status } = await client.get(CustomResourceDefinitions, { name })
    if (status?.conditions?.some(({ type, status: is }) => type === 'Established' && is === 'True')) return
    await pauseUntil(deadlineMs, `CustomResourceDefinition ${name} is not served`)
  }
}

/** Resolves once every Deployment among the objects has its pods; tells what each waits for. */
export async function untilAvailable(
  client: KubeClient,
  planned: readonly PlannedObject[],
  options: { say(line: string): void; timeoutMs: number },
): Promise<void> {
  const deadlineMs = Date.now() + options.timeoutMs
  for (const { object, name } of planned.filter(({ kind }) => kind === 'Deployment')) {
    for (;;) {
      const { spec, status, metadata } = await client.get(Deployments, refOf(object))
      const isSeen = (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0)
      if (isSeen && (status?.availableReplicas ?? 0) >= (spec?.replicas ?? 1)) break
      const why = status?.conditions?.find(({ type }) => type === 'Available')?.message ?? 'its pods do not run yet'
      await pauseUntil(deadlineMs, `Deployment ${name} is not available: ${why}`)
    }
    options.say(`Deployment ${name} is available`)
  }
}

async function pauseUntil(deadlineMs: number, problem: string): Promise<void> {
  if (Date.now() > deadlineMs)
    throw new CliError(problem, {
      exitCode: 3,
      hint: 'What was applied stays. Read `kubectl get events` in the namespace, then install again.',
    })
  await pause(500)
}

function kindOf({ apiVersion, kind }: KubeObject): ResourceKind<KubeObject> {
  const known = kinds.find((each) => each.apiVersion === apiVersion && each.kind === kind)
  if (!known) throw new TypeError(`an installation has no ${apiVersion} ${kind}`)
  return known
}

function refOf({ metadata }: KubeObject): { name: string; namespace?: string } {
  const { name = '', namespace } = metadata ?? {}
  return { name, ...(namespace ? { namespace } : {}) }
}

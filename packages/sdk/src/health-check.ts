import type { KubeClient } from '@corral/kube'
import { anySignal } from '@corral/protocol'
import {
  Deployments,
  defineKind,
  errorCode,
  type KubeObject,
  Leases,
  Namespaces,
  Nodes,
  RuntimeClasses,
  SandboxWarmPools,
  SelfSubjectAccessReviews,
} from '@corral/resources'
import { SandboxError } from './sandbox-error.js'
import { timeLimit, timeSignal } from './time-limit.js'

/** Something that is wrong or could not be looked at, and what to do about it. */
export interface HealthProblem {
  readonly check: string
  readonly message: string
  readonly remedy: string
}

/** What the SDK needs of a cluster, and what of it is there. What could not be looked at is absent and a problem. */
export interface ClusterHealth {
  /** The kinds are served and the namespace exists. */
  readonly healthy: boolean
  readonly crdRegistered: boolean
  /** Versions that are served, by API group. */
  readonly crdVersions: Readonly<Record<string, readonly string[]>>
  readonly namespace: string
  /** Also true where it may not be read, but claims may be made in it; then a problem says so. */
  readonly namespaceExists: boolean
  /** A controller was found; false also where we may not look. */
  readonly controllerInstalled: boolean
  readonly controllerVersion?: string
  readonly clusterVersion?: string
  /** Whether we may, by `verb resource`. */
  readonly permissions: Readonly<Record<string, boolean>>
  readonly runtimeClasses: readonly string[]
  readonly warmPools: readonly { readonly name: string; readonly replicas: number; readonly ready: number }[]
  /** Whether NetworkPolicies have an effect; absent where nothing tells. */
  readonly networkPolicyEnforced?: boolean
  readonly problems: readonly HealthProblem[]
  /** Why the cluster could not be asked at all. */
  readonly error?: string
}

const leaseName = 'a3317529.agent-sandbox.x-k8s.io'
const controllerLabel = 'app=agent-sandbox-controller'
const checkTimeoutMs = 5_000
const groups = ['agents.x-k8s.io', 'extensions.agents.x-k8s.io'] as const
const needed = [
  ['create', 'extensions.agents.x-k8s.io', 'sandboxclaims', ''],
  ['watch', 'extensions.agents.x-k8s.io', 'sandboxclaims', ''],
  ['delete', 'extensions.agents.x-k8s.io', 'sandboxclaims', ''],
  ['get', 'agents.x-k8s.io', 'sandboxes', ''],
] as const
/** Only for who reaches pods through the API server. */
const neededThroughApi = [
  ['create', '', 'pods', 'portforward'],
  ['create', '', 'pods', 'exec'],
] as const
const DaemonSetKind = defineKind<KubeObject>('apps/v1', 'DaemonSet', 'daemonsets')
const enforcing = /^(calico-node|cilium|antrea-agent|weave-net|kube-router|canal|ovnkube-node)/

export interface HealthCheckOptions {
  signal?: AbortSignal
  /** Of every look by itself; five seconds without it. */
  timeoutMs?: number
  /** Pods are reached by their address, so that no right to forward ports or to run commands is needed. */
  isByAddress?: boolean
}

/** Looks at the cluster, every look by itself. Never rejects: what fails is told as a problem. */
export async function checkHealth(
  kube: KubeClient,
  namespace: string,
  options: HealthCheckOptions = {},
): Promise<ClusterHealth> {
  const { timeoutMs = checkTimeoutMs } = options
  const rights = options.isByAddress ? needed : [...needed, ...neededThroughApi]
  timeLimit(timeoutMs)
  const problems: HealthProblem[] = []
  const look = async <T>(check: string, remedy: string, fallback: T, call: (signal: AbortSignal) => Promise<T>) => {
    const limit = timeSignal(timeoutMs)
    try {
      return await call(options.signal ? anySignal([options.signal, limit]) : limit)
    } catch (error) {
      problems.push({
        check,
        message: limit.aborted ? `no answer within ${timeoutMs / 1000} s` : reasonOf(error),
        remedy,
      })
      return fallback
    }
  }
  const may = 'Ask for the permission to look, or ignore this.'
  const reach = 'Check that the cluster runs and that the kubeconfig names it.'
  const [clusterVersion, crdVersions, isFound, controller, permissions, runtimeClasses, warmPools, enforced] =
    await Promise.all([
      look('clusterVersion', reach, undefined, (signal) => versionOf(kube, signal)),
      look('crdVersions', reach, {}, (signal) => servedVersions(kube, signal)),
      look<boolean | undefined>('namespaceExists', may, undefined, async (signal) => {
        return (await kube.find(Namespaces, { name: namespace }, { signal })) !== undefined
      }),
      look('controllerInstalled', may, { controllerInstalled: false }, (signal) =>
        findController(kube, namespace, signal),
      ),
      look('permissions', may, {}, (signal) => permissionsIn(kube, namespace, rights, signal)),
      look('runtimeClasses', may, [], async (signal) => {
        return (await kube.list(RuntimeClasses, { signal })).items.map(({ metadata }) => metadata.name)
      }),
      look('warmPools', 'Install the Agent Sandbox kinds with extensions.', [], (signal) =>
        poolsIn(kube, namespace, signal),
      ),
      look('networkPolicyEnforced', may, undefined, (signal) => enforcesPolicies(kube, signal)),
    ])
  // Who has rights in one namespace alone may seldom read the Namespace itself, and works in it all the same.
  const namespaceExists = isFound ?? permissions['create sandboxclaims'] === true
  const crdRegistered = groups.every((group) => (crdVersions[group]?.length ?? 0) > 0)
  const isAnswering = clusterVersion !== undefined || crdRegistered
  const missing = problems.find(({ check }) => check === 'clusterVersion')
  const wrong = (isWrong: boolean, check: string, message: string, remedy: string) =>
    isWrong && isAnswering ? [{ check, message, remedy }] : []
  const refused = Object.entries(permissions).flatMap(([what, isAllowed]) => (isAllowed ? [] : [what]))
  return {
    healthy: crdRegistered && namespaceExists,
    crdRegistered,
    crdVersions,
    namespace,
    namespaceExists,
    ...controller,
    ...(clusterVersion === undefined ? {} : { clusterVersion }),
    permissions,
    runtimeClasses,
    warmPools,
    ...(enforced === undefined ? {} : { networkPolicyEnforced: enforced }),
    problems: [
      ...problems,
      ...wrong(
        !crdRegistered,
        'crdRegistered',
        'the Agent Sandbox kinds are not served',
        'Install the controller with its CRDs.',
      ),
      ...wrong(
        !namespaceExists,
        'namespaceExists',
        `there is no namespace "${namespace}"`,
        `Create namespace "${namespace}".`,
      ),
      ...wrong(
        !controller.controllerInstalled,
        'controllerInstalled',
        'no controller was found',
        'Install or start the controller.',
      ),
      ...wrong(
        refused.length > 0,
        'permissions',
        `not allowed: ${refused.join(', ')}`,
        'Bind a Role with these verbs to the user.',
      ),
    ],
    ...(isAnswering || !missing ? {} : { error: missing.message }),
  }
}

async function versionOf(kube: KubeClient, signal: AbortSignal): Promise<string | undefined> {
  const { body } = await kube.raw('/version', { signal })
  return (body as { gitVersion?: string } | undefined)?.gitVersion
}

async function servedVersions(kube: KubeClient, signal: AbortSignal): Promise<Record<string, string[]>> {
  const candidates = groups.flatMap((group) => ['v1', 'v1beta1', 'v1alpha1'].map((version) => ({ group, version })))
  const answers = await Promise.all(
    candidates.map(async ({ group, version }) => ({
      group,
      version,
      isServed: (await answerStatus(kube, `/apis/${group}/${version}`, signal)) === 200,
    })),
  )
  const served: Record<string, string[]> = {}
  for (const { group, version, isServed } of answers) if (isServed) served[group] = [...(served[group] ?? []), version]
  return served
}

async function answerStatus(kube: KubeClient, path: string, signal: AbortSignal): Promise<number> {
  try {
    const { status, body } = await kube.raw(path, { signal })
    // A page is not the list of what is served.
    if (status === 200 && (typeof body !== 'object' || body === null))
      throw new SandboxError('ProtocolViolation', `${path}: the answer is no JSON: is this an API server?`)
    return status
  } catch (error) {
    if (error instanceof Error && 'status' in error && typeof error.status === 'number') return error.status
    throw error
  }
}

async function permissionsIn(
  kube: KubeClient,
  namespace: string,
  rights: readonly (readonly [verb: string, group: string, resource: string, subresource: string])[],
  signal: AbortSignal,
): Promise<Record<string, boolean>> {
  const answers = await Promise.all(
    rights.map(async ([verb, group, resource, subresource]) => {
      const resourceAttributes = { namespace, verb, group, resource, ...(subresource ? { subresource } : {}) }
      const { status } = await kube.create(SelfSubjectAccessReviews, { spec: { resourceAttributes } }, { signal })
      return [`${verb} ${resource}${subresource ? `/${subresource}` : ''}`, status?.allowed === true] as const
    }),
  )
  return Object.fromEntries(answers)
}

async function poolsIn(kube: KubeClient, namespace: string, signal: AbortSignal): Promise<ClusterHealth['warmPools']> {
  const { items } = await kube.list(SandboxWarmPools, { namespace, signal })
  return items.map(({ metadata, spec, status }) => ({
    name: metadata.name,
    replicas: spec.replicas ?? 1,
    ready: status?.readyReplicas ?? 0,
  }))
}

/** By the network's own agents; Corral's node enforces by itself. Nothing known is no answer. */
async function enforcesPolicies(kube: KubeClient, signal: AbortSignal): Promise<boolean | undefined> {
  const { items: nodes } = await kube.list(Nodes, { signal })
  if (nodes.some(({ status }) => /corral/i.test(status?.nodeInfo?.kubeletVersion ?? ''))) return true
  const { items } = await kube.list(DaemonSetKind, { signal })
  return items.some(({ metadata }) => enforcing.test(metadata.name)) ? true : undefined
}

/** A Deployment tells the version; its Lease, or a pool it has reported on, that some controller runs, wherever that is. */
async function findController(
  kube: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<{ controllerInstalled: boolean; controllerVersion?: string }> {
  try {
    return await findControllerAnywhere(kube, signal)
  } catch (error) {
    // Who may look into one namespace alone still sees whether a controller reports on the pools there.
    if (errorCode(error) !== 'Forbidden' || !(await hasReportedPool(kube, signal, namespace))) throw error
    return { controllerInstalled: true }
  }
}

async function findControllerAnywhere(
  kube: KubeClient,
  signal: AbortSignal,
): Promise<{ controllerInstalled: boolean; controllerVersion?: string }> {
  const deployments = await kube.list(Deployments, { signal, labelSelector: controllerLabel })
  const image = deployments.items[0]?.spec?.template?.spec?.containers?.[0]?.image
  if (deployments.items.length > 0) {
    const version = image?.includes(':') ? image.slice(image.lastIndexOf(':') + 1) : undefined
    return { controllerInstalled: true, ...(version === undefined ? {} : { controllerVersion: version }) }
  }
  const leases = await kube.list(Leases, { signal, fieldSelector: `metadata.name=${leaseName}` })
  if (leases.items.length > 0) return { controllerInstalled: true }
  // A controller inside another program, as `corral up` has it, leaves neither; what it has reported on, it leaves.
  return { controllerInstalled: await hasReportedPool(kube, signal) }
}

async function hasReportedPool(kube: KubeClient, signal: AbortSignal, namespace?: string): Promise<boolean> {
  const { items } = await kube.list(SandboxWarmPools, { signal, limit: 50, ...(namespace ? { namespace } : {}) })
  return items.some(({ metadata, status }) => status?.observedGeneration === metadata.generation)
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

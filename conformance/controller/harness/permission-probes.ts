import {
  defineKind,
  EventsV1,
  type KubeObject,
  Leases,
  NetworkPolicies,
  PersistentVolumeClaims,
  Pods,
  SandboxClaims,
  Sandboxes,
  SandboxTemplates,
  SandboxWarmPools,
  Services,
  type Stored,
} from '@corral/resources'
import {
  adoptableLabel,
  assignment,
  claim,
  headless,
  inSeconds,
  pod,
  pool,
  sandbox,
  storage,
  template,
} from '../scenarios/objects.js'
import { ourAccount } from './our-manager.js'
import type { Scene } from './scene.js'

const leaseName = 'a3317529.agent-sandbox.x-k8s.io'

interface ResourceQuota extends KubeObject {
  spec: { hard: Record<string, string> }
}

/** The least that must happen for a permission to matter: it happens with every right and not without one of `grants`. */
export interface PermissionProbe {
  readonly title: string
  /** `verb group/resource`, the group of the core API being empty. */
  readonly grants: readonly string[]
  readonly flags: readonly string[]
  /** Before the manager starts. */
  prepare?(scene: Scene): Promise<void>
  run(scene: Scene): Promise<void>
}

const on = (resource: string, ...verbs: string[]): string[] => verbs.map((verb) => `${verb} ${resource}`)
const agents = (resource: string): string => `agents.x-k8s.io/${resource}`
const extensions = (resource: string): string => `extensions.agents.x-k8s.io/${resource}`
const policies = 'networking.k8s.io/networkpolicies'
const quotas = defineKind<ResourceQuota>('v1', 'ResourceQuota', 'resourcequotas')
const adoptable = { labels: { [adoptableLabel]: 'true' } }
const alone = ['--leader-elect=false']
const isOwned = ({ metadata }: Stored<KubeObject>): boolean => (metadata.ownerReferences?.length ?? 0) > 0

async function coldPool(scene: Scene): Promise<void> {
  await scene.create(SandboxTemplates, template())
  await scene.create(SandboxWarmPools, pool('pool', 0))
}

async function takesTheLease(scene: Scene): Promise<void> {
  await scene.create(Sandboxes, sandbox('box'))
  await scene.readySandbox('box')
}

const probe = (
  title: string,
  grants: readonly string[],
  run: (scene: Scene) => Promise<void>,
  more: Partial<PermissionProbe> = {},
): PermissionProbe => ({ title, grants, run, flags: alone, ...more })

/** One row per group of permissions; a test of this suite keeps it complete. */
export const permissionProbes: readonly PermissionProbe[] = [
  probe(
    'a Sandbox with a Service and a volume becomes Ready',
    [
      ...on('/pods', 'create', 'list', 'watch'),
      ...on('/services', 'create', 'list', 'watch'),
      ...on('/persistentvolumeclaims', 'create', 'list', 'watch'),
      ...on(agents('sandboxes'), 'list', 'watch'),
      ...on(agents('sandboxes/status'), 'patch'),
      ...on(agents('sandboxes/finalizers'), 'update'),
    ],
    async (scene) => {
      const volumeClaimTemplates = [{ metadata: { name: 'data' }, spec: storage }]
      await scene.create(Sandboxes, sandbox('box', { service: true, volumeClaimTemplates }))
      await scene.readySandbox('box')
      await scene.get(PersistentVolumeClaims, 'data-box')
    },
  ),
  probe('an adoptable Pod is adopted', on('/pods', 'patch'), async (scene) => {
    await scene.create(Pods, pod('box', adoptable))
    await scene.create(Sandboxes, sandbox('box'))
    await scene.until(Pods, 'box', isOwned)
  }),
  probe('suspending a Sandbox ends its Pod', on('/pods', 'delete'), async (scene) => {
    await scene.create(Sandboxes, sandbox('box'))
    await scene.readySandbox('box')
    await scene.merge(Sandboxes, 'box', { spec: { operatingMode: 'Suspended' } })
    await scene.gone(Pods, 'box')
  }),
  probe(
    'a Pod that the manager does not watch is found when its name is taken',
    on('/pods', 'get'),
    async (scene) => {
      await scene.create(Pods, pod('box', adoptable))
      await scene.create(Sandboxes, sandbox('box'))
      await scene.until(Pods, 'box', isOwned)
    },
    { flags: [...alone, '--cache-label-selectors'] },
  ),
  probe('a Service that is switched off goes', on('/services', 'delete'), async (scene) => {
    await scene.create(Sandboxes, sandbox('box', { service: true }))
    await scene.readySandbox('box')
    await scene.merge(Sandboxes, 'box', { spec: { service: false } })
    await scene.gone(Services, 'box')
  }),
  probe('a Service that drifted is repaired', on('/services', 'patch'), async (scene) => {
    await scene.create(Sandboxes, sandbox('box', { service: true }))
    await scene.readySandbox('box')
    await scene.merge(Services, 'box', { spec: { selector: { wrong: 'yes' } } })
    await scene.until(Services, 'box', ({ spec }) => spec?.selector?.wrong === undefined)
  }),
  probe('an adoptable Service is adopted', on('/services', 'update'), async (scene) => {
    await scene.create(Services, headless('box', adoptable))
    await scene.create(Sandboxes, sandbox('box', { service: true }))
    await scene.until(Services, 'box', isOwned)
  }),
  probe('an adoptable volume claim is adopted', on('/persistentvolumeclaims', 'patch', 'delete'), async (scene) => {
    const metadata = { name: 'data-box', ...adoptable }
    await scene.create(PersistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata,
      spec: storage,
    })
    const volumeClaimTemplates = [{ metadata: { name: 'data' }, spec: storage }]
    await scene.create(Sandboxes, sandbox('box', { volumeClaimTemplates }))
    await scene.until(PersistentVolumeClaims, 'data-box', isOwned)
  }),
  probe('a Sandbox that expires with policy Delete goes', on(agents('sandboxes'), 'delete'), async (scene) => {
    await scene.create(Sandboxes, sandbox('box', { shutdownTime: inSeconds(-1), shutdownPolicy: 'Delete' }))
    await scene.gone(Sandboxes, 'box')
  }),
  probe(
    'a claim starts cold and becomes Ready',
    [
      ...on(agents('sandboxes'), 'create'),
      ...on(extensions('sandboxclaims'), 'list', 'patch', 'watch'),
      ...on(extensions('sandboxclaims/status'), 'patch'),
      ...on(extensions('sandboxclaims/finalizers'), 'update'),
      ...on(extensions('sandboxtemplates'), 'list', 'watch'),
      ...on(extensions('sandboxwarmpools'), 'list', 'watch'),
    ],
    async (scene) => {
      await coldPool(scene)
      await scene.create(SandboxClaims, claim())
      await scene.readyClaim('claim')
    },
  ),
  probe('a claim says what was done for it', on('events.k8s.io/events', 'create'), async (scene) => {
    await coldPool(scene)
    await scene.create(SandboxClaims, claim())
    const reasons = async (): Promise<boolean> =>
      (await scene.list(EventsV1)).some(({ reason }) => reason === 'SandboxProvisioned')
    await scene.eventually(reasons, true)
  }),
  probe(
    'an event that repeats is counted',
    on('events.k8s.io/events', 'patch'),
    async (scene) => {
      const metadata = { name: 'none' }
      await scene.create(quotas, { apiVersion: 'v1', kind: 'ResourceQuota', metadata, spec: { hard: { pods: '0' } } })
      await scene.create(Sandboxes, sandbox('box'))
      const isCounted = async (): Promise<boolean> =>
        (await scene.list(EventsV1)).some(
          ({ reason, series }) => reason === 'SandboxPodCreateFailed' && (series?.count ?? 0) > 1,
        )
      await scene.eventually(isCounted, true)
    },
    { flags: [...alone, '--upstream-release=1.0.4'] },
  ),
  probe(
    'a pool fills and a claim takes its member',
    [
      ...on(agents('sandboxes'), 'patch'),
      ...on(extensions('sandboxwarmpools/status'), 'patch'),
      ...on(extensions('sandboxwarmpools/finalizers'), 'update'),
    ],
    async (scene) => {
      await scene.create(SandboxTemplates, template())
      await scene.create(SandboxWarmPools, pool('pool', 1))
      await scene.fullPool('pool', 1)
      await scene.create(SandboxClaims, claim())
      await scene.readyClaim('claim')
    },
  ),
  probe('an assignment to a Sandbox that is gone is dropped', on(agents('sandboxes'), 'get'), async (scene) => {
    await coldPool(scene)
    await scene.create(SandboxClaims, claim('claim', {}, { annotations: { [assignment]: 'pool-gone1' } }))
    await scene.readyClaim('claim')
  }),
  probe('a claim past its time goes', on(extensions('sandboxclaims'), 'delete'), async (scene) => {
    await coldPool(scene)
    const lifecycle = { shutdownTime: inSeconds(-1), shutdownPolicy: 'Delete' as const }
    await scene.create(SandboxClaims, claim('claim', { lifecycle }))
    await scene.gone(SandboxClaims, 'claim')
  }),
  probe(
    'a claim without stamps is read again before it starts cold',
    on(extensions('sandboxclaims'), 'get'),
    async (scene) => {
      await coldPool(scene)
      await scene.create(SandboxClaims, claim())
      await scene.readyClaim('claim')
    },
    { flags: [...alone, '--disable-claim-observability-annotations'] },
  ),
  probe(
    'a template gets its label and its network policy',
    [
      ...on(extensions('sandboxtemplates'), 'patch'),
      ...on(extensions('sandboxtemplates/finalizers'), 'update'),
      ...on(policies, 'create', 'list', 'watch'),
    ],
    async (scene) => {
      await scene.create(SandboxTemplates, template())
      await scene.until(NetworkPolicies, 'tmpl-network-policy', isOwned)
      await scene.until(SandboxTemplates, 'tmpl', ({ metadata }) => Object.keys(metadata.labels ?? {}).length > 0)
    },
  ),
  probe('a network policy that drifted is repaired', on(policies, 'update'), async (scene) => {
    await scene.create(SandboxTemplates, template())
    const { spec } = await scene.until(NetworkPolicies, 'tmpl-network-policy', isOwned)
    await scene.merge(NetworkPolicies, 'tmpl-network-policy', { spec: { ingress: [] } })
    const rules = spec?.ingress?.length
    await scene.until(NetworkPolicies, 'tmpl-network-policy', (policy) => policy.spec?.ingress?.length === rules)
  }),
  probe('a template that manages none loses its network policy', on(policies, 'delete'), async (scene) => {
    await scene.create(SandboxTemplates, template())
    await scene.until(NetworkPolicies, 'tmpl-network-policy', isOwned)
    await scene.merge(SandboxTemplates, 'tmpl', { spec: { networkPolicyManagement: 'Unmanaged' } })
    await scene.gone(NetworkPolicies, 'tmpl-network-policy')
  }),
  probe('the first manager makes the lease and acts', on('coordination.k8s.io/leases', 'create'), takesTheLease, {
    flags: [],
    async prepare({ client, signal }) {
      const ref = { name: leaseName, namespace: ourAccount.namespace }
      if (await client.find(Leases, ref, { signal })) await client.delete(Leases, ref, { signal })
    },
  }),
  probe(
    'a manager takes a lease that was given up and acts',
    on('coordination.k8s.io/leases', 'get', 'update'),
    takesTheLease,
    {
      flags: [],
      async prepare({ client, signal }) {
        const metadata = { name: leaseName, namespace: ourAccount.namespace }
        const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: {} }
        await client.apply(Leases, lease, { fieldManager: 'conformance', force: true, signal })
      },
    },
  ),
]

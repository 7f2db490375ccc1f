import { deepStrictEqual } from 'node:assert/strict'
import {
  type EnvVar,
  NetworkPolicies,
  Pods,
  type SandboxClaim,
  SandboxClaims,
  Sandboxes,
  type SandboxTemplate,
  SandboxTemplates,
  SandboxWarmPools,
} from '@corral/resources'
import { holds } from '../harness/holds.js'
import { type Scenario, scenario } from '../harness/scenario.js'
import type { Scene } from '../harness/scene.js'
import { AGENTS, claim, ownerRef, podTemplate, pool, safeToEvict, sandbox, storage, template } from './objects.js'

type ClaimSpec = Partial<SandboxClaim['spec']>
type TemplateSpec = Partial<SandboxTemplate['spec']>

/** A template, an empty pool and a claim, which therefore starts cold. */
async function coldClaim(scene: Scene, spec: ClaimSpec = {}, templateSpec: TemplateSpec = {}): Promise<void> {
  await scene.create(SandboxTemplates, template('tmpl', templateSpec))
  await scene.create(SandboxWarmPools, pool('pool', 0))
  await scene.create(SandboxClaims, claim('claim', spec))
}

/** A claim that is turned down: the reason, its message, and no Sandbox. */
async function turnedDown(
  scene: Scene,
  reason: string,
  spec: ClaimSpec,
  templateSpec: TemplateSpec = {},
): Promise<void> {
  await coldClaim(scene, spec, templateSpec)
  await scene.reason(SandboxClaims, 'claim', reason)
  await scene.observe()
  deepStrictEqual(await scene.find(Sandboxes, 'claim'), undefined)
}

const envTemplate = (env: EnvVar[] = [], change: object = {}) =>
  podTemplate({ spec: { containers: [{ name: 'main', image: 'busybox:1', env, ...change }] } })
const volume = (name: string, size = '1Gi') => ({
  metadata: { name },
  spec: { ...storage, resources: { requests: { storage: size } } },
})

const invalidMetadata: [string, string, object][] = [
  ['86a', 'a label without a domain', { labels: { plain: 'x' } }],
  ['86b', 'a label value that is too long', { labels: { 'sandbox.users.io/x': 'v'.repeat(64) } }],
  ['86c', 'a label value with a forbidden character', { labels: { 'sandbox.users.io/x': 'invalid@value' } }],
  ['86d', 'a label key with a forbidden character', { labels: { 'invalid@key': 'x' } }],
  ['86e', 'a label of a system domain', { labels: { 'kubernetes.io/x': 'y' } }],
  ['86f', 'the label of the router', { labels: { app: 'sandbox-router' } }],
  ['86g', 'an annotation of a system domain', { annotations: { 'x.k8s.io/y': 'z' } }],
  ['86h', 'an annotation key with a forbidden character', { annotations: { 'bad key': 'z' } }],
]

export const claimColdScenarios: readonly Scenario[] = [
  scenario('78, 98', 'a claim on an empty pool starts cold, with secure defaults and an event', async (scene) => {
    await coldClaim(scene)
    await scene.readyClaim('claim')
    await scene.observe()
  }),

  scenario('78b', 'while the Pod is not there the claim says what its Sandbox says', async (scene) => {
    scene.fate('untouched')
    await coldClaim(scene, {}, { service: true })
    await scene.reason(SandboxClaims, 'claim', 'DependenciesNotReady')
    await scene.observe()
  }),

  scenario('79a', 'a template that mounts the token keeps it', async (scene) => {
    const spec = { containers: [{ name: 'main', image: 'busybox:1' }], automountServiceAccountToken: true }
    await coldClaim(scene, {}, { podTemplate: podTemplate({ spec }) })
    await scene.readyClaim('claim')
    await scene.observe()
  }),

  scenario('79b', 'an unmanaged template keeps its name resolution', async (scene) => {
    await coldClaim(scene, {}, { networkPolicyManagement: 'Unmanaged' })
    await scene.readyClaim('claim')
    await scene.observe()
  }),

  scenario('79c', 'a template with rules of its own keeps its name resolution', async (scene) => {
    await coldClaim(scene, {}, { networkPolicy: { egress: [{}] } })
    await scene.readyClaim('claim')
    await scene.observe()
  }),

  scenario('80a', 'a claim waits for its pool', async (scene) => {
    await scene.create(SandboxTemplates, template())
    await scene.create(SandboxClaims, claim())
    await scene.says(SandboxClaims, 'claim', 'False/WarmPoolNotFound: SandboxWarmPool "pool" not found')
    await scene.observe('waiting')
    await scene.create(SandboxWarmPools, pool('pool', 0))
    await scene.readyClaim('claim')
    await scene.observe('served')
  }),

  scenario('80b', 'a claim waits for its template', async (scene) => {
    await scene.create(SandboxWarmPools, pool('pool', 0))
    await scene.create(SandboxClaims, claim())
    await scene.says(SandboxClaims, 'claim', 'False/TemplateNotFound: SandboxTemplate "tmpl" not found')
    await scene.observe('waiting')
    await scene.create(SandboxTemplates, template())
    await scene.readyClaim('claim')
    await scene.observe('served')
  }),

  scenario('81', 'a bound claim outlives its template', async (scene) => {
    await coldClaim(scene)
    await scene.readyClaim('claim')
    await scene.delete(SandboxTemplates, 'tmpl')
    await scene.rest()
    await scene.merge(SandboxClaims, 'claim', { metadata: { labels: { touched: 'yes' } } })
    await scene.readyClaim('claim')
    await scene.observe()
  }),

  scenario('82', "a Sandbox of the claim's name that is not its own is left alone", async (scene) => {
    await scene.create(Sandboxes, sandbox('claim'))
    await scene.readySandbox('claim')
    await coldClaim(scene)
    await scene.reason(SandboxClaims, 'claim', 'ReconcilerError')
    await scene.observe()
  }),

  scenario('83', 'a Sandbox of the claim that lost its label gets it back', async (scene) => {
    const key = `${AGENTS}/sandbox-template-ref-hash`
    await coldClaim(scene)
    await scene.readyClaim('claim')
    await scene.merge(Sandboxes, 'claim', { metadata: { labels: { [key]: null } } })
    await scene.rest()
    await scene.merge(SandboxClaims, 'claim', { metadata: { labels: { touched: 'yes' } } })
    await scene.until(Sandboxes, 'claim', ({ metadata }) => metadata.labels?.[key] !== undefined)
    await scene.observe()
  }),

  scenario('84', 'a network policy of an earlier version goes, a foreign one stays', async (scene) => {
    const policy = (name: string, metadata: object = {}) => ({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name, ...metadata },
      spec: { podSelector: {} },
    })
    await scene.create(SandboxWarmPools, pool('pool', 0))
    const owner = await scene.create(SandboxClaims, claim())
    await scene.reason(SandboxClaims, 'claim', 'TemplateNotFound')
    await scene.create(NetworkPolicies, policy('other-network-policy'))
    await scene.create(NetworkPolicies, policy('claim-network-policy', { ownerReferences: [ownerRef(owner)] }))
    await scene.create(SandboxClaims, claim('other'))
    await scene.merge(SandboxClaims, 'claim', { metadata: { labels: { touched: 'yes' } } })
    await scene.gone(NetworkPolicies, 'claim-network-policy')
    await scene.observe()
    holds(await scene.find(NetworkPolicies, 'other-network-policy'), 'find(NetworkPolicies, other-network-policy)')
  }),

  scenario('85', "a claim's trace reaches its Sandbox and not the Pod", async (scene) => {
    await scene.create(SandboxTemplates, template())
    await scene.create(SandboxWarmPools, pool('pool', 0))
    const annotations = { 'opentelemetry.io/trace-context': '{"traceparent":"00-1-2-01"}', own: 'no' }
    const labels = { [`${AGENTS}/created-by`]: 'go-client', mine: 'no' }
    await scene.create(SandboxClaims, claim('claim', {}, { annotations, labels }))
    await scene.readyClaim('claim')
    await scene.observe()
  }),

  ...invalidMetadata.map(([number, title, additionalPodMetadata]) =>
    scenario(number, `metadata is refused: ${title}`, (scene) =>
      turnedDown(scene, 'InvalidMetadata', { additionalPodMetadata }),
    ),
  ),

  scenario('87', 'metadata of allowed domains reaches the Pod', async (scene) => {
    const additionalPodMetadata = {
      labels: { 'sandbox.users.io/team': 'a', 'sub.sandbox.users.io/x': 'b' },
      annotations: { [safeToEvict]: 'false', plain: 'yes', 'example.com/x': 'y' },
    }
    await coldClaim(scene, { additionalPodMetadata })
    await scene.readyClaim('claim')
    await scene.observe()
  }),

  scenario('87b', 'metadata that contradicts the template is refused', async (scene) => {
    const metadata = { annotations: { plain: 'no' } }
    const spec = { additionalPodMetadata: { annotations: { plain: 'yes' } } }
    await turnedDown(scene, 'ReconcilerError', spec, { podTemplate: podTemplate({ metadata }) })
  }),

  scenario('88', 'policy Overrides: variables are replaced in place and appended', async (scene) => {
    const env = [
      { name: 'B', value: 'claim' },
      { name: 'C', value: 'new' },
    ]
    const theirs = [
      { name: 'A', value: 'template' },
      { name: 'B', value: 'template' },
    ]
    await coldClaim(scene, { env }, { envVarsInjectionPolicy: 'Overrides', podTemplate: envTemplate(theirs) })
    await scene.readyClaim('claim')
    await scene.observe()
  }),

  scenario('89a', 'policy Allowed: a new variable is appended', async (scene) => {
    const env = [{ name: 'NEW', value: 'x' }]
    const theirs = [{ name: 'OLD', value: 'y' }]
    await coldClaim(scene, { env }, { envVarsInjectionPolicy: 'Allowed', podTemplate: envTemplate(theirs) })
    await scene.readyClaim('claim')
    await scene.observe()
  }),

  scenario('89b', 'policy Allowed: an existing variable is refused', async (scene) => {
    const env = [{ name: 'OLD', value: 'x' }]
    const podTemplate = envTemplate([{ name: 'OLD', value: 'y' }])
    await turnedDown(scene, 'ReconcilerError', { env }, { envVarsInjectionPolicy: 'Allowed', podTemplate })
  }),

  scenario('90', 'without a policy variables are rejected', async (scene) => {
    await turnedDown(scene, 'EnvVarsInjectionRejected', { env: [{ name: 'A', value: 'b' }] })
  }),

  scenario('91', 'policy Allowed: a container with envFrom is off limits', async (scene) => {
    const podTemplate = envTemplate([], { envFrom: [{ configMapRef: { name: 'settings', optional: true } }] })
    const env = [{ name: 'A', value: 'b' }]
    await turnedDown(scene, 'EnvVarsInjectionRejected', { env }, { envVarsInjectionPolicy: 'Allowed', podTemplate })
  }),

  scenario('92a', 'a named container gets its variables, init containers too', async (scene) => {
    const spec = {
      initContainers: [{ name: 'init', image: 'busybox:1' }],
      containers: [
        { name: 'main', image: 'busybox:1' },
        { name: 'side', image: 'busybox:1' },
      ],
    }
    const env = [
      { name: 'A', value: '1', containerName: 'side' },
      { name: 'B', value: '2', containerName: 'init' },
      { name: 'C', value: '3' },
      { name: 'D', value: '4', containerName: 'main' },
    ]
    await coldClaim(scene, { env }, { envVarsInjectionPolicy: 'Allowed', podTemplate: podTemplate({ spec }) })
    await scene.readyClaim('claim')
    await scene.observe()
  }),

  scenario('92b', 'a container that is not there is an error', async (scene) => {
    const env = [{ name: 'A', value: '1', containerName: 'nobody' }]
    await turnedDown(scene, 'ReconcilerError', { env }, { envVarsInjectionPolicy: 'Allowed' })
  }),

  scenario('93', 'variables make a claim start cold although the pool is warm', async (scene) => {
    await scene.create(SandboxTemplates, template('tmpl', { envVarsInjectionPolicy: 'Allowed' }))
    await scene.create(SandboxWarmPools, pool('pool', 1))
    await scene.fullPool('pool', 1)
    await scene.create(SandboxClaims, claim('claim', { env: [{ name: 'A', value: 'b' }] }))
    deepStrictEqual((await scene.readyClaim('claim')).status?.sandbox?.name, 'claim')
    await scene.observe()
  }),

  scenario('94a', 'without a policy volume claims are rejected', async (scene) => {
    await turnedDown(scene, 'VolumeClaimTemplatesError', { volumeClaimTemplates: [volume('data')] })
  }),

  scenario('94b', 'policy Allowed: a volume of the template cannot be replaced', async (scene) => {
    const spec = { volumeClaimTemplates: [volume('data', '2Gi')] }
    const theirs = { volumeClaimTemplatesPolicy: 'Allowed' as const, volumeClaimTemplates: [volume('data')] }
    await turnedDown(scene, 'VolumeClaimTemplatesError', spec, theirs)
  }),

  scenario('94c', 'policy Allowed: a new volume follows those of the template', async (scene) => {
    const spec = { volumeClaimTemplates: [volume('more')] }
    const theirs = { volumeClaimTemplatesPolicy: 'Allowed' as const, volumeClaimTemplates: [volume('data')] }
    await coldClaim(scene, spec, theirs)
    await scene.readyClaim('claim')
    await scene.observe()
  }),

  scenario('94d', 'policy Overrides: same names are replaced in place, new ones appended', async (scene) => {
    const spec = { volumeClaimTemplates: [volume('more'), volume('data', '2Gi')] }
    const volumeClaimTemplates = [volume('data'), volume('logs')]
    await coldClaim(scene, spec, { volumeClaimTemplatesPolicy: 'Overrides', volumeClaimTemplates })
    await scene.readyClaim('claim')
    await scene.observe()
  }),

  scenario('95a', 'a template with two volumes of one name is an error', async (scene) => {
    await turnedDown(scene, 'VolumeClaimTemplatesError', {}, { volumeClaimTemplates: [volume('a'), volume('a')] })
  }),

  scenario('95b', 'a volume without a name is an error', async (scene) => {
    const spec = { volumeClaimTemplates: [{ spec: storage }] }
    await turnedDown(scene, 'VolumeClaimTemplatesError', spec, { volumeClaimTemplatesPolicy: 'Allowed' })
  }),

  scenario('96', "a pool's volumes come with the warm Sandbox", async (scene) => {
    await scene.create(SandboxTemplates, template('tmpl', { volumeClaimTemplates: [volume('data')] }))
    await scene.create(SandboxWarmPools, pool('pool', 1))
    await scene.fullPool('pool', 1)
    await scene.create(SandboxClaims, claim())
    await scene.readyClaim('claim')
    await scene.fullPool('pool', 1)
    await scene.observe()
  }),

  scenario('137c', 'a Sandbox deleted by someone else is replaced', async (scene) => {
    await coldClaim(scene)
    await scene.readyClaim('claim')
    const { uid } = (await scene.get(Sandboxes, 'claim')).metadata
    const first = await scene.get(Pods, 'claim')
    await scene.delete(Sandboxes, 'claim')
    await scene.until(Sandboxes, 'claim', ({ metadata }) => metadata.uid !== uid)
    await scene.until(Pods, 'claim', ({ metadata }) => metadata.uid !== first.metadata.uid)
    await scene.readyClaim('claim')
    await scene.observe()
  }),
]

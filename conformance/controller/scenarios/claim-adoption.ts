import { deepStrictEqual } from 'node:assert/strict'
import {
  type Pod,
  Pods,
  type SandboxClaim,
  SandboxClaims,
  Sandboxes,
  type SandboxTemplate,
  SandboxTemplates,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { holds } from '../harness/holds.js'
import { type Scenario, scenario } from '../harness/scenario.js'
import type { Scene } from '../harness/scene.js'
import { AGENTS, assignment, claim, podTemplate, pool, poolLabel, safeToEvict, template } from './objects.js'

/** A template and a pool that is full and ready. */
async function warmPool(
  scene: Scene,
  replicas = 1,
  templateSpec: Partial<SandboxTemplate['spec']> = {},
  poolSpec: Parameters<typeof pool>[2] = {},
): Promise<void> {
  await scene.create(SandboxTemplates, template('tmpl', templateSpec))
  await scene.create(SandboxWarmPools, pool('pool', replicas, poolSpec))
  await scene.fullPool('pool', replicas)
}

const isWarm = (object: Stored<SandboxClaim>): boolean => object.status?.sandbox?.name?.startsWith('pool-') ?? false

async function members(scene: Scene): Promise<string[]> {
  return (await scene.list(Sandboxes))
    .filter(({ metadata }) => metadata.labels?.[poolLabel])
    .map(({ metadata }) => metadata.name)
}

export const claimAdoptionScenarios: readonly Scenario[] = [
  scenario('108', 'a claim adopts a warm Sandbox: labels, owner, status, event; the pool refills', async (scene) => {
    await warmPool(scene)
    await scene.observe('before')
    await scene.create(SandboxClaims, claim())
    holds(isWarm(await scene.readyClaim('claim')), 'isWarm(readyClaim(claim))')
    await scene.fullPool('pool', 1)
    await scene.observe('after')
  }),

  scenario('47, 55, 109a', 'the Pod of an adopted Sandbox loses pool label and eviction mark', async (scene) => {
    await warmPool(scene)
    await scene.create(SandboxClaims, claim())
    const bound = await scene.readyClaim('claim')
    const name = bound.status?.sandbox?.name ?? ''
    await scene.until(Pods, name, ({ metadata }) => !metadata.labels?.[poolLabel])
    await scene.rest()
    const { metadata } = await scene.get(Pods, name)
    deepStrictEqual(metadata.annotations?.[safeToEvict], undefined)
    deepStrictEqual(metadata.labels?.[`${AGENTS}/claim-uid`], bound.metadata.uid)
    await scene.observe()
  }),

  scenario('109b', "a template's own eviction mark survives adoption", async (scene) => {
    const metadata = { annotations: { [safeToEvict]: 'false' }, labels: { app: 'x' } }
    await warmPool(scene, 1, { podTemplate: podTemplate({ metadata }) })
    await scene.create(SandboxClaims, claim())
    await scene.readyClaim('claim')
    await scene.fullPool('pool', 1)
    await scene.observe()
  }),

  scenario('109c', 'a claim may ask for the eviction mark', async (scene) => {
    await warmPool(scene)
    const additionalPodMetadata = { annotations: { [safeToEvict]: 'true' }, labels: { 'sandbox.users.io/a': 'b' } }
    await scene.create(SandboxClaims, claim('claim', { additionalPodMetadata }))
    holds(isWarm(await scene.readyClaim('claim')), 'isWarm(readyClaim(claim))')
    await scene.fullPool('pool', 1)
    await scene.observe()
  }),

  scenario('110', 'who created the claim is written over who created the member', async (scene) => {
    await warmPool(scene)
    await scene.create(SandboxClaims, claim('claim', {}, { labels: { [`${AGENTS}/created-by`]: 'go-client' } }))
    await scene.readyClaim('claim')
    await scene.fullPool('pool', 1)
    await scene.observe()
  }),

  scenario('100', 'a Ready member is preferred to an older one that is not', async (scene) => {
    const slow = new Set<string>()
    await scene.create(SandboxTemplates, template())
    scene.fate((pod: Stored<Pod>) => {
      if (slow.size === 0) slow.add(pod.metadata.uid)
      return slow.has(pod.metadata.uid) ? 'unready' : 'ready'
    })
    await scene.create(SandboxWarmPools, pool('pool', 1))
    await scene.eventually(async () => (await scene.list(Sandboxes))[0]?.status?.podIPs?.length, 1)
    await scene.client.scale(SandboxWarmPools, scene.ref('pool'), 2)
    await scene.fullPool('pool', 1)
    await scene.rest()
    await scene.create(SandboxClaims, claim())
    holds(isWarm(await scene.readyClaim('claim')), 'isWarm(readyClaim(claim))')
    await scene.observe()
  }),

  scenario('101', 'with none Ready the first that has an address is adopted', async (scene) => {
    await scene.create(SandboxTemplates, template())
    scene.fate('unready')
    await scene.create(SandboxWarmPools, pool('pool', 1))
    await scene.eventually(async () => (await scene.list(Sandboxes))[0]?.status?.podIPs?.length, 1)
    await scene.create(SandboxClaims, claim())
    const bound = await scene.until(SandboxClaims, 'claim', ({ status }) => status?.sandbox?.name !== undefined)
    holds(isWarm(bound), 'isWarm(bound)')
    await scene.observe()
  }),

  scenario('103', 'a member of another pool is not touched', async (scene) => {
    await warmPool(scene)
    await scene.create(SandboxWarmPools, pool('pool2', 0))
    await scene.create(SandboxClaims, claim('claim', { warmPoolRef: { name: 'pool2' } }))
    deepStrictEqual((await scene.readyClaim('claim')).status?.sandbox?.name, 'claim')
    await scene.observe()
  }),

  scenario('103b', 'a Sandbox with forged labels and no owner is not adopted by a claim', async (scene) => {
    await scene.create(SandboxTemplates, template())
    await scene.create(SandboxWarmPools, pool('pool', 0))
    await scene.create(Sandboxes, {
      apiVersion: 'agents.x-k8s.io/v1beta1',
      kind: 'Sandbox',
      metadata: { name: 'forged', labels: { [poolLabel]: 'abcdef01', [`${AGENTS}/sandbox-template-ref-hash`]: 'x' } },
      spec: { podTemplate: podTemplate() },
    })
    await scene.readySandbox('forged')
    await scene.create(SandboxClaims, claim())
    deepStrictEqual((await scene.readyClaim('claim')).status?.sandbox?.name, 'claim')
    await scene.observe()
  }),

  scenario('105', 'a claim waits a moment for a member that has no address yet', async (scene) => {
    await scene.create(SandboxTemplates, template())
    scene.fate('untouched')
    await scene.create(SandboxWarmPools, pool('pool', 1))
    await scene.eventually(async () => (await scene.list(Pods)).length, 1)
    await scene.rest()
    await scene.create(SandboxClaims, claim())
    scene.fate('ready')
    holds(isWarm(await scene.readyClaim('claim')), 'isWarm(readyClaim(claim))')
    await scene.fullPool('pool', 1)
    await scene.observe()
  }),

  scenario('106', 'a claim that waited two seconds starts cold', async (scene) => {
    await scene.create(SandboxTemplates, template())
    scene.fate(({ metadata }) => (metadata.name === 'claim' ? 'ready' : 'untouched'))
    await scene.create(SandboxWarmPools, pool('pool', 1))
    await scene.eventually(async () => (await scene.list(Pods)).length, 1)
    await scene.create(SandboxClaims, claim())
    deepStrictEqual((await scene.readyClaim('claim')).status?.sandbox?.name, 'claim')
    await scene.observe()
  }),

  scenario('107', 'a member with an address is taken before one without', async (scene) => {
    const none = new Set<string>()
    await scene.create(SandboxTemplates, template())
    scene.fate(({ metadata }) => {
      if (none.size === 0) none.add(metadata.uid)
      return none.has(metadata.uid) ? 'untouched' : 'unready'
    })
    await scene.create(SandboxWarmPools, pool('pool', 2))
    await scene.eventually(
      async () => (await scene.list(Sandboxes)).filter(({ status }) => status?.podIPs?.length).length,
      1,
    )
    await scene.create(SandboxClaims, claim())
    const bound = await scene.until(SandboxClaims, 'claim', ({ status }) => status?.sandbox?.name !== undefined)
    holds(isWarm(bound), 'isWarm(bound)')
    holds(bound.status?.sandbox?.podIPs?.length, 'bound.status?.sandbox?.podIPs?.length')
  }),

  scenario('111a', 'strategy Recreate: members of an edited template are replaced, not adopted', async (scene) => {
    await warmPool(scene, 1, {}, { updateStrategy: { type: 'Recreate' } })
    const [before = ''] = await members(scene)
    const spec = { containers: [{ name: 'main', image: 'busybox:2' }] }
    await scene.merge(SandboxTemplates, 'tmpl', { spec: { podTemplate: { spec } } })
    await scene.gone(Sandboxes, before)
    await scene.gone(Pods, before)
    await scene.fullPool('pool', 1)
    await scene.create(SandboxClaims, claim())
    holds(isWarm(await scene.readyClaim('claim')), 'isWarm(readyClaim(claim))')
    await scene.fullPool('pool', 1)
    await scene.observe()
  }),

  scenario('111b', 'strategy OnReplenish: a member of the earlier template is adopted', async (scene) => {
    await warmPool(scene, 1, {}, { updateStrategy: { type: 'OnReplenish' } })
    const spec = { containers: [{ name: 'main', image: 'busybox:2' }] }
    await scene.merge(SandboxTemplates, 'tmpl', { spec: { podTemplate: { spec } } })
    await scene.rest()
    await scene.create(SandboxClaims, claim())
    holds(isWarm(await scene.readyClaim('claim')), 'isWarm(readyClaim(claim))')
    await scene.fullPool('pool', 1)
    await scene.observe()
  }),

  scenario('113', 'two warm Sandboxes and three claims: each has one of its own', async (scene) => {
    await warmPool(scene, 2)
    scene.fate(({ metadata }) => (metadata.name.startsWith('claim') ? 'ready' : 'ready'))
    await Promise.all(['claim-a', 'claim-b', 'claim-c'].map((name) => scene.create(SandboxClaims, claim(name))))
    const bound = await Promise.all(['claim-a', 'claim-b', 'claim-c'].map((name) => scene.readyClaim(name)))
    const names = bound.map(({ status }) => status?.sandbox?.name)
    deepStrictEqual(new Set(names).size, 3)
    for (const { metadata, status } of bound) {
      const owned = await scene.get(Sandboxes, status?.sandbox?.name ?? '')
      deepStrictEqual(
        owned.metadata.ownerReferences?.map(({ uid }) => uid),
        [metadata.uid],
      )
    }
    await scene.fullPool('pool', 2)
  }),

  scenario('114', 'a bound claim leaves new members alone', async (scene) => {
    await warmPool(scene)
    await scene.create(SandboxClaims, claim())
    const first = await scene.readyClaim('claim')
    await scene.fullPool('pool', 1)
    await scene.merge(SandboxClaims, 'claim', { metadata: { labels: { touched: 'yes' } } })
    await scene.rest()
    deepStrictEqual((await scene.get(SandboxClaims, 'claim')).status?.sandbox, first.status?.sandbox)
    await scene.observe()
  }),

  scenario('115', 'the launch type is filled in once and never changed', async (scene) => {
    const launchType = `${AGENTS}/launch-type`
    await warmPool(scene)
    await scene.create(SandboxClaims, claim())
    const name = (await scene.readyClaim('claim')).status?.sandbox?.name ?? ''
    await scene.fullPool('pool', 1)
    await scene.merge(Sandboxes, name, { metadata: { labels: { [launchType]: 'cold' } } })
    await scene.merge(SandboxClaims, 'claim', { metadata: { labels: { touched: '1' } } })
    await scene.observe('not overwritten')
    await scene.merge(Sandboxes, name, { metadata: { labels: { [launchType]: null } } })
    await scene.merge(SandboxClaims, 'claim', { metadata: { labels: { touched: '2' } } })
    await scene.until(Sandboxes, name, ({ metadata }) => metadata.labels?.[launchType] !== undefined)
    await scene.observe('filled in')
  }),

  scenario('116', 'an assignment that was committed is completed', async (scene) => {
    await warmPool(scene, 2)
    const [name = ''] = await members(scene)
    await scene.create(SandboxClaims, claim('claim', {}, { annotations: { [assignment]: name } }))
    deepStrictEqual((await scene.readyClaim('claim')).status?.sandbox?.name, name)
    await scene.fullPool('pool', 2)
    await scene.observe()
  }),

  scenario('117', 'an assignment to a Sandbox of another claim is dropped', async (scene) => {
    await warmPool(scene, 1)
    await scene.create(SandboxClaims, claim('first'))
    const name = (await scene.readyClaim('first')).status?.sandbox?.name ?? ''
    await scene.fullPool('pool', 1)
    await scene.create(SandboxClaims, claim('second', {}, { annotations: { [assignment]: name } }))
    const second = await scene.readyClaim('second')
    holds(second.status?.sandbox?.name !== name, 'second.status?.sandbox?.name !== name')
    await scene.fullPool('pool', 1)
    await scene.observe()
  }),

  scenario('118', 'a legacy label that names a member of another pool is dropped', async (scene) => {
    await warmPool(scene, 1)
    const [name = ''] = await members(scene)
    await scene.create(SandboxWarmPools, pool('pool2', 0))
    const wrong = claim('claim', { warmPoolRef: { name: 'pool2' } }, { labels: { [assignment]: name } })
    await scene.create(SandboxClaims, wrong)
    deepStrictEqual((await scene.readyClaim('claim')).status?.sandbox?.name, 'claim')
    await scene.observe()
  }),

  scenario('119', 'a legacy label becomes the annotation', async (scene) => {
    await warmPool(scene, 1)
    const [name = ''] = await members(scene)
    await scene.create(SandboxClaims, claim('claim', {}, { labels: { [assignment]: name } }))
    deepStrictEqual((await scene.readyClaim('claim')).status?.sandbox?.name, name)
    await scene.fullPool('pool', 1)
    await scene.merge(SandboxClaims, 'claim', { metadata: { labels: { touched: 'yes' } } })
    await scene.observe()
  }),

  scenario('124', 'an assignment to a Sandbox that is gone is dropped', async (scene) => {
    await warmPool(scene, 1)
    await scene.create(SandboxClaims, claim('claim', {}, { annotations: { [assignment]: 'pool-gone1' } }))
    await scene.readyClaim('claim')
    await scene.fullPool('pool', 1)
    await scene.observe()
  }),

  scenario('a7', 'a bound claim that names another pool takes on the other template', async (scene) => {
    await warmPool(scene, 1)
    await scene.create(SandboxClaims, claim())
    await scene.readyClaim('claim')
    await scene.fullPool('pool', 1)
    const metadata = { labels: { other: 'yes' } }
    await scene.create(SandboxTemplates, template('other', { podTemplate: podTemplate({ metadata }) }))
    await scene.create(SandboxWarmPools, pool('pool2', 0, { sandboxTemplateRef: { name: 'other' } }))
    await scene.merge(SandboxClaims, 'claim', { spec: { warmPoolRef: { name: 'pool2' } } })
    await scene.observe()
  }),

  scenario('179', 'twenty claims on a pool of five all become Ready', async (scene) => {
    await warmPool(scene, 5)
    const names = Array.from({ length: 20 }, (_, index) => `claim-${index}`)
    await Promise.all(names.map((name) => scene.create(SandboxClaims, claim(name))))
    const bound = await Promise.all(names.map((name) => scene.readyClaim(name)))
    deepStrictEqual(new Set(bound.map(({ status }) => status?.sandbox?.name)).size, 20)
    await scene.fullPool('pool', 5)
    const all = await scene.list(Sandboxes)
    scene.note('Sandboxes in the end', all.length)
  }),
]

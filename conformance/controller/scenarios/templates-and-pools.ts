import { deepStrictEqual } from 'node:assert/strict'
import {
  EventsV1,
  NetworkPolicies,
  nameHash,
  Pods,
  SandboxClaims,
  Sandboxes,
  SandboxTemplates,
  SandboxWarmPools,
} from '@corral/resources'
import { holds } from '../harness/holds.js'
import { type Scenario, scenario } from '../harness/scenario.js'
import type { Scene } from '../harness/scene.js'
import { AGENTS, claim, podTemplate, pool, poolLabel, safeToEvict, sandbox, storage, template } from './objects.js'

const policyName = 'tmpl-network-policy'
const image = (tag: string) => podTemplate({ spec: { containers: [{ name: 'main', image: `busybox:${tag}` }] } })
const names = async (scene: Scene): Promise<string[]> =>
  (await scene.list(Sandboxes)).map(({ metadata }) => metadata.name).sort()

async function warm(scene: Scene, replicas: number, spec: Parameters<typeof pool>[2] = {}): Promise<void> {
  await scene.create(SandboxTemplates, template())
  await scene.create(SandboxWarmPools, pool('pool', replicas, spec))
  await scene.fullPool('pool', replicas)
  await scene.rest()
}

async function edited(scene: Scene, change: object, recreated: boolean): Promise<void> {
  await warm(scene, 2, { updateStrategy: { type: 'Recreate' } })
  const before = await names(scene)
  await scene.merge(SandboxTemplates, 'tmpl', { spec: change })
  if (recreated) for (const name of before) await scene.gone(Sandboxes, name)
  await scene.fullPool('pool', 2)
  await scene.observe()
  deepStrictEqual(
    (await names(scene)).some((name) => before.includes(name)),
    !recreated,
  )
}

export const templateScenarios: readonly Scenario[] = [
  scenario('147', 'a template gets the default network policy and its label', async (scene) => {
    await scene.create(SandboxTemplates, template())
    await scene.until(NetworkPolicies, policyName, () => true)
    await scene.observe()
  }),

  scenario('148', 'rules of the template are copied, and drift is repaired', async (scene) => {
    const networkPolicy = {
      ingress: [{ from: [{ podSelector: {} }] }],
      egress: [{ ports: [{ port: 53, protocol: 'UDP' }] }],
    }
    await scene.create(SandboxTemplates, template('tmpl', { networkPolicy }))
    await scene.until(NetworkPolicies, policyName, () => true)
    await scene.observe('made')
    await scene.merge(NetworkPolicies, policyName, { metadata: { labels: { own: 'x' } }, spec: { egress: null } })
    await scene.until(NetworkPolicies, policyName, ({ spec }) => spec?.egress?.length === 1)
    await scene.observe('repaired')
    await scene.merge(SandboxTemplates, 'tmpl', { spec: { networkPolicy: { ingress: null } } })
    await scene.until(NetworkPolicies, policyName, ({ spec }) => !spec?.ingress?.length)
    await scene.observe('changed')
  }),

  scenario('149', 'an unmanaged template has no policy, and loses the one it had', async (scene) => {
    await scene.create(SandboxTemplates, template('other', { networkPolicyManagement: 'Unmanaged' }))
    await scene.create(SandboxTemplates, template())
    await scene.until(NetworkPolicies, policyName, () => true)
    await scene.merge(SandboxTemplates, 'tmpl', { spec: { networkPolicyManagement: 'Unmanaged' } })
    await scene.gone(NetworkPolicies, policyName)
    await scene.observe()
  }),

  scenario('149b-150', 'a policy of that name that is not its own stays as it is', async (scene) => {
    const foreign = (name: string) => ({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name },
      spec: { podSelector: { matchLabels: { own: 'x' } } },
    })
    await scene.create(NetworkPolicies, foreign(policyName))
    await scene.create(NetworkPolicies, foreign('un-network-policy'))
    await scene.create(SandboxTemplates, template())
    await scene.create(SandboxTemplates, template('un', { networkPolicyManagement: 'Unmanaged' }))
    await scene.observe()
  }),
]

export const poolScenarios: readonly Scenario[] = [
  scenario('14, 151', 'a pool makes one member unless told otherwise, scales up, down and to none', async (scene) => {
    await scene.create(SandboxTemplates, template())
    const { spec, ...rest } = pool('pool')
    const { replicas: _, ...one } = spec
    await scene.create(SandboxWarmPools, { ...rest, spec: one })
    await scene.fullPool('pool', 1)
    await scene.observe('one')
    await scene.client.scale(SandboxWarmPools, scene.ref('pool'), 3)
    await scene.fullPool('pool', 3)
    await scene.observe('three')
    await scene.client.scale(SandboxWarmPools, scene.ref('pool'), 0)
    await scene.eventually(() => names(scene), [])
    await scene.observe('none')
  }),

  scenario('153', 'a member that is terminating is replaced only once it is gone', async (scene) => {
    await warm(scene, 2)
    const [held = ''] = await names(scene)
    await scene.merge(Sandboxes, held, { metadata: { finalizers: ['example.com/hold'] } })
    await scene.delete(Sandboxes, held)
    await scene.until(SandboxWarmPools, 'pool', ({ status }) => status?.replicas === 1)
    await scene.rest()
    deepStrictEqual((await names(scene)).length, 2)
    await scene.merge(Sandboxes, held, { metadata: { finalizers: null } })
    await scene.fullPool('pool', 2)
    await scene.observe()
  }),

  scenario('154', 'an orphan that matches is adopted, one that does not is deleted', async (scene) => {
    await warm(scene, 1)
    const [first] = await scene.list(Sandboxes)
    const labels = { ...first?.metadata.labels }
    delete labels[`${AGENTS}/launch-type`]
    await scene.client.scale(SandboxWarmPools, scene.ref('pool'), 2)
    await scene.fullPool('pool', 2)
    await scene.create(Sandboxes, sandbox('wrong', { podTemplate: image('9') }, { labels }))
    // Nothing tells a pool of an orphan: it finds it at its next pass, which may come by itself.
    await scene.rest()
    await scene.merge(SandboxWarmPools, 'pool', { metadata: { annotations: { touched: 'yes' } } })
    await scene.gone(Sandboxes, 'wrong')
    await scene.fullPool('pool', 2)
    await scene.delete(SandboxWarmPools, 'pool')
    await scene.eventually(() => names(scene), [])
    const spec = structuredClone(first?.spec) as ReturnType<typeof sandbox>['spec']
    await scene.create(Sandboxes, { ...sandbox('right', spec, { labels }) })
    await scene.readySandbox('right')
    await scene.rest()
    await scene.create(SandboxWarmPools, pool('pool', 1))
    await scene.until(Sandboxes, 'right', ({ metadata }) => metadata.ownerReferences?.length === 1)
    await scene.fullPool('pool', 1)
    await scene.observe()
  }),

  scenario('160a', 'strategy Recreate: a new image replaces every member', (scene) =>
    edited(scene, { podTemplate: image('2') }, true),
  ),

  scenario('160b', 'strategy OnReplenish: a new image waits for the next replacement', async (scene) => {
    await warm(scene, 2)
    const before = await names(scene)
    await scene.merge(SandboxTemplates, 'tmpl', { spec: { podTemplate: image('2') } })
    await scene.rest()
    deepStrictEqual(await names(scene), before)
    await scene.delete(Sandboxes, before[0] ?? '')
    await scene.gone(Sandboxes, before[0] ?? '')
    await scene.fullPool('pool', 2)
    await scene.eventually(async () => (await names(scene)).length, 2)
    await scene.observe()
  }),

  scenario('161', 'strategy Recreate: another template of the same content replaces every member', async (scene) => {
    await warm(scene, 2, { updateStrategy: { type: 'Recreate' } })
    const before = await names(scene)
    await scene.create(SandboxTemplates, template('twin'))
    await scene.merge(SandboxWarmPools, 'pool', { spec: { sandboxTemplateRef: { name: 'twin' } } })
    for (const name of before) await scene.gone(Sandboxes, name)
    await scene.fullPool('pool', 2)
    await scene.observe()
  }),

  scenario('162a', 'strategy Recreate: metadata of the Pod template replaces nobody', (scene) =>
    edited(scene, { podTemplate: { metadata: { labels: { a: 'b' } } } }, false),
  ),
  scenario('162b', 'strategy Recreate: a volume replaces every member', (scene) =>
    edited(scene, { volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: storage }] }, true),
  ),
  scenario('162c', 'strategy Recreate: a Service replaces every member', (scene) =>
    edited(scene, { service: true }, true),
  ),
  scenario('163', 'strategy Recreate: the defaults said aloud replace nobody', (scene) => {
    const spec = {
      automountServiceAccountToken: false,
      containers: [{ name: 'main', image: 'busybox:1' }],
      dnsPolicy: 'None' as const,
      dnsConfig: { nameservers: ['8.8.8.8', '1.1.1.1'] },
    }
    return edited(scene, { podTemplate: { spec } }, false)
  }),

  scenario('164', 'two pools: an edited template rolls only its own', async (scene) => {
    await warm(scene, 1, { updateStrategy: { type: 'Recreate' } })
    await scene.create(SandboxTemplates, template('other'))
    const other = { sandboxTemplateRef: { name: 'other' }, updateStrategy: { type: 'Recreate' } } as const
    await scene.create(SandboxWarmPools, pool('pool2', 1, other))
    await scene.fullPool('pool2', 1)
    const before = await names(scene)
    await scene.merge(SandboxTemplates, 'other', { spec: { podTemplate: image('2') } })
    const second = before.find((name) => name.startsWith('pool2-')) ?? ''
    await scene.gone(Sandboxes, second)
    await scene.fullPool('pool2', 1)
    holds(
      (await names(scene)).includes(before.find((name) => !name.startsWith('pool2-')) ?? 'x'),
      '(names(scene)).includes(before.find((name) => !name.startsWith(pool2-)) ?? x)',
    )
    await scene.observe()
  }),

  scenario('165a', "a template's eviction mark is kept in the pool", async (scene) => {
    const metadata = { annotations: { [safeToEvict]: 'true' } }
    await scene.create(SandboxTemplates, template('tmpl', { podTemplate: podTemplate({ metadata }) }))
    await scene.create(SandboxWarmPools, pool('pool', 1))
    await scene.fullPool('pool', 1)
    await scene.create(SandboxClaims, claim())
    await scene.readyClaim('claim')
    await scene.fullPool('pool', 1)
    await scene.observe()
  }),

  scenario('171', 'a pool says which generation it has seen, and zeros are written', async (scene) => {
    await warm(scene, 1)
    await scene.merge(SandboxWarmPools, 'pool', { spec: { updateStrategy: { type: 'Recreate' } } })
    await scene.merge(SandboxWarmPools, 'pool', { spec: { replicas: 0 } })
    await scene.until(SandboxWarmPools, 'pool', ({ status }) => status?.observedGeneration === 3)
    await scene.eventually(() => names(scene), [])
    await scene.observe()
  }),

  scenario('152', 'a pool without a template waits for it', async (scene) => {
    await scene.create(SandboxWarmPools, pool('pool', 2))
    await scene.until(SandboxWarmPools, 'pool', ({ status }) => status?.selector !== undefined)
    await scene.observe('waiting')
    await scene.create(SandboxTemplates, template())
    await scene.fullPool('pool', 2)
    await scene.observe('filled')
  }),

  scenario('hash', 'labels of a member name pool and template by hash', async (scene) => {
    await warm(scene, 1)
    const [member] = await scene.list(Sandboxes)
    deepStrictEqual(member?.metadata.labels?.[poolLabel], nameHash('pool'))
    deepStrictEqual(member.metadata.labels[`${AGENTS}/sandbox-template-ref-hash`], nameHash('tmpl'))
    scene.note('blueprint hash', member.metadata.labels[`${AGENTS}/sandbox-template-hash`])
    scene.note('pod template hash', member.metadata.labels[`${AGENTS}/sandbox-pod-template-hash`])
  }),

  scenario('delete', 'deleting a pool deletes its members and spares claimed ones', async (scene) => {
    await warm(scene, 2)
    await scene.create(SandboxClaims, claim())
    await scene.readyClaim('claim')
    await scene.fullPool('pool', 2)
    await scene.delete(SandboxWarmPools, 'pool')
    await scene.eventually(async () => (await scene.list(Sandboxes)).length, 1)
    await scene.eventually(async () => (await scene.list(Pods)).length, 1)
    await scene.observe()
  }),
]

const short = ['--sandbox-warm-pool-readiness-grace-period=3s', '--sandbox-warm-pool-unschedulable-recheck-interval=1s']

export const stuckPoolScenarios: readonly Scenario[] = [
  scenario(
    '155',
    'a member that never gets ready is replaced after the grace period',
    async (scene) => {
      let slow = ''
      scene.fate(({ metadata }) => {
        slow ||= metadata.uid
        return metadata.uid === slow ? 'unready' : 'ready'
      })
      await scene.create(SandboxTemplates, template())
      await scene.create(SandboxWarmPools, pool('pool', 1))
      await scene.eventually(async () => (await scene.list(Sandboxes)).length, 1)
      const [first = ''] = await names(scene)
      await scene.gone(Sandboxes, first)
      await scene.fullPool('pool', 1)
      await scene.observe()
    },
    { flags: short },
  ),
  scenario(
    '156',
    'members that no node fits are held, with one warning and one note when it is over',
    async (scene) => {
      scene.fate('unschedulable')
      await scene.create(SandboxTemplates, template())
      await scene.create(SandboxWarmPools, pool('pool', 1))
      await scene.eventually(async () => (await events(scene)).includes('WarmPoolNotProgressing'), true)
      const before = await names(scene)
      await scene.observe('held')
      deepStrictEqual(await names(scene), before)
      // A member that has a node and is not Ready is late by now, and both managers replace it: so it is Ready first.
      scene.fate('ready-unbound')
      await scene.fullPool('pool', 1)
      await scene.eventually(async () => (await events(scene)).includes('WarmPoolProgressing'), true)
      scene.fate('ready')
      const [member = ''] = before
      await scene.says(Sandboxes, member, 'True/PodScheduled: ', 'PodScheduled')
      deepStrictEqual(await names(scene), before)
      await scene.observe()
    },
    { flags: short },
  ),
  scenario(
    '167-168',
    'a pool refills after the delay, never before',
    async (scene) => {
      await warm(scene, 3)
      await scene.create(SandboxClaims, claim())
      await scene.readyClaim('claim')
      await scene.rest()
      scene.note('members during the delay', (await names(scene)).length)
      await scene.fullPool('pool', 3)
      await scene.observe()
    },
    { flags: ['--sandbox-warm-pool-replenish-delay=4s', '--sandbox-warm-pool-max-refill-rate=2'] },
  ),
]

async function events(scene: Scene): Promise<string[]> {
  return (await scene.list(EventsV1)).map(({ reason = '' }) => reason)
}

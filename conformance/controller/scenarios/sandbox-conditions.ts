import { deepStrictEqual, match } from 'node:assert/strict'
import { ConfigMaps, PersistentVolumeClaims, Pods, Sandboxes, Services } from '@corral/resources'
import { holds } from '../harness/holds.js'
import { type Scenario, scenario } from '../harness/scenario.js'
import { conditionOf } from '../harness/scene.js'
import { bindPod } from '../harness/scripted-node.js'
import { ownerRef, pod, sandbox, storage } from './objects.js'

const claims = [{ metadata: { name: 'data' }, spec: storage }]

export const sandboxConditionScenarios: readonly Scenario[] = [
  scenario('1-3', 'volume claim templates of a Sandbox cannot be changed, added or removed', async (scene) => {
    scene.fate('untouched')
    await scene.create(Sandboxes, sandbox('with', { volumeClaimTemplates: claims }))
    await scene.create(Sandboxes, sandbox('without'))
    const more = [...claims, { metadata: { name: 'more' }, spec: storage }]
    const refusals = [
      await scene.refused(scene.merge(Sandboxes, 'with', { spec: { volumeClaimTemplates: more } })),
      await scene.refused(scene.merge(Sandboxes, 'without', { spec: { volumeClaimTemplates: claims } })),
      await scene.refused(scene.merge(Sandboxes, 'with', { spec: { volumeClaimTemplates: null } })),
    ]
    for (const refusal of refusals) match(refusal, /volumeClaimTemplates is immutable/)
    scene.note('refusals', refusals)
  }),

  scenario('15-17', 'a Sandbox with a Service waits for its Pod and says so', async (scene) => {
    scene.fate('untouched')
    await scene.create(Sandboxes, sandbox('box', { service: true }))
    await scene.says(Sandboxes, 'box', 'False/DependenciesNotReady: Pod exists with phase: Pending; Service Exists')
    const unknown = 'Unknown/PodSchedulingUnknown: Pod has not reported a PodScheduled condition yet'
    await scene.says(Sandboxes, 'box', unknown, 'PodScheduled')
    await scene.observe()
  }),

  scenario('18', 'a Pod that runs but is not ready', async (scene) => {
    scene.fate('unready')
    await scene.create(Sandboxes, sandbox('box', { service: true }))
    await scene.says(Sandboxes, 'box', 'False/DependenciesNotReady: Pod is Running but not Ready; Service Exists')
    await scene.says(Sandboxes, 'box', 'True/PodScheduled: ', 'PodScheduled')
    await scene.observe()
  }),

  scenario('19', 'a Ready Pod without an address is not enough', async (scene) => {
    scene.fate('no-address')
    await scene.create(Sandboxes, sandbox('box'))
    await scene.says(Sandboxes, 'box', 'False/DependenciesNotReady: Pod is Ready but has no podIPs yet')
    await scene.observe()
  }),

  scenario('21', 'a Pod whose phase is unknown', async (scene) => {
    scene.fate('untouched')
    await scene.create(Sandboxes, sandbox('box'))
    await scene.until(Pods, 'box', () => true)
    await scene.status(Pods, 'box', { phase: 'Unknown' })
    await scene.says(Sandboxes, 'box', 'False/DependenciesNotReady: Pod exists with phase: Unknown')
    await scene.observe()
  }),

  scenario('22a', 'a Pod that failed finishes the Sandbox', async (scene) => {
    scene.fate('unready')
    await scene.create(Sandboxes, sandbox('box'))
    await scene.ends('box', 'failed')
    await scene.says(Sandboxes, 'box', 'False/PodFailed: Pod failed')
    await scene.says(Sandboxes, 'box', 'True/PodFailed: Pod failed', 'Finished')
    await scene.observe()
  }),

  scenario('22b', 'a Pod that succeeded finishes the Sandbox', async (scene) => {
    scene.fate('unready')
    await scene.create(Sandboxes, sandbox('box', { service: true }))
    await scene.ends('box', 'succeeded')
    await scene.says(Sandboxes, 'box', 'False/PodSucceeded: Pod completed successfully')
    await scene.observe()
  }),

  scenario('23', 'a suspended Sandbox leaves an unowned Pod of its name alone', async (scene) => {
    scene.fate('succeeded')
    await scene.create(Pods, pod('box'))
    await scene.create(Sandboxes, sandbox('box', { operatingMode: 'Suspended' }))
    const refused = 'False/PodNotOwned: Refused to delete pod because it is not owned by this sandbox'
    await scene.says(Sandboxes, 'box', refused, 'Suspended')
    await scene.says(Sandboxes, 'box', 'False/SandboxSuspended: Sandbox is suspending')
    await scene.observe()
  }),

  scenario('24', 'why a Pod has no node is copied word for word', async (scene) => {
    scene.fate('unschedulable')
    await scene.create(Sandboxes, sandbox('box'))
    await scene.says(Sandboxes, 'box', 'False/Unschedulable: 0/1 nodes are available', 'PodScheduled')
    await scene.observe()
  }),

  scenario('25', 'a scheduling condition without a reason gets one', async (scene) => {
    scene.fate('untouched')
    await scene.create(Sandboxes, sandbox('box'))
    await scene.until(Pods, 'box', () => true)
    await scene.status(Pods, 'box', { conditions: [{ type: 'PodScheduled', status: 'False' }] })
    await scene.says(Sandboxes, 'box', 'False/PodSchedulingUnknown: ', 'PodScheduled')
    await scene.observe()
  }),

  scenario('30, 51', 'two Pods of one Sandbox: nothing is chosen, made or deleted, and one warning', async (scene) => {
    scene.fate('ready')
    await scene.create(Sandboxes, sandbox('box'))
    const box = await scene.readySandbox('box')
    const labels = { 'agents.x-k8s.io/sandbox-name-hash': (await scene.get(Pods, 'box')).metadata.labels![nameHash]! }
    await scene.create(Pods, pod('second', { labels, ownerReferences: [ownerRef(box)] }))
    await scene.reason(Sandboxes, 'box', 'MultiplePods')
    await scene.merge(Sandboxes, 'box', { spec: { service: true } })
    await scene.observe('two pods')
    deepStrictEqual((await scene.list(Services)).length, 0)
    await scene.delete(Pods, 'second')
    await scene.readySandbox('box')
    await scene.observe('one pod again')
  }),

  scenario('31', 'a ready Sandbox has exactly three conditions', async (scene) => {
    await scene.create(Sandboxes, sandbox('box'))
    const box = await scene.readySandbox('box')
    deepStrictEqual(
      box.status?.conditions?.map(({ type }) => type),
      ['Suspended', 'PodScheduled', 'Ready'],
    )
    await scene.observe()
  }),

  scenario('29, 32', 'suspend and resume, twice', async (scene) => {
    await scene.create(Sandboxes, sandbox('box', { service: true, volumeClaimTemplates: claims }))
    await scene.readySandbox('box')
    for (const round of ['first', 'second']) {
      const before = await scene.get(Pods, 'box')
      await scene.merge(Sandboxes, 'box', { spec: { operatingMode: 'Suspended' } })
      await scene.says(
        Sandboxes,
        'box',
        'True/PodTerminated: Pod has been terminated. Sandbox is suspended',
        'Suspended',
      )
      await scene.says(Sandboxes, 'box', 'False/SandboxSuspended: Sandbox is suspended')
      await scene.observe(`${round} suspension`)
      await scene.merge(Sandboxes, 'box', { spec: { operatingMode: 'Running' } })
      await scene.readySandbox('box')
      holds(
        (await scene.get(Pods, 'box')).metadata.uid !== before.metadata.uid,
        '(get(Pods, box)).metadata.uid !== before.metadata.uid',
      )
      await scene.observe(`${round} resumption`)
    }
    deepStrictEqual((await scene.list(PersistentVolumeClaims)).length, 1)
  }),

  scenario('33', 'suspension waits for a Pod that a finalizer holds', async (scene) => {
    await scene.create(Sandboxes, sandbox('box'))
    const ready = await scene.readySandbox('box')
    await scene.merge(Pods, 'box', { metadata: { finalizers: ['example.com/hold'] } })
    await scene.merge(Sandboxes, 'box', { spec: { operatingMode: 'Suspended' } })
    await scene.says(Sandboxes, 'box', 'False/PodTerminating: Pod is terminating. Sandbox is suspending', 'Suspended')
    const held = await scene.get(Sandboxes, 'box')
    const since = (object: typeof held): string | undefined => conditionOf(object, 'Suspended')?.lastTransitionTime
    deepStrictEqual(since(held), since(ready))
    await scene.observe('held')
    await scene.merge(Pods, 'box', { metadata: { finalizers: null } })
    await scene.says(Sandboxes, 'box', 'True/PodTerminated: Pod has been terminated. Sandbox is suspended', 'Suspended')
    await scene.observe('gone')
  }),

  scenario('34', 'a Pod deleted from outside is made anew', async (scene) => {
    await scene.create(Sandboxes, sandbox('box'))
    const ready = await scene.readySandbox('box')
    const { uid } = (await scene.get(Pods, 'box')).metadata
    await scene.delete(Pods, 'box')
    await scene.until(Pods, 'box', ({ metadata }) => metadata.uid !== uid)
    const again = await scene.readySandbox('box')
    const since = (object: typeof again): string | undefined => conditionOf(object, 'Suspended')?.lastTransitionTime
    deepStrictEqual(since(again), since(ready))
    await scene.observe()
  }),

  scenario('53', 'no second Pod while the first is terminating', async (scene) => {
    await scene.create(Sandboxes, sandbox('box'))
    await scene.readySandbox('box')
    await scene.merge(Pods, 'box', { metadata: { finalizers: ['example.com/hold'] } })
    await scene.delete(Pods, 'box')
    await scene.rest()
    deepStrictEqual((await scene.list(Pods)).length, 1)
    const { conditions } = (await scene.get(Sandboxes, 'box')).status ?? {}
    scene.note(
      'conditions while it terminates',
      conditions?.map(({ type, status, reason, message }) => ({ type, status, reason, message })),
    )
    await scene.merge(Pods, 'box', { metadata: { finalizers: null } })
    await scene.until(Pods, 'box', ({ metadata }) => !metadata.deletionTimestamp)
    await scene.readySandbox('box')
  }),

  scenario('58', 'the node of a Pod rides along with the next status', async (scene) => {
    scene.fate('untouched')
    await scene.create(Sandboxes, sandbox('box'))
    const created = await scene.until(Pods, 'box', () => true)
    await scene.rest()
    const before = await scene.get(Sandboxes, 'box')
    await bindPod(scene.client, created)
    await scene.rest()
    const bound = await scene.get(Sandboxes, 'box')
    scene.note('status writes for the node alone', before.metadata.resourceVersion !== bound.metadata.resourceVersion)
    scene.fate('ready')
    const ready = await scene.readySandbox('box')
    holds(ready.status?.nodeName, 'ready.status?.nodeName')
    await scene.observe()
  }),

  scenario('20', 'objects that are none of its business stay', async (scene) => {
    await scene.create(ConfigMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'box' }, data: { a: 'b' } })
    await scene.create(Sandboxes, sandbox('box'))
    await scene.readySandbox('box')
    await scene.delete(Sandboxes, 'box')
    await scene.gone(Pods, 'box')
    holds(await scene.find(ConfigMaps, 'box'), 'find(ConfigMaps, box)')
    await scene.observe()
  }),
]

const nameHash = 'agents.x-k8s.io/sandbox-name-hash'

import { deepStrictEqual } from 'node:assert/strict'
import { nameHash, Pods, Sandboxes, SandboxTemplates, Services, type Stored } from '@corral/resources'
import { holds } from '../harness/holds.js'
import { type Scenario, scenario } from '../harness/scenario.js'
import type { Scene } from '../harness/scene.js'
import {
  AGENTS,
  adoptableLabel,
  EXTENSIONS,
  nameHashLabel,
  ownerRef,
  pod,
  podTemplate,
  poolLabel,
  sandbox,
  template,
  templateRefLabel,
} from './objects.js'

const podName = `${AGENTS}/pod-name`

export const sandboxPodScenarios: readonly Scenario[] = [
  scenario('35', 'the smallest Sandbox gets a Pod of its name and nothing else', async (scene) => {
    await scene.create(Sandboxes, sandbox('box'))
    await scene.readySandbox('box')
    const created = await scene.get(Pods, 'box')
    deepStrictEqual(created.metadata.labels, { [nameHashLabel]: nameHash('box') })
    deepStrictEqual((await scene.list(Services)).length, 0)
    await scene.observe()
    scene.note('managers of the Pod', managersOf(created))
  }),

  scenario('36-37', 'labels and annotations of the template reach the Pod and are listed', async (scene) => {
    const metadata = { labels: { zone: 'a', app: 'b' }, annotations: { note: 'x', 'example.com/y': '' } }
    await scene.create(Sandboxes, sandbox('both', { podTemplate: podTemplate({ metadata }) }))
    const labels = { labels: { app: 'only' } }
    await scene.create(Sandboxes, sandbox('labels', { podTemplate: podTemplate({ metadata: labels }) }))
    await scene.readySandbox('both')
    await scene.readySandbox('labels')
    await scene.observe()
  }),

  scenario('38', 'reserved keys of the template never reach the Pod', async (scene) => {
    const metadata = {
      labels: { [nameHashLabel]: 'evil', [`${EXTENSIONS}/x`]: 'y', fine: 'yes' },
      annotations: { [podName]: 'other', 'opentelemetry.io/trace-context': '{}' },
    }
    await scene.create(Sandboxes, sandbox('box', { podTemplate: podTemplate({ metadata }) }))
    await scene.readySandbox('box')
    await scene.observe()
  }),

  scenario('39-40', 'keys that left the template leave the Pod; others stay', async (scene) => {
    const metadata = { labels: { keep: '1', drop: '1' }, annotations: { gone: '1' } }
    await scene.create(Sandboxes, sandbox('box', { podTemplate: podTemplate({ metadata }) }))
    await scene.readySandbox('box')
    await scene.merge(Pods, 'box', {
      metadata: {
        labels: { user: 'own', [`${AGENTS}/system-label`]: 'stays', [`${AGENTS}/old`]: 'scrubbed' },
        annotations: { own: 'stays', [`${AGENTS}/propagated-labels`]: `${AGENTS}/old,drop,keep` },
      },
    })
    const change = { labels: { drop: null, added: '2' }, annotations: { gone: null } }
    await scene.merge(Sandboxes, 'box', { spec: { podTemplate: { metadata: change } } })
    await scene.until(Pods, 'box', (object) => object.metadata.labels?.added === '2')
    await scene.observe()
  }),

  scenario('41', 'a Pod that says it is adoptable is adopted', async (scene) => {
    await scene.create(Pods, pod('box', { labels: { [adoptableLabel]: 'true', own: 'yes' } }))
    const metadata = { labels: { app: 'b' } }
    await scene.create(Sandboxes, sandbox('box', { podTemplate: podTemplate({ metadata }) }))
    await scene.readySandbox('box')
    await scene.observe()
  }),

  scenario('42', 'a Pod with the tracking label is adopted', async (scene) => {
    await scene.create(Pods, pod('box', { labels: { [nameHashLabel]: nameHash('box') } }))
    await scene.create(Sandboxes, sandbox('box'))
    await scene.readySandbox('box')
    holds(
      (await scene.get(Pods, 'box')).metadata.ownerReferences?.length === 1,
      '(get(Pods, box)).metadata.ownerReferences?.length === 1',
    )
    await scene.observe()
  }),

  scenario('43', 'a Pod without either label is refused', async (scene) => {
    await scene.create(Pods, pod('box'))
    await scene.create(Sandboxes, sandbox('box'))
    await scene.reason(Sandboxes, 'box', 'ReconcilerError')
    holds(!(await scene.get(Pods, 'box')).metadata.ownerReferences, '!(get(Pods, box)).metadata.ownerReferences')
    await scene.observe()
  }),

  scenario('43b', 'a Pod named by an annotation is refused without a label', async (scene) => {
    await scene.create(Pods, pod('other'))
    await scene.create(Sandboxes, sandbox('box', {}, { annotations: { [podName]: 'other' } }))
    await scene.reason(Sandboxes, 'box', 'ReconcilerError')
    await scene.observe()
  }),

  scenario('44a', 'a Pod of another controller stays and is reported', async (scene) => {
    await foreignPod(scene)
    await scene.create(Sandboxes, sandbox('box', {}, { annotations: { [podName]: 'box', other: 'kept' } }))
    await scene.reason(Sandboxes, 'box', 'ReconcilerError')
    await scene.observe()
  }),

  scenario('44b', 'a suspended Sandbox does not delete the Pod of another controller', async (scene) => {
    await foreignPod(scene)
    const annotations = { [podName]: 'box', other: 'kept' }
    await scene.create(Sandboxes, sandbox('box', { operatingMode: 'Suspended' }, { annotations }))
    await scene.reason(Sandboxes, 'box', 'SandboxSuspended')
    await scene.observe()
  }),

  scenario('45a', 'labels of pool and template need an owner of the extensions to reach the Pod', async (scene) => {
    const labels = { [poolLabel]: 'abcdef01', [templateRefLabel]: '01abcdef' }
    await scene.create(Sandboxes, sandbox('box', { podTemplate: podTemplate({ metadata: { labels } }) }, { labels }))
    await scene.readySandbox('box')
    await scene.observe()
  }),

  scenario('46', 'any owner of the extensions lets the template label through', async (scene) => {
    const owner = await scene.create(SandboxTemplates, template('tmpl', { networkPolicyManagement: 'Unmanaged' }))
    const labels = { [poolLabel]: 'abcdef01', [templateRefLabel]: '01abcdef' }
    await scene.create(Sandboxes, sandbox('box', {}, { labels, ownerReferences: [ownerRef(owner)] }))
    await scene.readySandbox('box')
    await scene.observe('with both')
    await scene.merge(Sandboxes, 'box', { metadata: { labels: { [templateRefLabel]: null } } })
    await scene.until(Pods, 'box', ({ metadata }) => !metadata.labels?.[templateRefLabel])
    await scene.observe('without')
  }),

  scenario('48', 'who created a Sandbox is copied in a normal form', async (scene) => {
    const createdBy = `${AGENTS}/created-by`
    for (const [name, value] of [
      ['go', 'go-client'],
      ['bogus', 'bogus'],
    ] as const)
      await scene.create(Sandboxes, sandbox(name, {}, { labels: { [createdBy]: value } }))
    await scene.create(Sandboxes, sandbox('absent'))
    for (const name of ['go', 'bogus', 'absent']) await scene.readySandbox(name)
    await scene.merge(Pods, 'absent', { metadata: { labels: { [createdBy]: 'python-client' } } })
    await scene.until(Pods, 'absent', ({ metadata }) => !metadata.labels?.[createdBy])
    await scene.observe()
  }),

  scenario('49', 'an annotation that names a missing Pod gives way to the Pod it owns', async (scene) => {
    await scene.create(Sandboxes, sandbox('box'))
    await scene.readySandbox('box')
    await scene.merge(Sandboxes, 'box', { metadata: { annotations: { [podName]: 'missing' } } })
    await scene.until(Sandboxes, 'box', ({ metadata }) => metadata.annotations?.[podName] !== 'missing')
    await scene.observe()
    deepStrictEqual((await scene.list(Pods)).length, 1)
  }),

  scenario('50', 'the owned Pod wins over an adoptable one', async (scene) => {
    await scene.create(Sandboxes, sandbox('box'))
    await scene.readySandbox('box')
    await scene.create(Pods, pod('stray', { labels: { [adoptableLabel]: 'true' } }))
    await scene.merge(Sandboxes, 'box', { metadata: { annotations: { [podName]: 'stray' } } })
    await scene.until(Sandboxes, 'box', ({ metadata }) => metadata.annotations?.[podName] !== 'stray')
    await scene.observe()
    holds(!(await scene.get(Pods, 'stray')).metadata.ownerReferences, '!(get(Pods, stray)).metadata.ownerReferences')
  }),

  scenario('52', 'a Pod with the label that belongs to an earlier Sandbox does not count', async (scene) => {
    await scene.create(Sandboxes, sandbox('old'))
    const old = await scene.readySandbox('old')
    const labels = { [nameHashLabel]: nameHash('box') }
    await scene.create(Pods, pod('leftover', { labels, ownerReferences: [ownerRef(old, { name: 'old' })] }))
    await scene.create(Pods, pod('unowned', { labels }))
    await scene.create(Sandboxes, sandbox('box'))
    await scene.readySandbox('box')
    scene.note('says', (await scene.get(Sandboxes, 'box')).status?.conditions?.at(-1)?.message)
  }),

  scenario('54', 'an empty Pod name annotation counts as none', async (scene) => {
    await scene.create(Sandboxes, sandbox('box', {}, { annotations: { [podName]: '' } }))
    await scene.readySandbox('box')
    holds(await scene.find(Pods, 'box'), 'find(Pods, box)')
    await scene.observe()
  }),

  scenario('41b', 'an annotation may name the Pod to adopt', async (scene) => {
    await scene.create(Pods, pod('prepared', { labels: { [adoptableLabel]: 'true' } }))
    await scene.create(Sandboxes, sandbox('box', {}, { annotations: { [podName]: 'prepared' } }))
    await scene.readySandbox('box')
    holds(!(await scene.find(Pods, 'box')), '!(find(Pods, box))')
    await scene.observe()
  }),

  scenario('57', 'an edited Pod template changes no Pod that runs', async (scene) => {
    await scene.create(Sandboxes, sandbox('box'))
    await scene.readySandbox('box')
    const spec = { containers: [{ name: 'main', image: 'busybox:2' }] }
    await scene.merge(Sandboxes, 'box', { spec: { podTemplate: { spec } } })
    await scene.until(
      Sandboxes,
      'box',
      ({ status, metadata }) => status?.conditions?.at(-1)?.observedGeneration === metadata.generation,
    )
    await scene.observe()
  }),
]

async function foreignPod(scene: Scene): Promise<void> {
  const owner = await scene.create(Services, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'owner' },
    spec: { clusterIP: 'None' },
  })
  await scene.create(Pods, pod('box', { ownerReferences: [ownerRef(owner)] }))
}

function managersOf({ metadata }: Stored<object & { metadata?: object }>): string[] {
  const fields = (metadata as { managedFields?: { manager?: string; subresource?: string }[] }).managedFields ?? []
  return fields.filter(({ subresource }) => !subresource).map(({ manager = '' }) => manager)
}

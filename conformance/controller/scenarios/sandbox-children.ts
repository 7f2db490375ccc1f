import { deepStrictEqual } from 'node:assert/strict'
import { type Container, nameHash, PersistentVolumeClaims, Pods, Sandboxes, Services } from '@corral/resources'
import { holds } from '../harness/holds.js'
import { type Scenario, scenario } from '../harness/scenario.js'
import { adoptableLabel, headless, inSeconds, nameHashLabel, pod, podTemplate, sandbox, storage } from './objects.js'

const container = (name: string, ports: Container['ports'], change: Partial<Container> = {}): Container => ({
  name,
  image: 'busybox:1',
  ...(ports && { ports }),
  ...change,
})
const withContainers = (
  ...containers: Container[]
): { service: true; podTemplate: ReturnType<typeof podTemplate> } => ({
  service: true,
  podTemplate: podTemplate({ spec: { containers } }),
})
const pvc = (name: string, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, ...metadata },
  spec: storage,
})
const data = [{ metadata: { name: 'data', labels: { a: 'b' }, annotations: { c: 'd' } }, spec: storage }]

export const sandboxChildScenarios: readonly Scenario[] = [
  scenario('59', 'ports of the Service come from the containers, once each, in order', async (scene) => {
    const first = container('first', [{ containerPort: 9090, protocol: 'UDP' }, { containerPort: 8080 }])
    const second = container('second', [
      { name: 'http', containerPort: 8080 },
      { containerPort: 9090, protocol: 'TCP' },
    ])
    await scene.create(Sandboxes, sandbox('box', withContainers(first, second)))
    await scene.readySandbox('box')
    await scene.observe()
  }),

  scenario('60-61', 'names of ports are used once and made where they are missing', async (scene) => {
    const twice = [
      container('a', [{ name: 'http', containerPort: 9090 }]),
      container('b', [{ name: 'http', containerPort: 8080 }]),
    ]
    const taken = [container('a', [{ name: 'p-8080-tcp', containerPort: 9090 }, { containerPort: 8080 }])]
    await scene.create(Sandboxes, sandbox('twice', withContainers(...twice)))
    await scene.create(Sandboxes, sandbox('taken', withContainers(...taken)))
    await scene.readySandbox('twice')
    await scene.readySandbox('taken')
    await scene.observe()
  }),

  scenario('62', 'sidecars count, ordinary init containers do not', async (scene) => {
    const spec = {
      containers: [container('main', [{ containerPort: 80 }])],
      initContainers: [
        container('sidecar', [{ containerPort: 81 }], { restartPolicy: 'Always' }),
        container('init', [{ containerPort: 82 }]),
      ],
    }
    await scene.create(Sandboxes, sandbox('box', { service: true, podTemplate: podTemplate({ spec }) }))
    await scene.readySandbox('box')
    await scene.observe()
  }),

  scenario('63', 'an owned Service that drifted is repaired', async (scene) => {
    await scene.create(Sandboxes, sandbox('box', withContainers(container('main', [{ containerPort: 80 }]))))
    await scene.readySandbox('box')
    const drift = {
      metadata: { labels: { [nameHashLabel]: 'x', own: 'y' } },
      spec: { selector: { extra: 'z' }, ports: [{ name: 'n', port: 1 }] },
    }
    await scene.merge(Services, 'box', drift)
    await scene.until(Services, 'box', ({ spec }) => spec?.ports?.[0]?.port === 80 && !spec.selector?.extra)
    await scene.observe('all repaired')
    await scene.merge(Sandboxes, 'box', { spec: { service: null } })
    await scene.rest()
    await scene.merge(Services, 'box', { spec: { selector: { extra: 'z' }, ports: [{ name: 'n', port: 1 }] } })
    await scene.until(Services, 'box', ({ spec }) => !spec?.selector?.extra)
    await scene.observe('unset: ports left')
  }),

  scenario('64', 'fields of ports that nobody asked about survive', async (scene) => {
    await scene.create(Sandboxes, sandbox('box', withContainers(container('main', [{ containerPort: 80 }]))))
    await scene.readySandbox('box')
    const ports = [{ name: 'p-80-tcp', protocol: 'TCP', port: 80, targetPort: 80, appProtocol: 'kubernetes.io/h2c' }]
    await scene.merge(Services, 'box', { spec: { ports } })
    await scene.rest()
    deepStrictEqual((await scene.get(Services, 'box')).spec?.ports?.[0]?.appProtocol, 'kubernetes.io/h2c')
    await scene.observe()
  }),

  scenario('65a', 'a headless Service with the right label is adopted and overwritten', async (scene) => {
    await scene.create(Services, headless('box', { labels: { [adoptableLabel]: 'true' } }))
    await scene.create(Sandboxes, sandbox('box', { service: true }))
    await scene.readySandbox('box')
    await scene.observe()
  }),

  scenario('65b', 'a Service with an address of its own is not adopted', async (scene) => {
    await scene.create(Services, headless('box', { labels: { [adoptableLabel]: 'true' } }, { clusterIP: '10.96.77.7' }))
    await scene.create(Sandboxes, sandbox('box', { service: true }))
    await scene.reason(Sandboxes, 'box', 'ReconcilerError')
    await scene.observe()
  }),

  scenario('65c', 'a Service without a label is not adopted', async (scene) => {
    await scene.create(Services, headless('box'))
    await scene.create(Sandboxes, sandbox('box', { service: true }))
    await scene.reason(Sandboxes, 'box', 'ReconcilerError')
    await scene.observe()
  }),

  scenario('66', 'an unowned Service is ignored where none is asked for', async (scene) => {
    await scene.create(Services, headless('unset', { labels: { [adoptableLabel]: 'true' } }))
    await scene.create(Services, headless('no', { labels: { [adoptableLabel]: 'true' } }))
    await scene.create(Sandboxes, sandbox('unset'))
    await scene.create(Sandboxes, sandbox('no', { service: false }))
    await scene.readySandbox('unset')
    await scene.readySandbox('no')
    await scene.observe()
  }),

  scenario('67', 'turning the Service off deletes it', async (scene) => {
    await scene.create(Sandboxes, sandbox('box', { service: true }))
    await scene.readySandbox('box')
    await scene.merge(Sandboxes, 'box', { spec: { service: false } })
    await scene.gone(Services, 'box')
    await scene.observe()
  }),

  scenario(
    '68',
    'another cluster domain shows in the Service name',
    async (scene) => {
      await scene.create(Sandboxes, sandbox('box', { service: true }))
      deepStrictEqual(
        (await scene.readySandbox('box')).status?.serviceFQDN,
        `box.${scene.namespace}.svc.my-company.local`,
      )
      await scene.observe()
    },
    { flags: ['--cluster-domain=my-company.local'] },
  ),

  scenario('69', 'volume claims are made, named after the Sandbox and mounted in place of a volume', async (scene) => {
    const spec = {
      containers: [container('main', undefined, { volumeMounts: [{ name: 'data', mountPath: '/data' }] })],
      volumes: [
        { name: 'data', emptyDir: {} },
        { name: 'other', emptyDir: {} },
      ],
    }
    await scene.create(Sandboxes, sandbox('box', { podTemplate: podTemplate({ spec }), volumeClaimTemplates: data }))
    await scene.readySandbox('box')
    holds(await scene.find(PersistentVolumeClaims, 'data-box'), 'find(PersistentVolumeClaims, data-box)')
    await scene.observe()
  }),

  scenario('70a', 'a volume claim with the right label is adopted', async (scene) => {
    await scene.create(PersistentVolumeClaims, pvc('data-a', { labels: { [adoptableLabel]: 'true' } }))
    await scene.create(PersistentVolumeClaims, pvc('data-b', { labels: { [nameHashLabel]: nameHash('b') } }))
    await scene.create(Sandboxes, sandbox('a', { volumeClaimTemplates: data }))
    await scene.create(Sandboxes, sandbox('b', { volumeClaimTemplates: data }))
    await scene.readySandbox('a')
    await scene.readySandbox('b')
    await scene.observe()
  }),

  scenario('70b', 'a volume claim without a label is refused, and the Pod is made all the same', async (scene) => {
    await scene.create(PersistentVolumeClaims, pvc('data-box'))
    await scene.create(Sandboxes, sandbox('box', { volumeClaimTemplates: data }))
    await scene.reason(Sandboxes, 'box', 'ReconcilerError')
    await scene.until(Pods, 'box', () => true)
    await scene.observe()
  }),

  scenario('71-72', 'a Sandbox that expires keeps its conditions and loses Pod and Service', async (scene) => {
    await scene.create(Sandboxes, sandbox('box', { service: true, volumeClaimTemplates: data }))
    await scene.readySandbox('box')
    await scene.merge(Sandboxes, 'box', { spec: { shutdownTime: inSeconds(4) } })
    await scene.says(Sandboxes, 'box', 'False/SandboxExpired: Sandbox has expired')
    await scene.gone(Pods, 'box')
    await scene.gone(Services, 'box')
    await scene.observe('expired')
    await scene.merge(Sandboxes, 'box', { spec: { shutdownTime: null } })
    await scene.readySandbox('box')
    await scene.observe('revived')
  }),

  scenario('73', 'a finished Sandbox that expires stays finished', async (scene) => {
    scene.fate('unready')
    await scene.create(Sandboxes, sandbox('box'))
    await scene.ends('box', 'succeeded')
    await scene.reason(Sandboxes, 'box', 'PodSucceeded')
    await scene.merge(Sandboxes, 'box', { spec: { shutdownTime: inSeconds(-1) } })
    await scene.reason(Sandboxes, 'box', 'SandboxExpired')
    await scene.gone(Pods, 'box')
    await scene.observe()
  }),

  scenario('74', 'with policy Delete nothing of it remains', async (scene) => {
    await scene.create(Sandboxes, sandbox('box', { service: true, shutdownPolicy: 'Delete' }))
    await scene.readySandbox('box')
    await scene.merge(Sandboxes, 'box', { spec: { shutdownTime: inSeconds(1) } })
    await scene.gone(Sandboxes, 'box')
    await scene.gone(Pods, 'box')
    await scene.gone(Services, 'box')
    await scene.observe()
  }),

  scenario('75', 'expiry spares a Pod it does not own', async (scene) => {
    await scene.create(Sandboxes, sandbox('box', { service: true }))
    await scene.readySandbox('box')
    await scene.merge(Pods, 'box', {
      metadata: { finalizers: ['example.com/hold'], ownerReferences: null, labels: { [nameHashLabel]: null } },
    })
    await scene.merge(Sandboxes, 'box', { spec: { shutdownTime: inSeconds(-1) } })
    await scene.gone(Services, 'box')
    holds(!(await scene.get(Pods, 'box')).metadata.deletionTimestamp, '!(get(Pods, box)).metadata.deletionTimestamp')
    await scene.merge(Pods, 'box', { metadata: { finalizers: null } })
  }),

  scenario('76', 'expiry deletes the Pod that the annotation names', async (scene) => {
    await scene.create(Pods, pod('prepared', { labels: { [adoptableLabel]: 'true' } }))
    await scene.create(Sandboxes, sandbox('box', {}, { annotations: { 'agents.x-k8s.io/pod-name': 'prepared' } }))
    await scene.readySandbox('box')
    await scene.merge(Sandboxes, 'box', { spec: { shutdownTime: inSeconds(-1) } })
    await scene.gone(Pods, 'prepared')
    await scene.observe()
  }),

  scenario('77', 'a Sandbox born expired only says so', async (scene) => {
    await scene.create(Sandboxes, sandbox('box', { shutdownTime: inSeconds(-60) }))
    await scene.reason(Sandboxes, 'box', 'SandboxExpired')
    await scene.observe()
    deepStrictEqual((await scene.list(Pods)).length, 0)
  }),
]

import {
  defineKind,
  type KubeObject,
  nameHash,
  PersistentVolumeClaims,
  Pods,
  type Sandbox,
  Sandboxes,
  Services,
  type Stored,
} from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { condition, namespace, sandbox } from './cluster.js'
import { foreignOwner, ownerRef, pod, ref, runningReady, setPodStatus } from './objects.js'
import { type Passes, startPasses } from './passes.js'

const hash = nameHash('box')
const hashLabel = 'agents.x-k8s.io/sandbox-name-hash'
const adoptable = { 'agents.x-k8s.io/adoptable': 'true' }

async function started(
  spec: Partial<Sandbox['spec']> = {},
  options?: Parameters<typeof startPasses>[0],
): Promise<Passes & { box: Stored<Sandbox> }> {
  const passes = await startPasses(options)
  return Object.assign(passes, { box: await passes.client.create(Sandboxes, sandbox('box', spec)) })
}

const readBox = (passes: Passes): Promise<Stored<Sandbox>> => passes.client.get(Sandboxes, ref('box'))
const isGoing = async (passes: Passes, name: string): Promise<boolean> => {
  const found = await passes.client.find(Pods, ref(name))
  return found === undefined || found.metadata.deletionTimestamp !== undefined
}
const withPorts: Partial<Sandbox['spec']> = {
  service: true,
  podTemplate: {
    spec: { containers: [{ name: 'main', image: 'x', ports: [{ containerPort: 8888, protocol: 'TCP' }] }] },
  },
}

describe('the Service', () => {
  it('S0-D3 S1-F2a S2-C2: is headless, selects the Pod and fills the status', async () => {
    await using passes = await started(withPorts)
    await passes.sandbox('box')
    const made = await passes.client.get(Services, ref('box'))
    expect(made.spec).toMatchObject({ clusterIP: 'None', selector: { [hashLabel]: hash } })
    expect(made.spec?.ports?.map(({ name, port, targetPort }) => [name, port, targetPort])).toEqual([
      ['p-8888-tcp', 8888, 8888],
    ])
    expect((await readBox(passes)).status).toMatchObject({
      service: 'box',
      serviceFQDN: 'box.default.svc.cluster.local',
    })
  })

  it.each([
    { service: true, ports: [8888], when: 'asked for, ports included' },
    { service: undefined, ports: [1], when: 'merely kept, ports left' },
  ])('scenario 63: drift is repaired when $when', async ({ service, ports }) => {
    await using passes = await started(withPorts)
    await passes.sandbox('box')
    if (service === undefined) {
      await passes.client.patch(Sandboxes, ref('box'), { type: 'merge', body: { spec: { service: null } } })
    }
    const drift = {
      metadata: { labels: { [hashLabel]: 'x' } },
      spec: { selector: { more: '1' }, ports: [{ port: 1 }] },
    }
    await passes.client.patch(Services, ref('box'), { type: 'merge', body: drift })
    await passes.sandbox('box')
    const fixed = await passes.client.get(Services, ref('box'))
    expect(fixed.metadata.labels).toEqual({ [hashLabel]: hash })
    expect(fixed.spec?.selector).toEqual({ [hashLabel]: hash })
    expect(fixed.spec?.ports?.map(({ port }) => port)).toEqual(ports)
    passes.writes.length = 0
    await passes.sandbox('box')
    expect(passes.writes).toEqual([])
  })

  it.each([
    { when: 'headless and marked', spec: { clusterIP: 'None' }, labels: adoptable, error: undefined },
    { when: 'it has an address', spec: {}, labels: adoptable, error: 'expected "None", field is immutable' },
    { when: 'it is not marked', spec: { clusterIP: 'None' }, labels: {}, error: 'cannot adopt unowned service "box"' },
  ])('scenario 65: an unowned Service, when $when', async ({ spec, labels, error }) => {
    await using passes = await started({ service: true })
    const ports = [{ port: 5000 }]
    const object = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'box', namespace, labels },
      spec: { ...spec, ports, selector: { a: 'b' } },
    }
    await passes.client.create(Services, object)
    if (error) {
      await expect(passes.sandbox('box')).rejects.toThrow(error)
      return
    }
    await passes.sandbox('box')
    const taken = await passes.client.get(Services, ref('box'))
    expect(taken.metadata.ownerReferences).toEqual([ownerRef(passes.box)])
    expect(taken.spec?.selector).toEqual({ [hashLabel]: hash })
    expect(taken.spec?.ports ?? []).toEqual([])
  })

  it.each([undefined, false])('scenario 66: an unowned Service is ignored when service is %s', async (service) => {
    await using passes = await started(service === undefined ? {} : { service })
    const object = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'box', namespace },
      spec: { clusterIP: 'None' },
    }
    await passes.client.create(Services, object)
    await passes.sandbox('box')
    expect((await readBox(passes)).status?.service).toBeUndefined()
    expect((await passes.client.get(Services, ref('box'))).metadata.ownerReferences).toBeUndefined()
  })

  it("scenario 67: ours is deleted when no longer wanted, and somebody else's is an error when wanted", async () => {
    await using passes = await started({ service: true })
    await passes.sandbox('box')
    await passes.client.patch(Sandboxes, ref('box'), { type: 'merge', body: { spec: { service: false } } })
    await passes.sandbox('box')
    expect(await passes.client.find(Services, ref('box'))).toBeUndefined()
    expect((await readBox(passes)).status?.serviceFQDN).toBeUndefined()
    await passes.client.patch(Sandboxes, ref('box'), { type: 'merge', body: { spec: { service: true } } })
    const metadata = { name: 'box', namespace, ownerReferences: [foreignOwner] }
    await passes.client.create(Services, { apiVersion: 'v1', kind: 'Service', metadata, spec: { clusterIP: 'None' } })
    await expect(passes.sandbox('box')).rejects.toThrow('service "box" is owned by Deployment/other')
  })
})

describe('volumes', () => {
  const claims = [
    {
      metadata: { name: 'data', labels: { a: '1' } },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    },
  ]

  it('S2-C5, scenario 69: one claim per template, mounted in place of a volume of that name', async () => {
    const podTemplate = {
      spec: {
        containers: [{ name: 'main', image: 'x' }],
        volumes: [
          { name: 'data', emptyDir: {} },
          { name: 'tmp', emptyDir: {} },
        ],
      },
    }
    await using passes = await started({ volumeClaimTemplates: claims, podTemplate })
    await passes.sandbox('box')
    const made = await passes.client.get(PersistentVolumeClaims, ref('data-box'))
    expect(made.metadata.labels).toEqual({ a: '1', [hashLabel]: hash })
    expect(made.metadata.ownerReferences).toEqual([ownerRef(passes.box)])
    const { spec } = await passes.client.get(Pods, ref('box'))
    expect(spec?.volumes).toEqual([
      { name: 'tmp', emptyDir: {} },
      { name: 'data', persistentVolumeClaim: { claimName: 'data-box' } },
    ])
  })

  it.each([
    { when: 'marked', metadata: { labels: adoptable }, error: undefined },
    { when: 'with our hash', metadata: { labels: { [hashLabel]: hash } }, error: undefined },
    { when: 'unmarked', metadata: {}, error: 'cannot adopt unowned PVC "data-box"' },
    {
      when: 'of another owner',
      metadata: { ownerReferences: [foreignOwner] },
      error: 'PVC "data-box" is owned by Deployment/other',
    },
  ])('scenario 70: an existing claim, $when', async ({ metadata, error }) => {
    await using passes = await started({ volumeClaimTemplates: claims })
    const object = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'data-box', namespace, ...metadata },
    }
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
    await passes.client.create(PersistentVolumeClaims, { ...object, spec })
    if (error) await expect(passes.sandbox('box')).rejects.toThrow(error)
    else {
      await passes.sandbox('box')
      const taken = await passes.client.get(PersistentVolumeClaims, ref('data-box'))
      expect(taken.metadata.ownerReferences).toEqual([ownerRef(passes.box)])
    }
    expect(await passes.client.find(Pods, ref('box')), 'the Pod is made all the same').toBeDefined()
  })
})

describe('expiry', () => {
  const inMs = (passes: { nowMs: number }, ms: number): string => new Date(passes.nowMs + ms).toISOString()
  const expireAt = (passes: Passes, ms: number, policy?: string): Promise<unknown> => {
    const spec = { shutdownTime: inMs(passes, ms), ...(policy && { shutdownPolicy: policy }) }
    return passes.client.patch(Sandboxes, ref('box'), { type: 'merge', body: { spec } })
  }

  it.each([
    { leftMs: 0, result: 1 },
    { leftMs: 500, result: 2_000 },
    { leftMs: 7_200_000, result: 7_200_000 },
  ])('scenario 71: with $leftMs ms left it looks again after $result ms', async ({ leftMs, result }) => {
    await using passes = await started()
    passes.nowMs = Math.floor(passes.nowMs / 1000) * 1000
    await expireAt(passes, leftMs)
    expect(await passes.sandbox('box')).toEqual({ requeueAfterMs: result })
  })

  it('scenarios 72, 73: it is recorded first, then Pod and Service go and only conditions remain', async () => {
    await using passes = await started({ service: true })
    await passes.sandbox('box')
    await setPodStatus(passes.client, 'box', { ...runningReady(), phase: 'Succeeded' })
    await passes.sandbox('box')
    await expireAt(passes, -1_000)
    expect(await passes.sandbox('box')).toEqual({ requeueAfterMs: 1 })
    const marked = await readBox(passes)
    expect(condition(marked, 'Ready')?.reason).toBe('SandboxExpired')
    expect(condition(marked, 'PodScheduled')).toBeUndefined()
    expect(await passes.client.find(Pods, ref('box'))).toBeDefined()

    expect(await passes.sandbox('box')).toEqual({})
    const expired = await readBox(passes)
    expect(Object.keys(expired.status ?? {})).toEqual(['conditions'])
    expect(condition(expired, 'Finished')?.reason).toBe('PodSucceeded')
    expect(await isGoing(passes, 'box')).toBe(true)
    expect(await passes.client.find(Services, ref('box'))).toBeUndefined()
    passes.writes.length = 0
    await passes.sandbox('box')
    expect(passes.writes.filter(({ what }) => what.startsWith('PATCH'))).toEqual([])
  })

  it('scenario 74: with policy Delete the Sandbox goes too', async () => {
    await using passes = await started()
    await passes.sandbox('box')
    await expireAt(passes, -1_000, 'Delete')
    await passes.sandbox('box')
    await passes.sandbox('box')
    expect(await passes.client.find(Sandboxes, ref('box'))).toBeUndefined()
  })

  it('scenarios 75, 76: only a Pod of ours is deleted, under the name the annotation gives it', async () => {
    await using passes = await started()
    await passes.client.create(Pods, pod('box', { ownerReferences: [foreignOwner] }))
    await passes.client.create(
      Pods,
      pod('noted', { labels: { [hashLabel]: hash }, ownerReferences: [ownerRef(passes.box)] }),
    )
    const body = { metadata: { annotations: { 'agents.x-k8s.io/pod-name': 'noted' } } }
    await passes.client.patch(Sandboxes, ref('box'), { type: 'merge', body })
    await expireAt(passes, -1_000)
    await passes.sandbox('box')
    await passes.sandbox('box')
    expect(await isGoing(passes, 'noted')).toBe(true)
    expect((await passes.client.get(Pods, ref('box'))).metadata.deletionTimestamp).toBeUndefined()
  })

  it('scenario 77: without children it is just recorded', async () => {
    await using passes = await started()
    await expireAt(passes, -1_000)
    await passes.sandbox('box')
    expect(condition(await readBox(passes), 'Ready')?.reason).toBe('SandboxExpired')
    await passes.sandbox('box')
    expect(await passes.client.find(Pods, ref('box'))).toBeUndefined()
  })

  it('is not for ever: a later shutdown time brings the Pod back', async () => {
    await using passes = await started()
    await expireAt(passes, -1_000)
    await passes.sandbox('box')
    await passes.sandbox('box')
    await expireAt(passes, 3_600_000)
    await passes.sandbox('box')
    expect(await passes.client.find(Pods, ref('box'))).toBeDefined()
  })
})

describe('coalesced writes', () => {
  const drift = { spec: { podTemplate: { metadata: { labels: { added: '1' } } } } }
  const podPatches = (passes: Passes): number => passes.writes.filter(({ what }) => what === 'PATCH pods/box').length

  it('scenario 56: within the window the Pod patch waits, then it is written once', async () => {
    await using passes = await started({}, (options) => {
      options.sandbox.writeBehindWindowMs = 3_600_000
    })
    await passes.sandbox('box')
    await setPodStatus(passes.client, 'box', runningReady())
    await passes.client.patch(Sandboxes, ref('box'), { type: 'merge', body: drift })
    const first = await passes.sandbox('box')
    expect(first.requeueAfterMs).toBe(1_000)
    expect(condition(await readBox(passes), 'Ready')?.status, 'readiness does not wait').toBe('True')
    passes.nowMs += 400
    expect(await passes.sandbox('box')).toEqual({ requeueAfterMs: 600 })
    expect(podPatches(passes)).toBe(0)
    passes.nowMs += 600
    expect(await passes.sandbox('box')).toEqual({})
    await passes.sandbox('box')
    expect(podPatches(passes)).toBe(1)
    expect((await passes.client.get(Pods, ref('box'))).metadata.labels?.added).toBe('1')
  })

  it('scenario 57: a restart begins the window anew and loses nothing', async () => {
    await using passes = await started({}, (options) => {
      options.sandbox.writeBehindWindowMs = 250
    })
    await passes.sandbox('box')
    await passes.client.patch(Sandboxes, ref('box'), { type: 'merge', body: drift })
    expect(await passes.sandbox('box')).toEqual({ requeueAfterMs: 250 })
    passes.nowMs += 200
    passes.restart()
    expect(await passes.sandbox('box')).toEqual({ requeueAfterMs: 250 })
    passes.nowMs += 250
    await passes.sandbox('box')
    expect(podPatches(passes)).toBe(1)
  })

  it('scenario 58: the node rides along with readiness, and is written at once later', async () => {
    await using passes = await started()
    await passes.sandbox('box')
    await setPodStatus(passes.client, 'box', {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }],
    })
    await passes.sandbox('box')
    passes.writes.length = 0
    const bindings = defineKind<KubeObject & { target: object }>('v1', 'Binding', 'pods/box/binding')
    await passes.client.create(bindings, { metadata: ref('box'), target: { name: 'n1' } })
    await passes.sandbox('box')
    expect(passes.writes).toEqual([])
    await setPodStatus(passes.client, 'box', runningReady())
    await passes.sandbox('box')
    expect(passes.writes).toHaveLength(1)
    expect((await readBox(passes)).status).toMatchObject({ nodeName: 'n1', podIPs: ['100.64.0.1'] })
  })
})

import { isNotFound, nameHash, Pods, type Sandbox, Sandboxes, Services, type Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { condition, namespace, sandbox } from './cluster.js'
import { finishPod, foreignOwner, ownerRef, pod, ref, runningReady, setPodStatus } from './objects.js'
import { type Passes, refusal, refuse, startPasses } from './passes.js'

const hash = nameHash('box')
const hashLabel = 'agents.x-k8s.io/sandbox-name-hash'

async function started(
  spec: Partial<Sandbox['spec']> = {},
  metadata: Sandbox['metadata'] = {},
): Promise<Passes & { box: Stored<Sandbox> }> {
  const passes = await startPasses()
  const object = sandbox('box', spec)
  const box = await passes.client.create(Sandboxes, { ...object, metadata: { ...object.metadata, ...metadata } })
  return Object.assign(passes, { box })
}

const readBox = (passes: Passes): Promise<Stored<Sandbox>> => passes.client.get(Sandboxes, ref('box'))

describe('a new Pod', () => {
  it('scenario 35, as 1.0 has it: the Pod has the tracking label only, and the pod-name annotation is never written', async () => {
    await using passes = await started()
    await passes.sandbox('box')
    const made = await passes.client.get(Pods, ref('box'))
    expect(made.metadata.labels).toEqual({ [hashLabel]: hash })
    expect(made.metadata.annotations).toBeUndefined()
    expect(made.metadata.ownerReferences).toEqual([ownerRef(passes.box)])
    expect(await passes.client.find(Services, ref('box'))).toBeUndefined()
    const box = await readBox(passes)
    expect(box.metadata.annotations?.['agents.x-k8s.io/pod-name']).toBeUndefined()
    expect(box.status?.selector).toBe(`${hashLabel}=${hash}`)
  })

  it('scenario 36: template metadata is copied and listed, sorted', async () => {
    const metadata = { labels: { z: '1', a: '2' }, annotations: { y: '1', b: '2' } }
    const base = sandbox().spec.podTemplate
    await using passes = await started({ podTemplate: { ...base, metadata } })
    await passes.sandbox('box')
    const made = await passes.client.get(Pods, ref('box'))
    expect(made.metadata.labels).toMatchObject(metadata.labels)
    expect(made.metadata.annotations).toEqual({
      ...metadata.annotations,
      'agents.x-k8s.io/propagated-labels': 'a,z',
      'agents.x-k8s.io/propagated-annotations': 'b,y',
    })
  })

  it('scenario 37: labels alone leave no list of annotations', async () => {
    const base = sandbox().spec.podTemplate
    await using passes = await started({ podTemplate: { ...base, metadata: { labels: { a: '1' } } } })
    await passes.sandbox('box')
    const made = await passes.client.get(Pods, ref('box'))
    expect(made.metadata.annotations).toEqual({ 'agents.x-k8s.io/propagated-labels': 'a' })
  })

  it('scenario 38: reserved keys of the template do not reach the Pod', async () => {
    const metadata = {
      labels: { [hashLabel]: 'evil', 'extensions.agents.x-k8s.io/x': '1' },
      annotations: { 'agents.x-k8s.io/pod-name': 'evil', 'opentelemetry.io/trace-context': '{}' },
    }
    const base = sandbox().spec.podTemplate
    await using passes = await started({ podTemplate: { ...base, metadata } })
    await passes.sandbox('box')
    const made = await passes.client.get(Pods, ref('box'))
    expect(made.metadata.labels).toEqual({ [hashLabel]: hash })
    expect(made.metadata.annotations).toBeUndefined()
  })

  it('scenario 34: a Pod deleted by somebody else is made anew and Suspended keeps its time', async () => {
    await using passes = await started()
    await passes.sandbox('box')
    const before = condition(await readBox(passes), 'Suspended')
    await finishPod(passes.client, 'box')
    passes.nowMs += 10_000
    await passes.sandbox('box')
    await setPodStatus(passes.client, 'box', runningReady())
    await passes.sandbox('box')
    const box = await readBox(passes)
    expect(condition(box, 'Suspended')).toEqual(before)
    expect(condition(box, 'Ready')?.status).toBe('True')
  })

  it('creates nothing twice when the view is old: the existing Pod is read from the server', async () => {
    await using passes = await started()
    await passes.refresh()
    await passes.client.create(
      Pods,
      pod('box', { labels: { [hashLabel]: hash }, ownerReferences: [ownerRef(passes.box)] }),
    )
    await passes.sandbox('box', 'stale')
    expect(condition(await readBox(passes), 'Ready')?.message).toBe('Pod exists with phase: Pending')
  })
})

describe('an existing Pod', () => {
  it('scenario 39: reserved keys that an old controller propagated are scrubbed, the tracking label stays', async () => {
    await using passes = await started()
    await passes.client.create(
      Pods,
      pod('box', {
        labels: { [hashLabel]: hash, 'agents.x-k8s.io/old': '1', kept: '1' },
        annotations: {
          'agents.x-k8s.io/propagated-labels': `agents.x-k8s.io/old,${hashLabel}`,
          'agents.x-k8s.io/propagated-annotations': 'agents.x-k8s.io/note',
          'agents.x-k8s.io/note': '1',
        },
        ownerReferences: [ownerRef(passes.box)],
      }),
    )
    await passes.sandbox('box')
    const made = await passes.client.get(Pods, ref('box'))
    expect(made.metadata.labels).toEqual({ [hashLabel]: hash, kept: '1' })
    expect(made.metadata.annotations).toEqual({
      'agents.x-k8s.io/propagated-labels': '',
      'agents.x-k8s.io/propagated-annotations': '',
    })
  })

  it('scenario 40: a key that left the template leaves the Pod, and what others put there stays', async () => {
    const base = sandbox().spec.podTemplate
    await using passes = await started({ podTemplate: { ...base, metadata: { labels: { gone: '1', kept: '1' } } } })
    await passes.sandbox('box')
    const others = { labels: { mine: '1', 'agents.x-k8s.io/system-label': '1' }, annotations: { note: '1' } }
    await passes.client.patch(Pods, ref('box'), { type: 'merge', body: { metadata: others } })
    const body = { spec: { podTemplate: { metadata: { labels: { gone: null } } } } }
    await passes.client.patch(Sandboxes, ref('box'), { type: 'merge', body })
    await passes.sandbox('box')
    const made = await passes.client.get(Pods, ref('box'))
    expect(made.metadata.labels).toEqual({ [hashLabel]: hash, kept: '1', ...others.labels })
    expect(made.metadata.annotations).toMatchObject({ note: '1', 'agents.x-k8s.io/propagated-labels': 'kept' })
  })

  it.each([
    { when: 'scenario 41: it is marked adoptable', labels: { 'agents.x-k8s.io/adoptable': 'true' } },
    { when: 'scenario 42: it carries our hash', labels: { [hashLabel]: hash } },
  ])('is adopted when $when', async ({ labels }) => {
    await using passes = await started()
    await passes.client.create(Pods, pod('box', { labels }))
    await passes.sandbox('box')
    const made = await passes.client.get(Pods, ref('box'))
    expect(made.metadata.ownerReferences).toEqual([ownerRef(passes.box)])
    expect(made.metadata.labels?.[hashLabel]).toBe(hash)
    expect((await readBox(passes)).metadata.annotations).toBeUndefined()
  })

  it('scenario 43: without either label it stays unowned and the pass fails', async () => {
    await using passes = await started()
    await passes.client.create(Pods, pod('box'))
    await expect(passes.sandbox('box')).rejects.toThrow('cannot adopt unowned pod "box"')
    expect((await passes.client.get(Pods, ref('box'))).metadata.ownerReferences).toBeUndefined()
    expect(condition(await readBox(passes), 'Ready')).toMatchObject({
      reason: 'ReconcilerError',
      message:
        'Error seen: cannot adopt unowned pod "box": missing required pool authorization label ("agents.x-k8s.io/adoptable") or sandbox tracking label ("agents.x-k8s.io/sandbox-name-hash")',
    })
  })

  it("scenario 44: somebody else's Pod is an error while running, and left alone while suspended", async () => {
    await using passes = await started({}, { annotations: { 'agents.x-k8s.io/pod-name': 'foreign', other: '1' } })
    await passes.client.create(Pods, pod('foreign', { ownerReferences: [foreignOwner] }))
    await setPodStatus(passes.client, 'foreign', runningReady())
    await expect(passes.sandbox('box')).rejects.toThrow('pod "foreign" is owned by Deployment/other')
    expect((await readBox(passes)).metadata.annotations).toEqual({ other: '1' })

    const body = {
      metadata: { annotations: { 'agents.x-k8s.io/pod-name': 'foreign' } },
      spec: { operatingMode: 'Suspended' },
    }
    await passes.client.patch(Sandboxes, ref('box'), { type: 'merge', body })
    await passes.sandbox('box')
    const box = await readBox(passes)
    expect(box.metadata.annotations).toEqual({ other: '1' })
    expect(await passes.client.find(Pods, ref('foreign'))).toBeDefined()
    expect(box.status).toMatchObject({ selector: `${hashLabel}=${hash}` })
    expect(box.status?.podIPs).toBeUndefined()
    expect(condition(box, 'Suspended')?.reason).toBe('PodNotOwned')
  })

  it('scenario 48: the creator is normalised on the Pod, and removed with the label', async () => {
    await using passes = await started({}, { labels: { 'agents.x-k8s.io/created-by': 'go-client' } })
    const creator = async (): Promise<string | undefined> => {
      await passes.sandbox('box')
      return (await passes.client.get(Pods, ref('box'))).metadata.labels?.['agents.x-k8s.io/created-by']
    }
    const relabel = (value: string | null): Promise<unknown> =>
      passes.client.patch(Sandboxes, ref('box'), {
        type: 'merge',
        body: { metadata: { labels: { 'agents.x-k8s.io/created-by': value } } },
      })
    expect(await creator()).toBe('go-client')
    await relabel('bogus')
    expect(await creator()).toBe('unknown')
    await relabel(null)
    expect(await creator()).toBeUndefined()
  })

  it('scenarios 49 and 50: the Pod we control wins over whatever the annotation names', async () => {
    await using passes = await started({}, { annotations: { 'agents.x-k8s.io/pod-name': 'noted' } })
    await passes.client.create(
      Pods,
      pod('ours', { labels: { [hashLabel]: hash }, ownerReferences: [ownerRef(passes.box)] }),
    )
    await passes.client.create(Pods, pod('noted', { labels: { 'agents.x-k8s.io/adoptable': 'true' } }))
    await passes.sandbox('box')
    expect((await passes.client.get(Pods, ref('noted'))).metadata.ownerReferences).toBeUndefined()
    expect((await readBox(passes)).metadata.annotations?.['agents.x-k8s.io/pod-name']).toBeUndefined()
    expect(await passes.client.find(Pods, ref('box'))).toBeUndefined()
  })

  it('scenario 51: two Pods of ours: nobody is touched, one warning, no retry', async () => {
    await using passes = await started({ service: true })
    for (const name of ['box', 'box-2']) {
      await passes.client.create(
        Pods,
        pod(name, { labels: { [hashLabel]: hash }, ownerReferences: [ownerRef(passes.box)] }),
      )
    }
    expect(await passes.sandbox('box')).toEqual({})
    expect(await passes.sandbox('box')).toEqual({})
    expect(passes.events).toEqual([
      expect.objectContaining({ type: 'Warning', reason: 'MultiplePods', action: 'Reconciling' }),
    ])
    const message = 'multiple Pods (2) are controlled by this Sandbox; refusing to choose or create a Pod'
    expect(condition(await readBox(passes), 'Ready')).toMatchObject({ reason: 'MultiplePods', message })
    expect(await passes.client.find(Services, ref('box'))).toBeUndefined()
    expect((await passes.client.list(Pods, { namespace })).items).toHaveLength(2)
  })

  it('scenario 52: Pods with our hash that belong to an earlier Sandbox do not count', async () => {
    await using passes = await started()
    const earlier = { ...ownerRef(passes.box), uid: '11111111-0000-4000-8000-000000000000' }
    await passes.client.create(Pods, pod('earlier', { labels: { [hashLabel]: hash }, ownerReferences: [earlier] }))
    await passes.client.create(Pods, pod('nobody', { labels: { [hashLabel]: hash } }))
    await passes.sandbox('box')
    expect(await passes.client.find(Pods, ref('box'))).toBeDefined()
  })

  it('scenario 53: no second Pod is made while the first one terminates', async () => {
    await using passes = await started()
    await passes.sandbox('box')
    await passes.client.patch(Pods, ref('box'), { type: 'merge', body: { metadata: { finalizers: ['test/hold'] } } })
    await passes.client.delete(Pods, ref('box'))
    passes.writes.length = 0
    await passes.sandbox('box')
    expect(passes.writes.filter(({ what }) => what.includes('pods'))).toEqual([])
  })

  it('scenario 54: an empty pod-name annotation means the Sandbox name', async () => {
    await using passes = await started({}, { annotations: { 'agents.x-k8s.io/pod-name': '' } })
    await passes.sandbox('box')
    expect(await passes.client.find(Pods, ref('box'))).toBeDefined()
  })
})

describe('suspension', () => {
  it('scenarios 32, 33: the Pod goes, the Service stays, times move only on flips, generations follow', async () => {
    await using passes = await started({ service: true })
    await passes.sandbox('box')
    await setPodStatus(passes.client, 'box', runningReady())
    await passes.sandbox('box')
    const mode = (operatingMode: string): Promise<unknown> =>
      passes.client.patch(Sandboxes, ref('box'), { type: 'merge', body: { spec: { operatingMode } } })
    const first = (await readBox(passes)).status?.conditions?.find(({ type }) => type === 'Suspended')
    expect(first).toMatchObject({ status: 'False', reason: 'NotSuspended' })

    await passes.client.patch(Pods, ref('box'), { type: 'merge', body: { metadata: { finalizers: ['test/hold'] } } })
    await mode('Suspended')
    passes.nowMs += 60_000
    await passes.sandbox('box')
    await passes.sandbox('box')
    const holding = (await readBox(passes)).status?.conditions?.find(({ type }) => type === 'Suspended')
    expect(holding).toMatchObject({
      status: 'False',
      reason: 'PodTerminating',
      lastTransitionTime: first?.lastTransitionTime,
    })
    expect(condition(await readBox(passes), 'Ready')).toMatchObject({
      reason: 'SandboxSuspended',
      message: 'Sandbox is suspending',
    })

    await passes.client.patch(Pods, ref('box'), { type: 'merge', body: { metadata: { finalizers: null } } })
    await finishPod(passes.client, 'box')
    await passes.sandbox('box')
    const done = await readBox(passes)
    const suspended = done.status?.conditions?.find(({ type }) => type === 'Suspended')
    expect(suspended).toMatchObject({ status: 'True', reason: 'PodTerminated' })
    expect(suspended?.lastTransitionTime).not.toBe(first?.lastTransitionTime)
    expect(await passes.client.find(Services, ref('box'))).toBeDefined()

    await mode('Running')
    await passes.sandbox('box')
    const back = await readBox(passes)
    expect(await passes.client.find(Pods, ref('box'))).toBeDefined()
    expect(back.status?.conditions?.map((entry) => entry.observedGeneration)).toEqual(
      back.status?.conditions?.map(() => back.metadata.generation),
    )
  })

  it('scenario 26: a Pod that cannot be deleted is terminating, not unknown', async () => {
    await using passes = await started()
    await passes.sandbox('box')
    await passes.client.patch(Sandboxes, ref('box'), { type: 'merge', body: { spec: { operatingMode: 'Suspended' } } })
    passes.fault = refuse(
      ({ method, path }) => method === 'DELETE' && path.endsWith('/pods/box'),
      refusal(500, 'InternalError', 'boom'),
    )
    await expect(passes.sandbox('box')).rejects.toThrow('failed to delete pod: boom')
    const box = await readBox(passes)
    expect(condition(box, 'Suspended')).toMatchObject({ status: 'False', reason: 'PodTerminating' })
    expect(condition(box, 'Ready')).toMatchObject({
      reason: 'ReconcilerError',
      message: 'Error seen: failed to delete pod: boom',
    })
  })
})

describe('rest and restart', () => {
  it('scenario 31: twenty passes over a ready Sandbox write nothing and keep three conditions', async () => {
    await using passes = await started({ service: true })
    await passes.sandbox('box')
    await setPodStatus(passes.client, 'box', runningReady())
    await passes.sandbox('box')
    passes.writes.length = 0
    for (let count = 0; count < 20; count += 1) await passes.sandbox('box')
    expect(passes.writes).toEqual([])
    expect((await readBox(passes)).status?.conditions?.map(({ type }) => type)).toEqual([
      'Suspended',
      'PodScheduled',
      'Ready',
    ])
  })

  it('ends the same however often the process dies in between', async () => {
    const ends: unknown[] = []
    for (const diesAt of [undefined, 1, 2, 3, 4]) {
      await using passes = await started({
        service: true,
        volumeClaimTemplates: [
          {
            metadata: { name: 'data' },
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
          },
        ],
      })
      let writes = 0
      passes.fault = ({ method }) => {
        if (method === 'GET' || diesAt === undefined) return undefined
        writes += 1
        return writes === diesAt ? refusal(500, 'InternalError') : undefined
      }
      for (let attempt = 0; attempt < 4; attempt += 1) {
        await passes.sandbox('box').catch(() => passes.restart())
        if (await passes.client.find(Pods, ref('box'))) await setPodStatus(passes.client, 'box', runningReady())
      }
      await passes.sandbox('box')
      const { status } = await readBox(passes)
      ends.push({ ...status, conditions: status?.conditions?.map(({ lastTransitionTime: _, ...rest }) => rest) })
    }
    for (const end of ends) expect(end).toEqual(ends[0])
  })

  it('treats a namespace that is going away as something to wait for', async () => {
    await using passes = await started()
    const gone = refusal(403, 'Forbidden', 'namespace default is being terminated')
    const details = { causes: [{ reason: 'NamespaceTerminating', field: 'metadata.namespace' }] }
    Object.assign((gone.body as { value: object }).value, { details })
    passes.fault = refuse(({ method, path }) => method === 'POST' && path.endsWith('/pods'), gone)
    expect(await passes.sandbox('box')).toEqual({ requeueAfterMs: 30_000 })
  })

  it('is silent about a Sandbox that is gone or going', async () => {
    await using passes = await started()
    await passes.client.delete(Sandboxes, ref('box'))
    expect(await passes.client.find(Sandboxes, ref('box')).catch(isNotFound)).toBeUndefined()
    expect(await passes.sandbox('box')).toEqual({})
    expect(passes.writes).toEqual([])
  })
})

import type { ApiRequest, ApiResponse, WatchFrame } from '@corral/ports'
import { type SandboxClaim, SandboxClaimBuilder, type Stored, type WatchEvent } from '@corral/resources'
import { beforeEach, describe, expect, it } from 'vitest'
import { AgentSandboxClient } from './agent-sandbox-client.js'
import { createSandbox } from './create-sandbox.js'
import { ExitCleanup } from './exit-cleanup.js'
import { TestCluster } from './test-cluster.test-suite.js'

/** The numbers are those of the reference's list of what clients of Agent Sandbox do. */

const claims = '/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims'
const sandboxes = '/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes'

let cluster: TestCluster
let client: AgentSandboxClient
let seen: ApiRequest[]

class SeenCluster extends TestCluster {
  override handle(request: ApiRequest) {
    seen.push(request)
    return super.handle(request)
  }
}

beforeEach(() => {
  seen = []
  cluster = new SeenCluster()
  client = new AgentSandboxClient({ client: cluster.client(), namespace: 'default' })
})

const ready = (status: 'True' | 'False', reason: string) => ({ type: 'Ready', status, reason, message: '' })

/** Plays the controllers: what the claim says one look after the other. */
function claimBecomes(...looks: object[]): void {
  cluster.react = (path, object) => {
    if (!path.startsWith(`${claims}/`)) return
    cluster.put(`${sandboxes}/warm-1`, { metadata: { name: 'warm-1', namespace: 'default' } })
    for (const [index, status] of looks.entries())
      setTimeout(() => cluster.change(`${claims}/${object.metadata.name}`, { status }), index * 5)
  }
}

function watchError(code: number, reason: string): WatchEvent {
  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code, reason, message: reason }
  return { type: 'ERROR', object: status } as unknown as WatchEvent
}

/** An answer to a watch: these events, and its end. */
function watchOf(events: readonly WatchEvent[]): ApiResponse {
  async function* frames(): AsyncGenerator<WatchFrame> {
    for (const event of events) yield { event, line: () => `${JSON.stringify(event)}\n` }
  }
  return { status: 200, headers: {}, body: { type: 'watch', frames: frames() } }
}

const bound = { sandbox: { name: 'warm-1' } }
const fine = { ...bound, conditions: [ready('True', 'DependenciesReady')] }
const deletes = () => seen.filter(({ method }) => method === 'DELETE')
const sent = (): Stored<SandboxClaim> => seen.find(({ method }) => method === 'POST')?.body as Stored<SandboxClaim>
const watches = () => seen.filter(({ query }) => query.get('watch'))

describe('waiting for a claim', () => {
  it('1: begins at the version the creation answered, and watches no Sandbox', async () => {
    claimBecomes(fine)
    await client.sandboxes.create({ pool: 'p' })
    const [watch, ...others] = watches()
    expect(others).toEqual([])
    expect(watch?.path).toBe(claims)
    expect(Number(watch?.query.get('resourceVersion'))).toBeGreaterThan(0)
  })

  it('2: a claim that exists is watched from the version that was read', async () => {
    const known = cluster.put(`${claims}/mine`, new SandboxClaimBuilder('mine').warmPool('p').build())
    cluster.put(`${sandboxes}/warm-1`, { metadata: { name: 'warm-1', namespace: 'default' } })
    const finding = client.sandboxes.getOrCreate({ pool: 'p', name: 'mine' })
    await expect.poll(() => watches().length).toBe(1)
    expect(watches()[0]?.query.get('resourceVersion')).toBe(known.metadata.resourceVersion)
    cluster.change(`${claims}/mine`, { status: fine })
    expect((await finding).name).toBe('warm-1')
  })

  it.each([
    { name: '3: one look with name and Ready', looks: [fine] },
    {
      name: '4: a name before it is Ready',
      looks: [{ ...bound, conditions: [ready('False', 'SandboxNotReady')] }, fine],
    },
    { name: '5: an error that passes', looks: [{ conditions: [ready('False', 'ReconcilerError')] }, fine] },
  ])('$name ends with the adopted sandbox', async ({ looks }) => {
    claimBecomes(...looks)
    expect((await client.sandboxes.create({ pool: 'p' })).name).toBe('warm-1')
  })

  it.each([
    { name: '6: VolumeClaimTemplatesError', reason: 'VolumeClaimTemplatesError' },
    { name: '7: TemplateNotFound', reason: 'TemplateNotFound' },
    { name: '7: WarmPoolNotFound', reason: 'WarmPoolNotFound' },
  ])('$name fails at once with its reason, and 11: deletes the claim once', async ({ reason }) => {
    claimBecomes({ conditions: [ready('False', reason)] })
    await expect(client.sandboxes.create({ pool: 'p' })).rejects.toMatchObject({
      code: 'SandboxFailed',
      details: { reason },
    })
    expect(deletes()).toHaveLength(1)
    expect(cluster.objects.size).toBe(1)
  })

  it('8: a claim that is deleted meanwhile is told as such, not as a timeout', async () => {
    cluster.react = (path) => setTimeout(() => void client.claims.delete(path.slice(claims.length + 1)), 5)
    await expect(client.sandboxes.create({ pool: 'p' })).rejects.toMatchObject({ code: 'SandboxDeleted' })
  })

  it.each<{ what: string; frames: WatchEvent[] }>([
    { what: '9: that says its version is too old', frames: [watchError(410, 'Expired')] },
    { what: '10: that ends by itself', frames: [] },
  ])('a watch $what is begun again within the same wait', async ({ frames }) => {
    const whole = cluster.handle.bind(cluster)
    let begun = 0
    cluster.handle = async (request) => {
      if (!request.query.get('watch') || ++begun > 1) return whole(request)
      // The claim becomes ready while no watch stands.
      cluster.change(`${claims}/${sent().metadata.name}`, { status: fine })
      return watchOf(frames)
    }
    cluster.put(`${sandboxes}/warm-1`, { metadata: { name: 'warm-1', namespace: 'default' } })
    expect((await client.sandboxes.create({ pool: 'p' })).name).toBe('warm-1')
    expect(deletes()).toEqual([])
  })

  it('9: a watch that is refused ends the wait with its reason, and 11: deletes the claim once', async () => {
    const whole = cluster.handle.bind(cluster)
    const body = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Forbidden', message: 'no', code: 403 }
    cluster.handle = async (request) =>
      request.query.get('watch')
        ? { status: 403, headers: {}, body: { type: 'object', value: body, json: () => JSON.stringify(body) } }
        : whole(request)
    await expect(client.sandboxes.create({ pool: 'p' })).rejects.toMatchObject({ code: 'Forbidden' })
    expect(deletes()).toHaveLength(1)
  })

  it('12: a caller that gives up leaves no claim', async () => {
    const abort = new AbortController()
    cluster.react = () => setTimeout(() => abort.abort(), 5)
    await expect(client.sandboxes.create({ pool: 'p', signal: abort.signal })).rejects.toMatchObject({
      code: 'Aborted',
    })
    expect([...cluster.objects.keys()]).toEqual([])
  })
})

describe('what is refused before anything is sent', () => {
  it.each([
    { name: '13: an empty pool', request: { pool: '' } },
    { name: '14: an empty label key', request: { pool: 'p', labels: { '': 'x' } } },
    { name: '14: a label key with a space', request: { pool: 'p', labels: { 'bad key!': 'x' } } },
    { name: '14: a label key of 64 characters', request: { pool: 'p', labels: { ['k'.repeat(64)]: 'x' } } },
    { name: '14: a bad prefix', request: { pool: 'p', podLabels: { 'BAD PREFIX/a': 'x' } } },
    { name: '17: a lifetime of 0', request: { pool: 'p', ttlMs: 0 } },
    { name: '17: a negative lifetime', request: { pool: 'p', ttlMs: -1 } },
    { name: '17: a lifetime that is no number', request: { pool: 'p', ttlMs: '10' as unknown as number } },
    { name: '17: a lifetime beyond all dates', request: { pool: 'p', ttlMs: 1e21 } },
  ])('$name', async ({ request }) => {
    await expect(client.sandboxes.create(request)).rejects.toMatchObject({ code: 'Invalid' })
    expect(seen).toEqual([])
  })
})

describe('the claim that is sent', () => {
  beforeEach(() => claimBecomes(fine))

  it('14: has labels with a prefix, and empty ones', async () => {
    const labels = { 'app.kubernetes.io/name': 'x', 'a/name': 'y', empty: '' }
    await client.sandboxes.create({ pool: 'p', labels })
    expect(sent().metadata.labels).toMatchObject(labels)
  })

  it('15: says who made it, whatever the caller says', async () => {
    await client.sandboxes.create({ pool: 'p', labels: { 'agents.x-k8s.io/created-by': 'evil' } })
    expect(sent().metadata.labels?.['agents.x-k8s.io/created-by']).toBe('typescript-client')
  })

  it('16: has the time of the request, unless the caller gave one', async () => {
    const key = 'agents.x-k8s.io/client-first-requested-at'
    await client.sandboxes.create({ pool: 'p' })
    expect(Date.parse(sent().metadata.annotations?.[key] ?? '')).toBeGreaterThan(Date.now() - 60_000)
    seen = []
    await client.sandboxes.create({ pool: 'p', annotations: { [key]: 'before' } })
    expect(sent().metadata.annotations?.[key]).toBe('before')
  })

  it('17: ends at its lifetime and is deleted then; without one it has no lifecycle', async () => {
    await client.sandboxes.create({ pool: 'p', ttlMs: 300_000 })
    const { lifecycle } = sent().spec
    expect(lifecycle?.shutdownPolicy).toBe('Delete')
    expect(lifecycle?.shutdownTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    const inMs = Date.parse(lifecycle?.shutdownTime ?? '') - Date.now()
    expect(inMs).toBeGreaterThan(290_000)
    expect(inMs).toBeLessThanOrEqual(301_000)
    seen = []
    await client.sandboxes.create({ pool: 'p' })
    expect(sent().spec).toEqual({ warmPoolRef: { name: 'p' } })
  })

  it('18: has labels and annotations of its pod only where they were given', async () => {
    const podLabels = { 'sandbox.users.io/a': '1' }
    const podAnnotations = { 'example.org/b': '2' }
    await client.sandboxes.create({ pool: 'p', podLabels, podAnnotations })
    expect(sent().spec.additionalPodMetadata).toEqual({ labels: podLabels, annotations: podAnnotations })
  })

  it('19: has its volumes as they were given', async () => {
    const volumeClaimTemplates = [
      {
        metadata: { name: 'data' },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
    ]
    await client.sandboxes.create({ pool: 'p', volumeClaimTemplates })
    expect(sent().spec.volumeClaimTemplates).toEqual(volumeClaimTemplates)
  })
})

it('70: a claim carries the trace it was made in, and none without one', async () => {
  claimBecomes(fine)
  const scope = { kube: () => client.kube(), namespace: async () => 'default' }
  const key = 'opentelemetry.io/trace-context'
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await createSandbox(client.sandboxes, scope, { pool: 'p' }, () => ({ traceparent }))
  expect(JSON.parse(sent().metadata.annotations?.[key] ?? '{}')).toEqual({ traceparent })
  seen = []
  await client.sandboxes.create({ pool: 'p' })
  expect(sent().metadata.annotations).not.toHaveProperty([key])
})

describe('handles', () => {
  beforeEach(() => claimBecomes(fine))

  it('20: one is found by its claim; a claim that is not there is named with its namespace', async () => {
    const made = await client.sandboxes.create({ pool: 'p', name: 'mine' })
    expect((await client.sandboxes.get('mine')).name).toBe(made.name)
    await expect(client.sandboxes.get('nope')).rejects.toMatchObject({
      code: 'NotFound',
      message: expect.stringMatching(/"nope" in "default"/),
    })
  })

  it('21: a claim on another pool is refused and left alone', async () => {
    await client.sandboxes.create({ pool: 'p', name: 'mine' })
    await expect(client.sandboxes.getOrCreate({ pool: 'other', name: 'mine' })).rejects.toMatchObject({
      code: 'Conflict',
      hint: expect.stringContaining('Name pool'),
    })
    expect(await client.claims.exists('mine')).toBe(true)
  })

  it('23: deleting what is gone already is done; a failed deletion can be repeated', async () => {
    const gone = await client.sandboxes.create({ pool: 'p', name: 'gone' })
    await client.claims.delete('gone')
    await gone.delete()
    const kept = await client.sandboxes.create({ pool: 'p', name: 'kept' })
    const { handle } = cluster
    cluster.handle = async (request: ApiRequest) => {
      if (request.method !== 'DELETE') return handle.call(cluster, request)
      cluster.handle = handle
      const value = { kind: 'Status', status: 'Failure', reason: 'InternalError', code: 500, message: 'no' }
      return { status: 500, headers: {}, body: { type: 'object', value, json: () => JSON.stringify(value) } }
    }
    await expect(kept.delete()).rejects.toMatchObject({ code: 'InternalError' })
    await kept.delete()
    expect(await client.claims.exists('kept')).toBe(false)
  })

  it('24: the end of the scope after a deletion sends no second one', async () => {
    const made = await client.sandboxes.create({ pool: 'p' })
    await made.delete()
    await made[Symbol.asyncDispose]()
    expect(deletes()).toHaveLength(1)
  })

  it('25 57: one that was let go does nothing any more, and leaves the cluster alone', async () => {
    const made = await client.sandboxes.create({ pool: 'p', name: 'mine' })
    made.detach()
    seen = []
    await expect(Promise.resolve(made.exec(['true']))).rejects.toMatchObject({ code: 'Aborted' })
    await expect(made.files.read('/x')).rejects.toMatchObject({ code: 'Aborted' })
    expect(seen).toEqual([])
    expect(await client.claims.exists('mine')).toBe(true)
    expect((await client.sandboxes.get('mine')).name).toBe('warm-1')
  })

  it.each([
    { annotations: {}, pod: 'warm-1' },
    { annotations: { 'agents.x-k8s.io/pod-name': 'other' }, pod: 'other' },
  ])('36: the pod is $pod where the annotations are $annotations', async ({ annotations, pod }) => {
    cluster.put(`${sandboxes}/warm-1`, { metadata: { name: 'warm-1', namespace: 'default', annotations } })
    expect(await client.sandboxes.podOf({ name: 'warm-1' })).toEqual({ name: pod, namespace: 'default' })
  })
})

describe('clean-up when the program ends', () => {
  it('26 27: deletes everything that is tracked, and a deletion that fails stops no other', async () => {
    const before = new Set(process.listeners('beforeExit'))
    const cleanup = new ExitCleanup()
    const removed: string[] = []
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
    cleanup.track({}, async () => {
      throw new Error('the API is away')
    })
    cleanup.track({}, async () => void removed.push('second'))
    const [atExit] = process.listeners('beforeExit').filter((listener) => !before.has(listener))
    atExit?.(0)
    expect((await warned).message).toMatch(/could not be deleted: .*the API is away/)
    expect(removed).toEqual(['second'])
    expect(process.listeners('beforeExit').filter((listener) => !before.has(listener))).toEqual([])
  })
})

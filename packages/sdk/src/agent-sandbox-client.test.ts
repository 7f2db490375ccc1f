import type { KubeClient } from '@corral/kube'
import { type Condition, type KubeObject, type Sandbox, SandboxClaimBuilder, type Stored } from '@corral/resources'
import { beforeEach, describe, expect, it } from 'vitest'
import { AgentSandboxClient } from './agent-sandbox-client.js'
import { SandboxError } from './sandbox-error.js'
import { TestCluster } from './test-cluster.test-suite.js'

const sandboxPath = '/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes'
const claimPath = '/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims'
const poolPath = '/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxwarmpools'
const templatePath = '/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxtemplates'
const podTemplate = { spec: { containers: [{ name: 'sandbox', image: 'corral/daemon' }] } }

let cluster: TestCluster
let client: AgentSandboxClient

beforeEach(() => {
  cluster = new TestCluster()
  client = new AgentSandboxClient({ client: cluster.client(), namespace: 'default' })
})

function condition(type: string, status: 'True' | 'False', reason: string, observedGeneration = 1): Condition {
  const lastTransitionTime = '2026-01-01T00:00:00Z'
  return { type, status, reason, message: `because of ${reason}`, lastTransitionTime, observedGeneration }
}
const sandbox = (name: string): Sandbox => ({ metadata: { name }, spec: { podTemplate } })

it('deleting a sandbox after its client was closed says so, and not that the connection was lost', async () => {
  const closed = new AgentSandboxClient({ kubeconfigPath: '/nowhere', namespace: 'default' })
  const object = { metadata: { name: 'box', namespace: 'default' }, spec: { podTemplate } } as Stored<Sandbox>
  const owned = closed.sandboxes.owned(object, 'box', async () => {
    throw new SandboxError('ConnectionLost', 'the client is closed')
  })
  await closed.close()
  await expect(owned.delete()).rejects.toMatchObject({ code: 'Aborted', message: 'this client was closed' })
})

describe('S2-I4 S2-I9 S2-I10 S2-D1 S2-P2 S2-U1: the collections', () => {
  it('create, get, find, list, update, patch, apply and delete objects of a kind', async () => {
    await client.sandboxes.objects.create(sandbox('one'))
    await client.sandboxes.objects.create(sandbox('two'))
    const one = await client.sandboxes.objects.get('one')
    expect(one.metadata).toMatchObject({ name: 'one', namespace: 'default' })
    await client.sandboxes.objects.patch('one', { metadata: { labels: { a: 'b' } } })
    expect((await client.sandboxes.objects.find('one'))?.metadata.labels).toEqual({ a: 'b' })
    const names: string[] = []
    for await (const item of client.sandboxes.list()) names.push(item.metadata.name)
    expect(names).toEqual(['one', 'two'])
    await client.sandboxes.delete('one')
    await client.sandboxes.delete('one')
    expect(await client.sandboxes.objects.exists('one')).toBe(false)
  })

  it.each([
    { when: 'nothing has the name', call: () => client.claims.get('nope'), code: 'NotFound' },
    {
      when: 'the name is taken',
      call: async () => {
        const claim = new SandboxClaimBuilder('c').warmPool('p').build()
        await client.claims.create(claim)
        await client.claims.create(claim)
      },
      code: 'AlreadyExists',
    },
    {
      when: 'there is no kubeconfig',
      call: () => new AgentSandboxClient({ kubeconfigPath: '/nowhere/config' }).templates.get('x'),
      code: 'KubeConfigInvalid',
    },
  ])('fail with a typed error when $when', async ({ call, code }) => {
    await expect(call()).rejects.toMatchObject({ name: 'SandboxError', code })
  })

  it('S2-I6: watch from the present on, until told to stop', async () => {
    const stop = new AbortController()
    await client.sandboxes.objects.create(sandbox('one'))
    const seen: string[] = []
    for await (const { type, object } of client.sandboxes.watch({ signal: stop.signal })) {
      seen.push(`${type} ${object.metadata.name}`)
      if (seen.length === 1) await client.sandboxes.objects.create(sandbox('two'))
      if (seen.length === 2) await client.sandboxes.delete('one')
      if (seen.length === 3) stop.abort()
    }
    expect(seen).toEqual(['ADDED one', 'ADDED two', 'DELETED one'])
  })
})

describe('S2-I7: waiting for ready', () => {
  beforeEach(async () => {
    await client.sandboxes.objects.create(sandbox('s'))
  })
  const report = (...conditions: Condition[]) => cluster.change(`${sandboxPath}/s`, { status: { conditions } })

  it('S0-O5: resolves by watch as soon as the condition is true', async () => {
    const waiting = client.sandboxes.waitForReady('s', { timeoutMs: 20_000 })
    report(condition('Ready', 'False', 'DependenciesNotReady'))
    report(condition('Ready', 'True', 'DependenciesReady'))
    expect((await waiting).metadata.name).toBe('s')
    expect(cluster.requests.filter((line) => line === `GET ${sandboxPath}/s`).length).toBeLessThanOrEqual(2)
  })

  it.each(['TemplateNotFound', 'WarmPoolNotFound', 'SandboxExpired', 'InvalidConfiguration', 'PodFailed'])(
    'fails at once when the reason is %s',
    async (reason) => {
      const waiting = client.sandboxes.waitForReady('s', { timeoutMs: 20_000 })
      report(condition('Ready', 'False', reason))
      await expect(waiting).rejects.toMatchObject({ code: 'SandboxFailed', details: { reason } })
    },
  )

  it('fails at once when the pod has finished', async () => {
    report(condition('Ready', 'False', 'DependenciesNotReady'), condition('Finished', 'True', 'PodSucceeded'))
    await expect(client.sandboxes.waitForReady('s')).rejects.toMatchObject({ code: 'SandboxFailed' })
  })

  it('fails when the sandbox is deleted meanwhile', async () => {
    const waiting = client.sandboxes.waitForReady('s', { timeoutMs: 20_000 })
    await client.sandboxes.delete('s')
    await expect(waiting).rejects.toMatchObject({ code: expect.stringMatching(/^(SandboxDeleted|NotFound)$/) })
  })

  it('says what it waited for when the time is over', async () => {
    report(condition('Ready', 'False', 'DependenciesNotReady'))
    const waiting = client.sandboxes.waitForReady('s', { timeoutMs: 50 })
    await expect(waiting).rejects.toMatchObject({
      code: 'SandboxNotReady',
      message: expect.stringContaining('DependenciesNotReady'),
    })
  })

  it('ends with the caller', async () => {
    const stop = new AbortController()
    const waiting = client.sandboxes.waitForReady('s', { signal: stop.signal })
    stop.abort()
    await expect(waiting).rejects.toMatchObject({ code: 'Aborted' })
  })

  it('S2-C1: pauses until suspended and resumes until ready again', async () => {
    report(condition('Ready', 'True', 'DependenciesReady'))
    cluster.react = (_path, object) => {
      const { spec, metadata } = object as Stored<Sandbox>
      const generation = metadata.generation ?? 0
      if (spec.operatingMode === 'Suspended') {
        report(
          condition('Ready', 'False', 'SandboxSuspended', generation),
          condition('Suspended', 'True', 'PodTerminated', generation),
        )
      } else report(condition('Ready', 'True', 'DependenciesReady', generation))
    }
    await client.sandboxes.pause('s', { timeoutMs: 20_000 })
    expect((await client.sandboxes.objects.get('s')).spec.operatingMode).toBe('Suspended')
    await client.sandboxes.resume('s', { timeoutMs: 20_000 })
    expect((await client.sandboxes.objects.get('s')).spec.operatingMode).toBe('Running')
  })

  it('one that is given up while its request is on the way is told so once that has arrived', async () => {
    let isSent = (): void => {}
    let letThrough = (): void => {}
    const sent = new Promise<void>((resolve) => (isSent = resolve))
    const through = new Promise<void>((resolve) => (letThrough = resolve))
    const kube = cluster.client()
    const slow: KubeClient = {
      ...kube,
      patch: async (...call) => {
        isSent()
        await through
        call[3]?.signal?.throwIfAborted()
        return kube.patch(...call)
      },
    }
    const gaveUp = new AbortController()
    const pausing = new AgentSandboxClient({ client: slow, namespace: 'default' }).sandboxes.pause('s', {
      signal: gaveUp.signal,
    })
    await sent
    gaveUp.abort()
    letThrough()
    await expect(pausing).rejects.toMatchObject({ code: 'Aborted' })
    expect((await client.sandboxes.objects.get('s')).spec.operatingMode).toBe('Suspended')
  })

  it('one whose pod still ends is told to run only after that: until then it may be called ready for the pod that goes', async () => {
    report(condition('Ready', 'True', 'DependenciesReady'), condition('Suspended', 'False', 'NotSuspended'))
    const modes: (string | undefined)[] = []
    let isTold = (): void => {}
    const told = new Promise<void>((resolve) => {
      isTold = resolve
    })
    cluster.react = (_path, object) => {
      const { spec, metadata } = object as Stored<Sandbox>
      modes.push(spec.operatingMode)
      isTold()
      // As upstream's controller does, which goes by the pod that is still there.
      const ready = condition('Ready', spec.operatingMode === 'Suspended' ? 'False' : 'True', 'X', metadata.generation)
      report(ready, condition('Suspended', 'False', 'PodTerminating', metadata.generation))
    }
    const gaveUp = new AbortController()
    const pausing = client.sandboxes.pause('s', { signal: gaveUp.signal })
    await told
    gaveUp.abort()
    await expect(pausing).rejects.toMatchObject({ code: 'Aborted' })
    await expect(client.sandboxes.resume('s', { timeoutMs: 300 })).rejects.toMatchObject({
      code: 'SandboxNotReady',
      message: expect.stringContaining('PodTerminating'),
    })
    expect(modes).toEqual(['Suspended'])
    const resuming = client.sandboxes.resume('s')
    report(condition('Ready', 'False', 'SandboxSuspended', 2), condition('Suspended', 'True', 'PodTerminated', 2))
    await resuming
    expect(modes).toEqual(['Suspended', 'Running'])
  })
})

describe('a sandbox of our own', () => {
  const becomeReady = (path: string, object: Stored<KubeObject>) => {
    if (!path.startsWith(claimPath)) return
    cluster.put(`${sandboxPath}/warm-1`, { metadata: { name: 'warm-1', namespace: 'default' } })
    const conditions = [condition('Ready', 'True', 'DependenciesReady')]
    cluster.change(`${claimPath}/${object.metadata.name}`, { status: { sandbox: { name: 'warm-1' }, conditions } })
  }

  it('comes from a pool, and the end of its scope deletes the claim', async () => {
    cluster.react = becomeReady
    const owned = await client.sandboxes.create({ pool: 'default', labels: { job: '1' } })
    const name = owned.claimName ?? ''
    expect(owned.name).toBe('warm-1')
    expect((await client.claims.get(name)).spec.warmPoolRef.name).toBe('default')
    expect((await client.claims.get(name)).metadata.labels).toMatchObject({ job: '1' })
    await owned[Symbol.asyncDispose]()
    expect(await client.claims.exists(name)).toBe(false)
  })

  it('comes from a template through a pool of it, which is made where there is none', async () => {
    cluster.react = becomeReady
    cluster.put(`${templatePath}/node`, { metadata: { name: 'node', namespace: 'default' } })
    const owned = await client.sandboxes.create({ template: 'node' })
    const pool = await client.warmPools.get('node')
    expect(pool.spec).toEqual({ replicas: 0, sandboxTemplateRef: { name: 'node' } })
    expect((await client.claims.get(owned.claimName ?? '')).spec.warmPoolRef.name).toBe('node')
    expect([...cluster.objects.keys()].filter((path) => path.startsWith(poolPath))).toHaveLength(1)
  })

  it('leaves nothing behind when it cannot become ready', async () => {
    cluster.react = (path) =>
      cluster.change(path, { status: { conditions: [condition('Ready', 'False', 'WarmPoolNotFound')] } })
    const creating = client.sandboxes.create({ pool: 'nope', name: 'mine' })
    await expect(creating).rejects.toMatchObject({ code: 'SandboxFailed', details: { reason: 'WarmPoolNotFound' } })
    expect(await client.claims.exists('mine')).toBe(false)
  })

  it('is not deleted by its owner when another has taken its name', async () => {
    cluster.react = becomeReady
    const owned = await client.sandboxes.create({ pool: 'default', name: 'mine' })
    await client.claims.delete('mine')
    await client.claims.create(new SandboxClaimBuilder('mine').warmPool('other').build())
    await owned.delete()
    expect(await client.claims.exists('mine')).toBe(true)
  })

  it('a borrowed handle cannot be disposed of', async () => {
    await client.sandboxes.objects.create(sandbox('s'))
    const borrowed = await client.sandboxes.get('s')
    expect(Symbol.asyncDispose in borrowed).toBe(false)
    expect('delete' in borrowed).toBe(false)
  })
})

describe('healthCheck', () => {
  it('tells what is there', async () => {
    cluster.put('/api/v1/namespaces/default', { metadata: { name: 'default' } })
    expect(await client.healthCheck()).toMatchObject({
      healthy: true,
      crdRegistered: true,
      namespace: 'default',
      namespaceExists: true,
      controllerInstalled: false,
      clusterVersion: 'v1.34.4+test',
    })
  })

  it('is unhealthy without the namespace', async () => {
    expect(await client.healthCheck()).toMatchObject({ healthy: false, namespaceExists: false, crdRegistered: true })
  })
})

import { once } from 'node:events'
import { NetworkPolicies } from '@corral/resources'
import { beforeEach, describe, expect, it } from 'vitest'
import { TestCluster } from '../test-cluster.test-suite.js'
import { AgentSandboxProvider } from './agent-sandbox-provider.js'
import { isSameImage } from './node-images.js'
import type { InstanceConfig, InstanceStatus, ProviderEvent } from './sandbox-provider.js'

const ready = { type: 'Ready', status: 'True', reason: 'DependenciesReady', message: '', observedGeneration: 1 }
let cluster: TestCluster
let provider: AgentSandboxProvider

beforeEach(() => {
  cluster = new TestCluster()
  cluster.react = (path) => {
    if (path.includes('/sandboxes/')) cluster.change(path, { status: { conditions: [ready] } })
  }
  provider = newProvider()
})

function newProvider(): AgentSandboxProvider {
  return new AgentSandboxProvider({ client: cluster.client(), namespace: 'default' })
}

const sandboxes = () => [...cluster.objects.keys()].filter((path) => path.includes('/sandboxes/'))
const posts = () => cluster.requests.filter((line) => line.startsWith('POST'))

const mount = (hostPath: string, containerPath: string) => ({ hostPath, containerPath, readonly: true })

describe('S2-I13: AgentSandboxProvider with programs that make mistakes', () => {
  it.each<{ what: string; config: unknown }>([
    { what: 'nothing', config: undefined },
    { what: 'a project that is a number', config: { projectId: 5 } },
    { what: 'a network mode that is misspelt, which must not mean an open network', config: { networkMode: 'None' } },
    { what: 'no share of a CPU', config: { cpuCores: 0.0001 } },
    { what: 'memory in words', config: { memoryMb: '512' } },
    { what: 'an endless idle time', config: { idleTimeoutMinutes: Number.POSITIVE_INFINITY } },
    { what: 'an image without a name', config: { image: '' } },
    { what: 'an image with a space', config: { image: 'no such image' } },
    { what: 'a relative project path', config: { projectPath: 'src' } },
    { what: 'a mount without a place', config: { volumeMounts: [{ hostPath: '/tmp', readonly: true }] } },
    { what: 'a mount over the root directory', config: { volumeMounts: [mount('/tmp', '//')] } },
    { what: 'a mount over the workspace', config: { volumeMounts: [mount('/tmp', '/workspace/')] } },
    { what: 'two mounts at one place', config: { volumeMounts: [mount('/tmp', '/a'), mount('/tmp', '/a/b/..')] } },
    { what: 'mounts that are no list', config: { volumeMounts: '/tmp:/tmp' } },
    { what: 'a device to copy', config: { volumeMounts: [mount('/dev/zero', '/zeros')] } },
  ])('refuses $what before anything is made', async ({ config }) => {
    const asked = config === undefined ? config : { projectId: 'p', ...(config as object) }
    await expect(provider.create(asked as InstanceConfig)).rejects.toMatchObject({ code: 'Invalid' })
    expect(posts()).toEqual([])
  })

  it.each<{ what: string; config: Partial<InstanceConfig>; is: string }>([
    { what: 'a project that is not there', config: { projectPath: '/no/such/project' }, is: 'NotFound' },
    { what: 'a project that is a file', config: { projectPath: '/etc/passwd' }, is: 'NotADirectory' },
    { what: 'a mount of what is not there', config: { volumeMounts: [mount('/no/such', '/a')] }, is: 'NotFound' },
    {
      what: 'a mount that is to be written to',
      config: { volumeMounts: [{ hostPath: '/tmp', containerPath: '/out' }] },
      is: 'Unsupported',
    },
  ])('$what is $is before anything is made', async ({ config, is }) => {
    await expect(provider.create({ projectId: 'p', ...config })).rejects.toMatchObject({ code: is })
    expect(posts()).toEqual([])
  })

  it.each<{ what: string; call: () => Promise<unknown> }>([
    { what: 'get without a project', call: () => provider.get(undefined as unknown as string) },
    { what: 'cleanup by a status nobody has', call: () => provider.cleanup({ status: 'old' as InstanceStatus }) },
    { what: 'cleanup by a date that is none', call: () => provider.cleanup({ olderThan: new Date('x') }) },
    { what: 'cleanup by a text', call: () => provider.cleanup({ olderThan: '2026-01-01' as unknown as Date }) },
    { what: 'isImageAvailable of nothing', call: () => provider.isImageAvailable('') },
    { what: 'pullImage of nothing', call: () => provider.pullImage(undefined as unknown as string) },
  ])('$what is Invalid', async ({ call }) => {
    await expect(call()).rejects.toMatchObject({ name: 'SandboxError', code: 'Invalid' })
  })

  it('makes a sandbox although a listener throws, and says so', async () => {
    const seen: ProviderEvent['type'][] = []
    provider.on(() => {
      throw new Error('my listener broke')
    })
    provider.on(({ type }) => seen.push(type))
    const warned = once(process, 'warning')
    await provider.create({ projectId: 'p' })
    expect(seen).toEqual(['sandbox:creating', 'sandbox:created', 'sandbox:started'])
    expect(String((await warned)[0])).toContain('my listener broke')
  })

  it('refuses an id that another project has', async () => {
    await provider.create({ projectId: 'one', id: 'mine' })
    await expect(provider.create({ projectId: 'two', id: 'mine' })).rejects.toMatchObject({
      code: 'AlreadyExists',
      message: 'id "mine" is that of project "one"',
    })
  })

  it('a second stop leaves the next sandbox of the project alone', async () => {
    const first = await provider.create({ projectId: 'p' })
    const sameOne = await provider.get('p')
    await first.stop()
    const next = await provider.create({ projectId: 'p' })
    await first.stop()
    await sameOne?.stop()
    expect((await provider.get('p'))?.id).toBe(next.id)
  })

  it('after stop every call says that the sandbox is gone', async () => {
    const instance = await provider.create({ projectId: 'p' })
    await instance.stop()
    expect(instance.status).toBe('stopped')
    const calls = [
      instance.exec('true'),
      instance.execStream({ cmd: 'true' }),
      instance.writeFile('/tmp/a', 'a'),
      instance.createTmuxSession('main'),
      instance.listTmuxSessions(),
      instance.getMetrics(),
      instance.touch(),
    ]
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'SandboxDeleted' })
  })

  it('of two programs that create a closed sandbox at once, the one that is refused does not open the other', async () => {
    const config = { projectId: 'p', networkMode: 'none' } as const
    const made = await Promise.allSettled([provider.create(config), newProvider().create(config)])
    const winner = made.find((result) => result.status === 'fulfilled')?.value
    expect(made.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const closed: unknown[] = []
    for await (const { spec } of (await provider.kube()).items(NetworkPolicies, { namespace: 'default' }))
      closed.push(spec?.podSelector?.matchLabels)
    expect(closed).toEqual([{ 'corral.dev/sandbox-id': winner?.id }])
    await winner?.stop()
    expect([...cluster.objects.keys()].filter((path) => path.includes('networkpolicies'))).toEqual([])
  })

  it('a list while another program removes a sandbox does not fail over it', async () => {
    for (const projectId of ['a', 'b', 'c']) await provider.create({ projectId })
    const handle = cluster.handle.bind(cluster)
    cluster.handle = async (request) => {
      const answer = await handle(request)
      if (request.path.endsWith('/sandboxes')) cluster.objects.delete(sandboxes()[0] ?? '')
      return answer
    }
    expect((await newProvider().list()).map(({ projectId }) => projectId)).toEqual(['a', 'b', 'c'])
  })

  it('an aborted create leaves no sandbox, also where the server was about to make it', async () => {
    const stop = new AbortController()
    const handle = cluster.handle.bind(cluster)
    cluster.handle = async (request) => {
      if (request.method === 'POST') {
        stop.abort()
        // The request is on its way: a server that is slow carries it out all the same.
        await new Promise((resolve) => setImmediate(resolve))
      }
      return handle(request)
    }
    const create = provider.create({ projectId: 'p' }, { signal: stop.signal })
    await expect(create).rejects.toMatchObject({ code: 'Aborted' })
    expect(posts()).toHaveLength(1)
    expect(sandboxes()).toEqual([])
  })
})

it.each([
  { wanted: 'python', onNode: 'docker.io/library/python:latest', same: true },
  { wanted: 'python:3.12', onNode: 'docker.io/library/python:3.12', same: true },
  { wanted: 'python:3.12', onNode: 'docker.io/library/python:3.12-slim', same: false },
  { wanted: 'corral/daemon', onNode: 'docker.io/corral/daemon:latest', same: true },
  { wanted: 'localhost/mine:1', onNode: 'localhost/mine:1', same: true },
  { wanted: 'registry.example:5000/a', onNode: 'registry.example:5000/a:latest', same: true },
  { wanted: 'ghcr.io/a/b@sha256:12', onNode: 'ghcr.io/a/b@sha256:12', same: true },
  { wanted: 'ghcr.io/a/b', onNode: 'docker.io/a/b:latest', same: false },
])('a node with $onNode has $wanted: $same', ({ wanted, onNode, same }) => {
  expect(isSameImage(onNode, wanted)).toBe(same)
})

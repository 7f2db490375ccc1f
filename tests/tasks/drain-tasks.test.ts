import { type ApiServer, createApiServer, memoryStorage } from '@corral/apiserver'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import { type AgentTask, AgentTasks, Environments, embeddedCrds, SandboxClaims } from '@corral/resources'
import { drainTasks } from '@corral/tasks'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const namespace = 'default'
const finalizer = 'corral.dev/task'
let server: ApiServer
let client: KubeClient

beforeEach(async () => {
  server = await createApiServer({ storage: memoryStorage(), crds: embeddedCrds() })
  await server.ready
  client = inProcessKubeClient(server)
})
afterEach(async () => {
  await client.close()
  await server.close()
})

async function addTask(name: string, options: { ended?: boolean; finalizers?: string[] } = {}): Promise<void> {
  const task = await client.create(AgentTasks, {
    apiVersion: AgentTasks.apiVersion,
    kind: 'AgentTask',
    metadata: { name, namespace, finalizers: options.finalizers ?? [finalizer] },
    spec: {
      repository: { url: 'https://code.example/a.git' },
      prompt: 'x',
      agent: { name: 'command', command: 'true' },
    },
  } as AgentTask)
  if (!options.ended) return
  const lastTransitionTime = '2026-01-01T00:00:00Z'
  const end = { type: 'Succeeded', status: 'True' as const, reason: 'Succeeded', message: '', lastTransitionTime }
  await client.updateStatus(AgentTasks, { ...task, status: { conditions: [end] } })
}
const names = async (): Promise<string[]> =>
  (await client.list(AgentTasks, { namespace })).items.map(({ metadata }) => metadata.name)

describe('after the server of a namespace is gone', () => {
  it('a drain gives sandboxes back and leaves no task that holds the namespace', async () => {
    await addTask('running')
    await addTask('ended', { ended: true })
    const claim = { warmPoolRef: { name: 'default' } }
    await client.create(SandboxClaims, { metadata: { name: 'running', namespace }, spec: claim })
    const result = await drainTasks({ client, namespace, timeoutMs: 0 })
    expect(result.forced.sort()).toEqual(['ended', 'running'])
    expect(await names()).toEqual([])
    expect((await client.list(SandboxClaims, { namespace })).items).toEqual([])
    expect(await drainTasks({ client, namespace, timeoutMs: 0 })).toEqual({ drained: 0, forced: [], environments: 0 })
  })

  it('no environment holds the namespace either', async () => {
    for (const [name, finalizers] of [
      ['ours', ['corral.dev/environment']],
      ['held', ['corral.dev/environment', 'example.org/archive']],
    ] as const) {
      const metadata = { name, namespace, finalizers: [...finalizers] }
      await client.create(Environments, { metadata, spec: { repository: { url: 'https://code.example/a.git' } } })
    }
    expect(await drainTasks({ client, namespace, timeoutMs: 0 })).toMatchObject({ environments: 2 })
    const left = (await client.list(Environments, { namespace })).items.map(({ metadata }) => metadata)
    expect(left.map(({ name, finalizers }) => [name, finalizers])).toEqual([['held', ['example.org/archive']]])
  })

  it('finalizers of others stay, and so does what they hold', async () => {
    await addTask('held', { finalizers: [finalizer, 'example.org/archive'] })
    await drainTasks({ client, namespace, timeoutMs: 0 })
    const held = await client.get(AgentTasks, { namespace, name: 'held' })
    expect(held.metadata.finalizers).toEqual(['example.org/archive'])
    expect(held.metadata.deletionTimestamp).toBeDefined()
  })

  it('ended tasks are kept without our finalizer where that is asked for', async () => {
    await addTask('ended', { ended: true })
    expect(await drainTasks({ client, namespace, keepTasks: true, timeoutMs: 60_000, pollMs: 1 })).toEqual({
      drained: 1,
      forced: [],
      environments: 0,
    })
    const kept = await client.get(AgentTasks, { namespace, name: 'ended' })
    expect([kept.metadata.finalizers ?? [], kept.metadata.deletionTimestamp]).toEqual([[], undefined])
  })
})

it('a drain beside a running server lets it end the tasks and waits, also for those that come meanwhile', async () => {
  await addTask('first')
  const said: string[] = []
  let turns = 0
  // The server: it releases a task that is being deleted, as its reconciler does after the cancellation.
  const drained = drainTasks({ client, namespace, timeoutMs: 240_000, pollMs: 5, say: (line) => said.push(line) })
  for (let open = await names(); open.length > 0 || turns === 0; open = await names()) {
    turns += 1
    if (turns === 2) await addTask('second')
    for (const name of open) {
      const task = await client.find(AgentTasks, { namespace, name })
      if (task?.metadata.deletionTimestamp)
        await client.update(AgentTasks, { ...task, metadata: { ...task.metadata, finalizers: [] } })
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  const result = await drained
  expect(result.forced).toEqual([])
  expect(result.drained).toBeGreaterThanOrEqual(1)
  expect(said[0]).toBe('waiting for 1 task to end')
  expect(await names()).toEqual([])
})

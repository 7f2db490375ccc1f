import { createApiServer, memoryStorage } from '@corral/apiserver'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import { silentLogger } from '@corral/ports'
import { AgentTasks, embeddedCrds, Namespaces } from '@corral/resources'
import { createTaskFeed, type TaskFeed, type TaskListChange } from '@corral/tasks'
import { afterEach, beforeEach, expect, it } from 'vitest'

let client: KubeClient
let stop: () => Promise<void>
let feed: TaskFeed
let queue: Map<string, { position: number; reason: string }>

beforeEach(async () => {
  const server = await createApiServer({ storage: memoryStorage(), crds: embeddedCrds() })
  client = inProcessKubeClient(server)
  await client.create(Namespaces, { metadata: { name: 'corral' } })
  queue = new Map()
  feed = createTaskFeed({ client, namespace: 'corral', queue: () => queue, log: silentLogger })
  stop = async () => {
    await feed.close()
    await server.close()
  }
})
afterEach(() => stop())

const create = (name: string, prompt = 'Do it\nwell') =>
  client.create(AgentTasks, {
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: { name, namespace: 'corral' },
    spec: { repository: { url: '/repo' }, prompt, agent: { name: 'command', command: 'true' } },
  })

function listen(cursor?: string): TaskListChange[] {
  const changes: TaskListChange[] = []
  feed.subscribe(cursor, (change) => changes.push(change))
  return changes
}
const seen = (changes: readonly TaskListChange[]) =>
  changes.flatMap(({ changed, removed }) => [...changed.map(({ id }) => `+${id}`), ...removed.map((id) => `-${id}`)])

it('starts with every task, without prompt and command, and tells of each change', async () => {
  await create('task-a')
  const changes = listen()
  await expect.poll(() => seen(changes)).toEqual(['+task-a'])
  expect(changes[0]).toMatchObject({ reset: true, changed: [{ title: 'Do it', agent: { name: 'command' } }] })
  expect(JSON.stringify(changes)).not.toContain('well')
  await create('task-b')
  await client.delete(AgentTasks, { namespace: 'corral', name: 'task-a' })
  await expect.poll(() => seen(changes)).toEqual(['+task-a', '+task-b', '-task-a'])
  expect(changes.slice(1).every(({ reset }) => !reset)).toBe(true)
})

it('tells who comes back with a cursor only what changed, removals included', async () => {
  await create('task-a')
  await create('task-b')
  const first = listen()
  await expect.poll(() => seen(first).sort()).toEqual(['+task-a', '+task-b'])
  const cursor = first.at(-1)?.cursor
  await client.delete(AgentTasks, { namespace: 'corral', name: 'task-a' })
  await create('task-c')
  await expect.poll(() => seen(first).slice(2).sort()).toEqual(['+task-c', '-task-a'])
  const back = listen(cursor)
  await expect.poll(() => seen(back).sort()).toEqual(['+task-c', '-task-a'])
  expect(back[0]?.reset).toBe(false)
})

it('starts anew for a cursor of another process', async () => {
  await create('task-a')
  for (const cursor of ['deadbeef.3', 'nonsense', '']) {
    const changes = listen(cursor)
    await expect.poll(() => changes.length).toBe(1)
    expect(changes[0]).toMatchObject({ reset: true, changed: [{ id: 'task-a' }] })
  }
})

it('tells when the place in the line moves, which no object says', async () => {
  const waiting = await create('task-a')
  queue.set(waiting.metadata.uid, { position: 2, reason: 'limit of 1 reached' })
  const changes = listen()
  await expect.poll(() => changes[0]?.changed[0]?.queue?.position).toBe(2)
  queue.set(waiting.metadata.uid, { position: 1, reason: 'limit of 1 reached' })
  await create('task-b')
  await expect
    .poll(() => changes.flatMap(({ changed }) => changed).findLast(({ id }) => id === 'task-a')?.queue?.position)
    .toBe(1)
})

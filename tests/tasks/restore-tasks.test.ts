import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ApiServer, createApiServer, memoryStorage } from '@corral/apiserver'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import { type AgentTask, AgentTasks, embeddedCrds, Leases, type Stored } from '@corral/resources'
import { adoptRestoredRecords, restoreTasks } from '@corral/tasks'
import { temporaryDirectory } from '@corral/testing'
import { afterEach, beforeEach, expect, it } from 'vitest'

const namespace = 'default'
const now = new Date('2026-01-02T00:00:00Z')
const uidOf = (name: string): string =>
  (name === 'first' ? 'aaaaaaaa' : 'bbbbbbbb').concat('-0000-4000-8000-000000000000')
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

/** As it stood in the cluster that is gone. */
function backedUp(name: string, creationTimestamp: string, more: Partial<AgentTask['spec']> = {}): Stored<AgentTask> {
  const lastTransitionTime = '2026-01-01T00:00:00Z'
  return {
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: {
      ...{ name, namespace: 'elsewhere', uid: uidOf(name), resourceVersion: '7', creationTimestamp },
      labels: { team: 'a' },
      annotations: { 'corral.dev/accepted-at': '2026-01-01T00:00:00.000001Z' },
      finalizers: ['corral.dev/task'],
    },
    spec: {
      repository: { url: 'https://code.example/a.git' },
      prompt: 'x',
      agent: { name: 'command', command: 'true' },
      ...more,
    },
    status: {
      phase: 'SUCCEEDED',
      conditions: [{ type: 'Succeeded', status: 'True', reason: 'Succeeded', message: '', lastTransitionTime }],
    },
  }
}
const first = backedUp('first', '2026-01-01T00:00:00Z')
const second = backedUp('second', '2026-01-01T00:00:05Z', {
  continues: { task: 'first', uid: uidOf('first'), thread: 'first' },
})

it('restored tasks have ended as before, name each other, and find their records, however often it is repeated', async () => {
  await using scratch = temporaryDirectory()
  mkdirSync(join(scratch.path, uidOf('first')))
  writeFileSync(join(scratch.path, uidOf('first'), 'events.ndjson'), '')
  const options = { client, namespace, tasks: [second, first], now }
  expect(await restoreTasks(options)).toEqual({ restored: ['first', 'second'], present: [] })
  const tasks = await Promise.all(['first', 'second'].map((name) => client.get(AgentTasks, { namespace, name })))
  for (const { status, metadata } of tasks) {
    expect(status).toMatchObject({ phase: 'SUCCEEDED', conditions: [{ type: 'Succeeded', status: 'True' }] })
    expect(metadata).toMatchObject({ labels: { team: 'a' }, finalizers: ['corral.dev/task'] })
    expect(metadata.annotations).toMatchObject({ 'corral.dev/accepted-at': '2026-01-01T00:00:00.000001Z' })
  }
  const uid = tasks[0]?.metadata.uid
  expect(uid).not.toBe(uidOf('first'))
  expect(tasks[1]?.spec.continues).toEqual({ task: 'first', uid, thread: 'first' })
  expect(await restoreTasks(options)).toEqual({ restored: [], present: ['first', 'second'] })
  for (const _ of ['once', 'again']) {
    await adoptRestoredRecords({ client, namespace, directory: scratch.path })
    expect(readdirSync(scratch.path)).toEqual([uid])
  }
})

it('a task that was restored without its end, since that was cut short, gets it the next time', async () => {
  const failing = { ...client, updateStatus: () => Promise.reject(new Error('the connection is gone')) }
  await expect(restoreTasks({ client: failing, namespace, tasks: [first], now })).rejects.toThrow('connection is gone')
  expect(await restoreTasks({ client, namespace, tasks: [first], now })).toMatchObject({ restored: ['first'] })
  expect((await client.get(AgentTasks, { namespace, name: 'first' })).status?.phase).toBe('SUCCEEDED')
})

it('another task of the same name stays as it is', async () => {
  const { spec } = first
  await client.create(AgentTasks, { metadata: { name: 'first', namespace }, spec: { ...spec, prompt: 'mine' } })
  expect(await restoreTasks({ client, namespace, tasks: [first], now })).toEqual({ restored: [], present: ['first'] })
  const { spec: kept, status } = await client.get(AgentTasks, { namespace, name: 'first' })
  expect([kept.prompt, status?.phase]).toEqual(['mine', undefined])
})

it.each<[what: string, renewed: string, refused: boolean]>([
  ['beside a server that runs nothing is restored', '2026-01-01T23:59:50.000000Z', true],
  ['the lease of a server that is gone does not matter', '2026-01-01T23:00:00.000000Z', false],
])('%s', async (_, renewTime, refused) => {
  await client.create(Leases, {
    metadata: { name: 'corral-task-controller', namespace },
    spec: { holderIdentity: 'a server', renewTime, leaseDurationSeconds: 15 },
  })
  const restoring = restoreTasks({ client, namespace, tasks: [first], now })
  if (refused) await expect(restoring).rejects.toThrow('a server runs in namespace default')
  else await restoring
  expect((await client.list(AgentTasks, { namespace })).items).toHaveLength(refused ? 0 : 1)
})

import { join } from 'node:path'
import { type ApiServer, createApiServer, memoryStorage } from '@corral/apiserver'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import { AgentTasks, embeddedCrds } from '@corral/resources'
import { createTaskService, type EventLog, fileEventLog, type TaskService } from '@corral/tasks'
import { gitRepository, type TemporaryDirectory, temporaryDirectory } from '@corral/testing'
import { afterEach, beforeEach, expect, it } from 'vitest'

let scratch: TemporaryDirectory
let server: ApiServer
let client: KubeClient
let eventLog: EventLog

beforeEach(async () => {
  scratch = temporaryDirectory()
  server = await createApiServer({ storage: memoryStorage(), crds: embeddedCrds() })
  await server.ready
  client = inProcessKubeClient(server)
  eventLog = fileEventLog({ directory: scratch.path, now: () => new Date() })
})
afterEach(async () => {
  await eventLog.close()
  await client.close()
  await server.close()
  await scratch[Symbol.asyncDispose]()
})

const namespace = 'default'
const service = (localRepositories: boolean): TaskService =>
  createTaskService({ client, namespace, eventLog, directory: scratch.path, defaultAgent: 'claude', localRepositories })
const taskCount = async (): Promise<number> => (await client.list(AgentTasks, { namespace })).items.length

it('a server for others takes no repository of its own disk, whether it is there or not', async () => {
  const { path } = await gitRepository(join(scratch.path, 'repo'))
  const tasks = service(false)
  for (const repo of [path, `file://${path}`, '/no/such/place'])
    await expect(tasks.create({ repo, task: 'x' })).rejects.toMatchObject({
      code: 'LocalRepositoryRefused',
      hint: expect.stringContaining('--local-repositories'),
    })
  expect(await taskCount()).toBe(0)
  await tasks.create({ repo: 'https://code.example/app.git', task: 'x' })
  await service(true).create({ repo: path, task: 'x', base_branch: 'main' })
  expect(await taskCount()).toBe(2)
})

it('who follows a task gets its events to the end, and is let go where the last one is missing', async () => {
  const tasks = service(true)
  const { task } = await tasks.create({ repo: 'https://code.example/app.git', task: 'x' })
  const stored = await client.get(AgentTasks, { namespace, name: task.id })
  await eventLog.append(stored.metadata.uid, [{ type: 'stage', stage: 'claim', state: 'started' }])
  const follow = async (): Promise<string[]> => {
    const types: string[] = []
    const options = { after: 0, follow: true, signal: AbortSignal.timeout(10_000) }
    for await (const { type } of await tasks.events(task.id, options)) types.push(type)
    return types
  }
  const early = follow()
  await client.updateStatus(AgentTasks, {
    ...stored,
    status: {
      phase: 'FAILED',
      conditions: [
        {
          type: 'Succeeded',
          status: 'False',
          reason: 'DiskFull',
          message: 'no room',
          lastTransitionTime: '2026-01-01T00:00:00Z',
        },
      ],
    },
  })
  expect(await follow()).toEqual(['stage'])
  eventLog.end(stored.metadata.uid)
  expect(await early).toEqual(['stage'])
})

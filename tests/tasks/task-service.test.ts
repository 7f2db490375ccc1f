import { join } from 'node:path'
import { type ApiServer, createApiServer, memoryStorage } from '@corral/apiserver'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import { AgentTasks, embeddedCrds } from '@corral/resources'
import {
  createModelProviders,
  createTaskService,
  memoryTaskRecords,
  type TaskRecords,
  type TaskService,
} from '@corral/tasks'
import { gitRepository, type TemporaryDirectory, temporaryDirectory } from '@corral/testing'
import { afterEach, beforeEach, expect, it } from 'vitest'

let scratch: TemporaryDirectory
let server: ApiServer
let client: KubeClient
let records: TaskRecords

beforeEach(async () => {
  scratch = temporaryDirectory()
  server = await createApiServer({ storage: memoryStorage(), crds: embeddedCrds() })
  await server.ready
  client = inProcessKubeClient(server)
  records = memoryTaskRecords({ now: () => new Date() })
})
afterEach(async () => {
  await records.close()
  await client.close()
  await server.close()
  await scratch[Symbol.asyncDispose]()
})

const namespace = 'default'
const providers = createModelProviders({
  endpoints: { find: async () => undefined, list: async () => [] },
  secrets: { find: async () => 'a-key' },
  env: {},
})
const service = (localRepositories: boolean): TaskService =>
  createTaskService({ client, namespace, records, defaultAgent: 'claude', providers, localRepositories })

it('a request for Git LFS is refused where a server would have to be asked and git-lfs is missing', async () => {
  const withLfs = (hasGitLfs: boolean): TaskService =>
    createTaskService({
      client,
      namespace,
      records,
      defaultAgent: 'claude',
      providers,
      localRepositories: true,
      hasGitLfs: async () => hasGitLfs,
    })
  const request = { repo: 'https://code.example/app.git', task: 'x', lfs: true }
  await expect(withLfs(false).create(request)).rejects.toMatchObject({
    code: 'LfsUnavailable',
    message: 'git-lfs is not installed on the machine of the platform',
  })
  expect(await taskCount()).toBe(0)
  const { task } = await withLfs(true).create(request)
  expect((await client.get(AgentTasks, { namespace, name: task.id })).spec.repository.lfs).toBe(true)
})
const endedCondition = {
  type: 'Succeeded',
  status: 'False',
  reason: 'DiskFull',
  message: 'no room',
  lastTransitionTime: '2026-01-01T00:00:00Z',
} as const
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

it.each<{ what: string; request: object; code: string; says: RegExp }>([
  { what: 'an agent nobody knows', request: { agent: 'hal' }, code: 'UnknownAgent', says: /no agent "hal"/ },
  {
    what: 'a command line without a command',
    request: { agent: { name: 'command' } },
    code: 'Invalid',
    says: /agent command: command: is required/,
  },
  {
    what: 'an option the agent does not have',
    request: { agent: { name: 'gemini', effort: 'high' } },
    code: 'Invalid',
    says: /agent gemini: there is no field "effort"/,
  },
  {
    what: 'a provider nobody added',
    request: { agent: { name: 'codex', provider: 'mine' } },
    code: 'Invalid',
    says: /no provider or endpoint "mine"/,
  },
  {
    what: 'a provider that speaks something else',
    request: { agent: { name: 'claude', provider: 'openai' } },
    code: 'Invalid',
    says: /speaks the API of openai, the agent that of anthropic/,
  },
  {
    what: 'a server of tools the task may not reach',
    request: { mcp_servers: [{ name: 'docs', url: 'https://mcp.example.com/x' }], egress: ['mcp.example.com:80'] },
    code: 'Invalid',
    says: /"docs" is at mcp.example.com:443, which the task may not reach/,
  },
  {
    what: 'a server of tools for a command line',
    request: { agent: { name: 'command', command: 'true' }, mcp_servers: [{ name: 'a', command: 'x' }] },
    code: 'Invalid',
    says: /agent "command" cannot use MCP servers: a command line has no settings for it/,
  },
  {
    what: 'two servers of one name',
    request: {
      mcp_servers: [
        { name: 'a', command: 'x' },
        { name: 'a', command: 'y' },
      ],
    },
    code: 'Invalid',
    says: /two servers are named "a"/,
  },
])('$what is refused and makes no task', async ({ request, code, says }) => {
  const tasks = service(true)
  await expect(tasks.create({ repo: 'https://code.example/app.git', task: 'x', ...request })).rejects.toMatchObject({
    code,
    message: expect.stringMatching(says),
    hint: expect.any(String),
  })
  expect(await taskCount()).toBe(0)
})

it('a retry asks for the same agent, options, servers and limits; values that may be secret are not shown', async () => {
  const tasks = service(true)
  const request = {
    repo: 'https://code.example/app.git',
    task: 'x',
    agent: { name: 'codex', model: 'gpt-5', effort: 'high', args: ['--x'], provider: 'openai' },
    instructions: 'Be brief.',
    mcp_servers: [{ name: 'a', command: 'node', env: { TOKEN: 'secret-value' } }],
    limits: { max_tokens: 10, max_cost_usd: 0.5 },
  }
  const { task } = await tasks.create(request)
  expect(task).toMatchObject({ agent: request.agent, instructions: 'Be brief.', limits: request.limits })
  expect(JSON.stringify(task)).not.toContain('secret-value')
  expect(task.mcp_servers).toEqual([{ name: 'a', command: 'node', env: ['TOKEN'] }])
  const first = await client.get(AgentTasks, { namespace, name: task.id })
  await client.updateStatus(AgentTasks, { ...first, status: { conditions: [endedCondition] } })
  const second = await client.get(AgentTasks, { namespace, name: (await tasks.retry(task.id)).task.id })
  const { retryOf, retry, ...spec } = second.spec
  expect(retryOf).toBe(task.id)
  expect(retry).toEqual({ from: 'start', uid: first.metadata.uid })
  expect(spec).toEqual(first.spec)
})

it('who follows a task gets its events to the end, and is let go where the last one is missing', async () => {
  const tasks = service(true)
  const { task } = await tasks.create({ repo: 'https://code.example/app.git', task: 'x' })
  const stored = await client.get(AgentTasks, { namespace, name: task.id })
  await records.events.append(stored.metadata.uid, [{ type: 'stage', stage: 'claim', state: 'started' }])
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
      conditions: [endedCondition],
    },
  })
  expect(await follow()).toEqual(['stage'])
  records.events.end(stored.metadata.uid)
  expect(await early).toEqual(['stage'])
})

it('logs and diff are what the record holds, and empty before there is any', async () => {
  const tasks = service(true)
  const { task } = await tasks.create({ repo: 'https://code.example/app.git', task: 'x' })
  const text = async (chunks: AsyncIterable<Uint8Array>): Promise<string> => {
    const all: Uint8Array[] = []
    for await (const chunk of chunks) all.push(chunk)
    return Buffer.concat(all).toString()
  }
  expect(await text(await tasks.logs(task.id))).toBe('')
  expect(await text(await tasks.diff(task.id))).toBe('')
  const { metadata } = await client.get(AgentTasks, { namespace, name: task.id })
  const record = records.of(metadata.uid)
  for (const part of ['agent-log', 'diff'] as const) {
    const writer = await record.openWriter(part)
    await writer.write(Buffer.from(`the ${part}`))
    await writer.close()
  }
  expect(await text(await tasks.logs(task.id))).toBe('the agent-log')
  expect(await text(await tasks.diff(task.id))).toBe('the diff')
})

it('egress by name is refused where the nodes of the cluster cannot give it, and no task is made', async () => {
  const tasks = createTaskService({
    client,
    namespace,
    records,
    defaultAgent: 'claude',
    providers,
    localRepositories: false,
    hasEgressByName: false,
  })
  const request = { repo: 'https://code.example/app.git', task: 'x' }
  await expect(tasks.create({ ...request, egress: ['packages.example.com:443'] })).rejects.toMatchObject({
    code: 'EgressUnsupported',
  })
  expect(await taskCount()).toBe(0)
  await tasks.create(request)
  expect(await taskCount()).toBe(1)
})

it('a follow-up sent as soon as the result was read is taken, not queued behind a task that still seems to run', async () => {
  const { task } = await service(true).create({ repo: 'https://code.example/app.git', task: 'x' })
  const stored = await client.get(AgentTasks, { namespace, name: task.id })
  const { uid } = stored.metadata
  const signal = new AbortController().signal
  const events = await service(true).events(task.id, { after: 0, follow: true, signal })
  const seen = (async () => {
    for await (const event of events) if (event.type === 'result') return (await service(true).get(task.id)).status
    return undefined
  })()
  await records.events.append(uid, [{ type: 'result', status: 'FAILED' }])
  await records.events.tail(uid)
  const status = { conditions: [{ ...endedCondition, observedGeneration: 1 }] }
  await client.updateStatus(AgentTasks, { ...stored, status: { ...stored.status, ...status } })
  expect(await seen).toBe('FAILED')
})

import { join } from 'node:path'
import { type ApiServer, createApiServer, memoryStorage } from '@corral/apiserver'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import { AgentTasks, embeddedCrds, Projects, SandboxTemplates, SandboxWarmPools } from '@corral/resources'
import {
  createProjectService,
  createTaskService,
  memoryTaskRecords,
  type ProjectService,
  type TaskRecords,
  type TaskService,
} from '@corral/tasks'
import { gitRepository, type TemporaryDirectory, temporaryDirectory } from '@corral/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

let scratch: TemporaryDirectory
let server: ApiServer
let client: KubeClient
let records: TaskRecords
let projects: ProjectService
let tasks: TaskService

const namespace = 'default'
const agent = { name: 'command', command: 'true' }
const repo = 'https://code.example/shop.git'
const user = { name: 'Jane', email: 'jane@example.com' }

beforeEach(async () => {
  scratch = temporaryDirectory()
  server = await createApiServer({ storage: memoryStorage(), crds: embeddedCrds() })
  await server.ready
  client = inProcessKubeClient(server)
  records = memoryTaskRecords({ now: () => new Date() })
  projects = createProjectService({ client, namespace, localRepositories: true })
  tasks = createTaskService({
    ...{ client, namespace, records, defaultAgent: 'command', localRepositories: true, isolation: 'bubblewrap' },
    findIdentity: async () => user,
  })
})
afterEach(async () => {
  await records.close()
  await client.close()
  await server.close()
  await scratch[Symbol.asyncDispose]()
})

const specOf = async (name: string) => (await client.get(AgentTasks, { namespace, name })).spec
const counts = async () => ({
  projects: (await client.list(Projects, { namespace })).items.length,
  tasks: (await client.list(AgentTasks, { namespace })).items.length,
})

describe('a project', () => {
  it('gives a task what it names, once: a later change, its end and a retry leave the task as it is', async () => {
    await projects.create({ name: 'shop', repo, agent, instructions: 'Write tests.', egress: ['a.example:443'] })
    const { task } = await tasks.create({ project: 'shop', task: 'x', instructions: 'Be brief.' })
    const spec = {
      project: 'shop',
      repository: { url: repo },
      agent,
      instructions: 'Write tests.\n\nBe brief.',
      egress: ['a.example:443'],
      author: user,
      committer: user,
    }
    expect(await specOf(task.id)).toMatchObject(spec)
    await projects.change('shop', {
      instructions: 'Write none.',
      egress: null,
      agent: { name: 'command', command: ':' },
    })
    expect(await specOf(task.id)).toMatchObject(spec)
    await projects.remove('shop')
    expect((await tasks.get(task.id)).project).toBe('shop')
    const stored = await client.get(AgentTasks, { namespace, name: task.id })
    const conditions = [
      {
        type: 'Succeeded',
        status: 'False',
        reason: 'AgentFailed',
        message: 'it failed',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      } as const,
    ]
    await client.updateStatus(AgentTasks, { ...stored, status: { phase: 'FAILED', conditions } })
    const again = await tasks.retry(task.id)
    expect(await specOf(again.task.id)).toMatchObject(spec)
    const sent = await tasks.message(task.id, { task: 'y' })
    expect('task' in sent && (await specOf(sent.task.id))).toMatchObject(spec)
    expect((await tasks.list({ project: 'shop' })).tasks).toHaveLength(3)
  })

  it('has tasks that are listed by it, and no others', async () => {
    await projects.create({ name: 'a', repo, agent })
    await projects.create({ name: 'b', repo, agent })
    const { task } = await tasks.create({ project: 'a', task: 'x' })
    await tasks.create({ project: 'b', task: 'x' })
    await tasks.create({ repo, agent, task: 'x' })
    expect((await tasks.list({ project: 'a' })).tasks.map(({ id }) => id)).toEqual([task.id])
    expect((await tasks.list({ project: 'none' })).tasks).toEqual([])
  })

  it('answers a repeated request with the first task, also after it changed or went away', async () => {
    await projects.create({ name: 'shop', repo, agent })
    const request = { project: 'shop', task: 'x' }
    const first = await tasks.create(request, { idempotencyKey: 'k' })
    await projects.change('shop', { instructions: 'new' })
    expect(await tasks.create(request, { idempotencyKey: 'k' })).toMatchObject({ isReplay: true, task: first.task })
    await projects.remove('shop')
    expect(await tasks.create(request, { idempotencyKey: 'k' })).toMatchObject({ isReplay: true, task: first.task })
    await expect(tasks.create({ ...request, task: 'y' }, { idempotencyKey: 'k' })).rejects.toMatchObject({
      code: 'ProjectNotFound',
    })
  })

  it('is changed by the one who read it last: the other one is told', async () => {
    const { resource_version } = await projects.create({ name: 'shop', repo, agent })
    const changed = await projects.change('shop', { setup: 'make', resource_version })
    expect(changed).toMatchObject({ setup: 'make', repo })
    for (const late of [
      projects.change('shop', { setup: 'other', resource_version }),
      projects.replace('shop', { setup: 'other', resource_version }),
    ])
      await expect(late).rejects.toMatchObject({ code: 'ProjectChanged' })
    expect(await projects.get('shop')).toEqual(changed)
    const replaced = await projects.replace('shop', { setup: 'all', resource_version: changed.resource_version })
    expect(replaced).not.toHaveProperty('repo')
    await Promise.all(
      [1, 2, 3, 4].map((n) => projects.change('shop', { [n % 2 ? 'sign' : 'check_rounds']: n % 2 ? true : n })),
    )
    expect(await projects.get('shop')).toMatchObject({ setup: 'all', sign: true })
  })

  it.each<{ what: string; make: () => Promise<unknown>; code: string; says: RegExp }>([
    {
      what: 'a second one of the name',
      make: () => projects.create({ name: 'first', repo }),
      code: 'ProjectExists',
      says: /"first" already/,
    },
    {
      what: 'an agent nobody knows',
      make: () => projects.create({ name: 'p', agent: 'hal' }),
      code: 'UnknownAgent',
      says: /no agent "hal"/,
    },
    {
      what: 'a token in the address',
      make: () => projects.create({ name: 'p', repo: 'https://user:token@code.example/r.git' }),
      code: 'CredentialsInUrl',
      says: /carries/,
    },
    {
      what: 'a path without a repository',
      make: () => projects.create({ name: 'p', repo: scratch.path }),
      code: 'RepositoryNotFound',
      says: /without a git repository/,
    },
    {
      what: 'a change of one that is not there',
      make: () => projects.change('none', { setup: 'x' }),
      code: 'ProjectNotFound',
      says: /no project "none"/,
    },
    {
      what: 'a task of one that is not there',
      make: () => tasks.create({ project: 'none', task: 'x' }),
      code: 'ProjectNotFound',
      says: /no project "none"/,
    },
    {
      what: 'a task without a repository',
      make: () => tasks.create({ project: 'first', task: 'x' }),
      code: 'Invalid',
      says: /project "first" names no repository/,
    },
    {
      what: 'a label that would put a task into a project',
      make: () => tasks.create({ repo, agent, task: 'x', labels: { 'corral.dev/project': 'first' } }),
      code: 'Invalid',
      says: /labels\.corral\.dev\/project: is set by the platform/,
    },
    {
      what: 'a tier the platform does not reach',
      make: () => tasks.create({ repo, agent, task: 'x', minimum_tier: 'gvisor' }),
      code: 'IsolationTooWeak',
      says: /"bubblewrap", which is weaker than "gvisor"/,
    },
    {
      what: 'a RuntimeClass no pool has',
      make: () => tasks.create({ repo, agent, task: 'x', runtime_class_name: 'kata' }),
      code: 'RuntimeUnavailable',
      says: /no pool of sandboxes has the RuntimeClass "kata"/,
    },
  ])('refuses $what and changes nothing', async ({ make, code, says }) => {
    await projects.create({ name: 'first', agent })
    const error = await make().catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code, message: expect.stringMatching(says) })
    expect(await counts()).toEqual({ projects: 1, tasks: 0 })
  })

  it('takes a repository on this machine, and refuses it where the server is for others', async () => {
    const { path } = await gitRepository(join(scratch.path, 'repo'))
    await projects.create({ name: 'local', repo: path, base_branch: 'main' })
    await expect(projects.change('local', { base_branch: 'none' })).rejects.toMatchObject({ code: 'BranchNotFound' })
    const remote = createProjectService({ client, namespace, localRepositories: false })
    await expect(remote.create({ name: 'other', repo: path })).rejects.toMatchObject({ code: 'LocalRepositoryRefused' })
  })
})

it('a task that asks for a RuntimeClass goes to a pool whose template has it', async () => {
  const group = 'extensions.agents.x-k8s.io/v1beta1'
  const template = (name: string, runtimeClassName?: string) =>
    client.create(SandboxTemplates, {
      ...{ apiVersion: group, kind: 'SandboxTemplate', metadata: { name, namespace } },
      spec: {
        podTemplate: {
          spec: { containers: [{ name: 'main', image: 'i' }], ...(runtimeClassName ? { runtimeClassName } : {}) },
        },
      },
    })
  const pool = (name: string, of: string) =>
    client.create(SandboxWarmPools, {
      ...{ apiVersion: group, kind: 'SandboxWarmPool', metadata: { name, namespace } },
      spec: { replicas: 0, sandboxTemplateRef: { name: of } },
    })
  await template('plain')
  await template('strong', 'kata')
  await pool('default', 'plain')
  await pool('zeta', 'strong')
  await pool('gone', 'deleted')
  await projects.create({ name: 'shop', repo, agent, runtime_class_name: 'kata' })
  const { task } = await tasks.create({ project: 'shop', task: 'x' })
  expect(await specOf(task.id)).toMatchObject({ sandbox: { pool: 'zeta' }, runtimeClassName: 'kata' })
  const named = await tasks.create({ project: 'shop', task: 'x', sandbox: { pool: 'default' } })
  expect(await specOf(named.task.id)).toMatchObject({ sandbox: { pool: 'default' } })
})

it.each([
  { what: 'a name that is no label value', name: 'x'.repeat(64), spec: {}, says: /63 characters at most/ },
  { what: 'an author in two lines', name: 'p', spec: { author: { name: 'a\nb', email: 'e@x' } }, says: /one line/ },
  { what: 'a token in the address', name: 'p', spec: { repository: { url: 'https://a:b@x/y' } }, says: /password/ },
])('the API server refuses a Project with $what', async ({ name, spec, says }) => {
  const made = client.create(Projects, {
    ...{ apiVersion: 'corral.dev/v1alpha1', kind: 'Project', metadata: { name, namespace }, spec },
  })
  await expect(made).rejects.toThrow(says)
})

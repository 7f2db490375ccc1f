import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type ApiServer, createApiServer, memoryStorage } from '@corral/apiserver'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import { silentLogger } from '@corral/ports'
import { type AgentTask, AgentTasks, embeddedCrds } from '@corral/resources'
import { createApp } from '@corral/server'
import { createTaskService, memoryTaskRecords, type TaskRecords } from '@corral/tasks'
import { type TemporaryDirectory, temporaryDirectory } from '@corral/testing'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createGit, createRepository, writeGlobalConfig } from '../../packages/tasks/src/index.js'

const namespace = 'default'
const secret = 'hunter2secret'
let scratch: TemporaryDirectory
let server: ApiServer
let client: KubeClient
let records: TaskRecords
let app: ReturnType<typeof createApp>

beforeAll(async () => {
  scratch = temporaryDirectory()
  server = await createApiServer({ storage: memoryStorage(), crds: embeddedCrds() })
  await server.ready
  client = inProcessKubeClient(server)
  records = memoryTaskRecords({ now: () => new Date() })
  const tasks = createTaskService({ client, namespace, records, defaultAgent: 'claude', localRepositories: true })
  app = createApp({ tasks, token: 't', isReady: () => true, registry: new Registry(), version: '1', log: silentLogger })
})
afterAll(async () => {
  await records.close()
  await client.close()
  await server.close()
  await scratch[Symbol.asyncDispose]()
})

const post = async (body: string): Promise<{ status: number; text: string }> => {
  const headers = { authorization: 'Bearer t', 'content-type': 'application/json' }
  const response = await app.request('/tasks', { method: 'POST', body, headers })
  return { status: response.status, text: await response.text() }
}
const taskCount = async (): Promise<number> => (await client.list(AgentTasks, { namespace })).items.length

const carriers: { what: string; repo: string; carries: string }[] = [
  { what: 'a password', repo: `https://alice:${secret}@code.example/a.git`, carries: 'a password' },
  { what: 'a token as the user', repo: `https://${secret}@code.example/a.git`, carries: 'a user name or token' },
  { what: 'a token and no password', repo: `https://${secret}:@code.example/a.git`, carries: 'a password' },
  { what: 'a token as the password of nobody', repo: `http://:${secret}@code.example/a.git`, carries: 'a password' },
  { what: 'an encoded colon', repo: `https://alice%3A${secret}@code.example/a.git`, carries: 'a password' },
  { what: 'an encoded at sign', repo: `https://alice:${secret}%40code.example/a.git`, carries: 'a password' },
  { what: 'an at sign in the password', repo: `https://a:p@${secret}@code.example/a.git`, carries: 'a password' },
  { what: 'back slashes', repo: `https:\\\\alice:${secret}@code.example/a.git`, carries: 'a password' },
  { what: 'one slash', repo: `https:/alice:${secret}@code.example/a.git`, carries: 'a password' },
  { what: 'capitals and spaces around', repo: `  HTTPS://a:${secret}@code.example/a.git `, carries: 'a password' },
  { what: 'a password of ssh', repo: `ssh://git:${secret}@code.example/a.git`, carries: 'a password' },
  { what: 'an encoded password of ssh', repo: `ssh://git%3a${secret}@code.example/a.git`, carries: 'a password' },
  { what: 'a token as the user of ssh', repo: `ssh://ghp_${secret}@code.example/a.git`, carries: 'a token' },
  { what: 'a password in the short form of ssh', repo: `git:${secret}@code.example:a.git`, carries: 'a password' },
  { what: 'a token in the short form of ssh', repo: `glpat-${secret}@code.example:a.git`, carries: 'a token' },
  { what: 'a query', repo: `https://code.example/a.git?private_token=${secret}`, carries: 'a query or fragment' },
  { what: 'an encoded query', repo: `https://code.example/a.git%3Ftoken=${secret}`, carries: 'a query or fragment' },
  { what: 'a fragment', repo: `https://code.example/a.git#${secret}`, carries: 'a query or fragment' },
  { what: 'a query of a file', repo: `file:///srv/a.git?token=${secret}`, carries: 'a query or fragment' },
  { what: 'a scheme we do not take', repo: `git://alice:${secret}@code.example/a.git`, carries: 'a password' },
]

describe('a repository address that could hold a secret', () => {
  it.each(carriers)('is refused by POST /tasks and repeated nowhere: $what', async ({ repo, carries }) => {
    const before = await taskCount()
    const { status, text } = await post(JSON.stringify({ repo, task: 'x' }))
    expect(status).toBe(422)
    expect(JSON.parse(text)).toMatchObject({
      error: {
        code: 'CredentialsInUrl',
        message: expect.stringContaining(`carries ${carries}`),
        hint: expect.stringContaining('credential helper'),
      },
    })
    expect(text).not.toContain(secret)
    expect(await taskCount()).toBe(before)
  })

  it.each([
    { what: 'half an address', repo: `https//alice:${secret}@code.example` },
    { what: 'an encoded scheme', repo: `https%3A//alice:${secret}@code.example/a.git` },
    { what: 'a port that is none', repo: `https://alice:${secret}` },
  ])('is not repeated either where it is no address at all: $what', async ({ repo }) => {
    const { status, text } = await post(JSON.stringify({ repo, task: 'x' }))
    expect(status).toBe(422)
    expect(text).not.toContain(secret)
  })

  it.each([
    'https://code.example:8443/group/a.git',
    'https://code.example/@scope/a.git',
    'ssh://git@code.example:2222/a.git',
    'ssh://git@[::1]:22/a.git',
    'git@code.example:group/a.git',
    'APKAEIBAERJR2EXAMPLE@code.example:v1/repos/a',
  ])('but %s is taken', async (repo) => {
    expect(await post(JSON.stringify({ repo, task: 'x' }))).toMatchObject({ status: 201 })
  })

  it.each([
    `https://alice:${secret}@code.example/a.git`,
    `https://${secret}@code.example/a.git`,
    `ssh://git:${secret}@code.example/a.git`,
    `git:${secret}@code.example:a.git`,
    `https://code.example/a.git?private_token=${secret}`,
  ])('is refused as an AgentTask too, without its value in the answer: %s', async (url) => {
    const before = await taskCount()
    const error = await client.create(AgentTasks, agentTask({ url })).then(
      () => undefined,
      (refusal: Error & { code?: string; body?: unknown }) => refusal,
    )
    expect(error).toMatchObject({ code: 'Invalid', message: expect.stringContaining('spec.repository.url: Forbidden') })
    expect(`${error?.message} ${JSON.stringify(error)}`).not.toContain(secret)
    expect(await taskCount()).toBe(before)
  })

  it.each([
    '/srv/we?ird@path',
    'file:///srv/a.git',
    'ssh://git@code.example:22/a.git',
    'git@code.example:x',
    'https://code.example/@a/b',
  ])('but an AgentTask of %s is taken', async (url) => {
    await expect(client.create(AgentTasks, agentTask({ url }))).resolves.toBeDefined()
  })
})

function agentTask(repository: { url: string }, more: Partial<AgentTask['spec']> = {}): AgentTask {
  return {
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: { generateName: 'by-hand-', namespace },
    spec: { repository, prompt: 'x', agent: { name: 'command', command: 'true' }, ...more },
  }
}

describe('what git says about an address that the user’s configuration has put a token into', () => {
  let remote: Server
  let port: number
  beforeAll(async () => {
    // Repeats the credentials of every request, as a careless server or proxy does.
    remote = createServer((request, response) => {
      const given = Buffer.from((request.headers.authorization ?? '').replace('Basic ', ''), 'base64').toString()
      const [, password = ''] = given.split(':')
      if (!given) return void response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end()
      const text = `bad token ${password} for http://${given}@host/x and ${encodeURIComponent(`http://${given}@host`)}\n`
      response.writeHead(403, { 'content-type': 'text/plain' }).end(text)
    })
    await new Promise<void>((resolve) => remote.listen(0, '127.0.0.1', resolve))
    port = (remote.address() as AddressInfo).port
  })
  afterAll(() => new Promise<void>((resolve) => void remote.close(() => resolve())))

  it.each([
    { setting: 'insteadOf', userinfo: `alice:${secret}` },
    { setting: 'insteadOf', userinfo: `alice:p%40${secret}` },
    { setting: 'insteadOf', userinfo: secret },
  ])('names neither user nor token: $setting = $userinfo', async ({ setting, userinfo }) => {
    const directory = mkdtempSync(join(scratch.path, 'git-'))
    const user = join(directory, 'user.gitconfig')
    writeFileSync(user, `[url "http://${userinfo}@127.0.0.1:${port}/"]\n\t${setting} = http://code.example/\n`)
    const env = { PATH: process.env.PATH, HOME: directory, GIT_CONFIG_GLOBAL: user }
    const globalConfig = await writeGlobalConfig(join(directory, 'config'), env)
    const git = createGit({ globalConfig, env })
    const repository = createRepository({ git, mirrorsDirectory: join(directory, 'mirrors') })
    const { signal } = new AbortController()
    const error = await repository.prepare({ url: 'http://code.example/a.git', taskDirectory: directory, signal }).then(
      () => undefined,
      (failure: Error) => failure,
    )
    // The probe has reached git and the server: otherwise there would be nothing to take out.
    expect(error).toMatchObject({ code: expect.stringMatching(/^(RepositoryAccessDenied|CloneFailed)$/) })
    const chain = JSON.stringify([error?.message, error?.stack, (error?.cause as Error)?.stack, error?.cause])
    expect(chain).toMatch(/127\.0\.0\.1|code\.example/)
    expect(chain).not.toContain(secret)
  })
})

describe('names that would be taken for something else', () => {
  it.each([
    { name: 'HEAD', rule: 'must not be HEAD' },
    { name: 'FETCH_HEAD', rule: 'must not be HEAD or another name that git keeps' },
    { name: 'refs/heads/x', rule: 'without "refs/heads/"' },
    { name: '+x', rule: 'means force in a refspec' },
    { name: '@', rule: 'git takes for HEAD' },
    { name: '-x', rule: 'as an option does' },
    { name: 'x.lock', rule: 'ends with ".lock"' },
    { name: 'a/x.lock/b', rule: 'ends with ".lock"' },
    { name: 'a:b', rule: 'must not contain a space' },
    { name: 'a'.repeat(40), rule: 'id of a commit' },
    { name: 'ad\u202Emin', rule: 'hide or reorder' },
    { name: '\ud800', rule: 'hide or reorder' },
    { name: 'ma\u200bin', rule: 'hide or reorder' },
    { name: 'ma\u00adin', rule: 'hide or reorder' },
    { name: 'main\u3164', rule: 'hide or reorder' },
    { name: 'main\ufe0f', rule: 'hide or reorder' },
    { name: 'ä'.repeat(130), rule: 'more than 240 bytes' },
  ])('the new branch $name is refused with its rule', async ({ name, rule }) => {
    const before = await taskCount()
    const { status, text } = await post(
      JSON.stringify({ repo: 'https://code.example/a.git', task: 'x', new_branch: name }),
    )
    expect({ status, ...JSON.parse(text) }).toMatchObject({
      status: 422,
      error: {
        code: 'Invalid',
        message: expect.stringContaining(`new_branch: ${rule.startsWith('must') ? rule : ''}`),
      },
    })
    expect(JSON.parse(text).error.message).toContain(rule)
    expect(await taskCount()).toBe(before)
  })

  it.each(['HEAD', 'refs/heads/x', '+x', '@', '-x', 'x.lock', 'a..b', 'a b', 'a\\b'])(
    'an AgentTask with the new branch %s is refused',
    async (newBranch) => {
      const task = agentTask({ url: '/srv/a' }, { newBranch })
      await expect(client.create(AgentTasks, task)).rejects.toMatchObject({
        code: 'Invalid',
        message: expect.stringMatching(
          /spec\.newBranch: Invalid value: .*(short name of a branch|git check-ref-format)/,
        ),
      })
    },
  )

  it.each(['feature/x', 'v1.2', 'fix#12', 'ünï', 'a@b', 'HEADER'])('the branch %s is taken both ways', async (name) => {
    const body = { repo: 'https://code.example/a.git', task: 'x', new_branch: name, base_branch: name }
    expect(await post(JSON.stringify(body))).toMatchObject({ status: 201 })
    await expect(client.create(AgentTasks, agentTask({ url: '/srv/a' }, { newBranch: name }))).resolves.toBeDefined()
  })

  it.each(['__proto__', 'constructor', 'prototype'])('the label %s is refused and nothing is made', async (name) => {
    const before = await taskCount()
    const { status, text } = await post(`{"repo":"https://code.example/a.git","task":"x","labels":{"${name}":"x"}}`)
    expect({ status, text }).toMatchObject({
      status: 422,
      text: expect.stringContaining('reserved and cannot be a label'),
    })
    expect(await taskCount()).toBe(before)
  })

  it.each([
    { field: 'template', name: '../x' },
    { field: 'template', name: 'default/../../x' },
    { field: 'pool', name: '..%2fx' },
    { field: 'pool', name: 'Default' },
  ])('the $field $name, for which a task would wait without end, is refused both ways', async ({ field, name }) => {
    const before = await taskCount()
    const body = { repo: 'https://code.example/a.git', task: 'x', sandbox: { [field]: name } }
    expect(await post(JSON.stringify(body))).toMatchObject({
      status: 422,
      text: expect.stringContaining(`sandbox.${field}: must be the name of a ${field}`),
    })
    await expect(
      client.create(AgentTasks, agentTask({ url: '/srv/a' }, { sandbox: { [field]: name } })),
    ).rejects.toMatchObject({
      code: 'Invalid',
      message: expect.stringContaining(`spec.sandbox.${field}: Invalid value`),
    })
    expect(await taskCount()).toBe(before)
  })

  it.each(['template', 'pool'])('the %s small-1.2 is taken both ways', async (field) => {
    const sandbox = { [field]: 'small-1.2' }
    const body = { repo: 'https://code.example/a.git', task: 'x', sandbox }
    expect(await post(JSON.stringify(body))).toMatchObject({ status: 201 })
    await expect(client.create(AgentTasks, agentTask({ url: '/srv/a' }, { sandbox }))).resolves.toBeDefined()
  })

  it.each(['../../x', '\u001b[2J', 'a/b', '.', ''])(
    'a check named %j, which no list could show, is refused',
    async (name) => {
      const task = agentTask({ url: '/srv/a' }, { checks: [{ name, command: 'true' }] })
      await expect(client.create(AgentTasks, task)).rejects.toMatchObject({
        code: 'Invalid',
        message: expect.stringContaining('spec.checks[0].name: Invalid value'),
      })
    },
  )

  it.each(['../../../etc', 'a\0b', ''])(
    'a former task with the uid %j, which is part of a path, is refused',
    async (uid) => {
      const task = agentTask({ url: '/srv/a' }, { continues: { task: 'a', thread: 'a', uid } })
      await expect(client.create(AgentTasks, task)).rejects.toMatchObject({
        code: 'Invalid',
        message: expect.stringContaining('spec.continues.uid: Invalid value'),
      })
    },
  )

  it('a check and a former task of ordinary names are taken', async () => {
    const continues = { task: 'a', thread: 'a', uid: '0b9f3c1e-1111-4222-8333-444455556666' }
    const task = agentTask({ url: '/srv/a' }, { checks: [{ name: 'unit-tests_1.2', command: 'true' }], continues })
    await expect(client.create(AgentTasks, task)).resolves.toBeDefined()
  })

  it('a label of an ordinary name is kept', async () => {
    const body = { repo: 'https://code.example/a.git', task: 'x', labels: { 'team.example/owner': 'a' } }
    const { id } = JSON.parse((await post(JSON.stringify(body))).text) as { id: string }
    const { metadata } = await client.get(AgentTasks, { namespace, name: id })
    expect(metadata.labels).toEqual({ 'team.example/owner': 'a' })
  })
})

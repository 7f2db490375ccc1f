import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CreateTaskRequest } from '@corral/protocol'
import { Namespaces, Pods, SandboxClaims, SandboxTemplates } from '@corral/resources'
import {
  gitRepository,
  isFullSize,
  type PlatformProcess,
  type ScriptedModel,
  startPlatformProcess,
  startScriptedModel,
  type TemporaryDirectory,
  temporaryDirectory,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

/** The user's platform, and another API server, controllers and node, which are the cluster. */
let home: PlatformProcess
let cluster: PlatformProcess
let model: ScriptedModel
let scratch: TemporaryDirectory
let count = 0

beforeAll(async () => {
  scratch = temporaryDirectory()
  model = await startScriptedModel([[{ type: 'text', text: 'hello from the model' }]])
  cluster = await startPlatformProcess({ args: ['--warm', '0'] })
  home = await startPlatformProcess({
    args: ['--warm', '0'],
    env: { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'sk-real' },
  })
  await (await cluster.kube()).create(Namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'agents' } })
  const added = await home.corral([
    ...['provider', 'add', 'staging', '--type', 'agent-sandbox', '--data-dir', home.dataDir],
    ...['--kubeconfig', cluster.kubeconfig, '--namespace', 'agents'],
  ])
  expect(added.code, added.stderr).toBe(0)
})
afterAll(async () => {
  await home?.[Symbol.asyncDispose]()
  await cluster?.[Symbol.asyncDispose]()
  await model?.[Symbol.asyncDispose]()
  await scratch?.[Symbol.asyncDispose]()
})

const atHome = { agent: { name: 'command', command: 'touch here' }, sandbox: { provider: 'embedded' } }

/** A program as agents are: it asks its model over the address and with the token it was given. */
const askModel = `node -e "
  const { OPENAI_BASE_URL: url, OPENAI_API_KEY: token } = process.env
  const body = JSON.stringify({ model: 'gpt', messages: [{ role: 'user', content: 'hi' }] })
  const headers = { authorization: 'Bearer ' + token, 'content-type': 'application/json' }
  fetch(url + '/chat/completions', { method: 'POST', headers, body }).then(async (answer) => {
    const text = await answer.text()
    require('fs').writeFileSync('said.txt', url + ' ' + answer.status + ' ' + text)
    process.exit(answer.ok ? 0 : 1)
  })
"`

async function request(command: string, more: Partial<CreateTaskRequest> = {}): Promise<CreateTaskRequest> {
  const repo = await gitRepository(join(scratch.path, `repo-${++count}`), { 'README.md': '# demo\n' })
  return {
    repo: repo.path,
    task: 'Ask the model',
    agent: { name: 'command', command, provider: 'openai' },
    sandbox: { provider: 'staging' },
    ...more,
  }
}

describe('tasks whose sandboxes are in another cluster', () => {
  it('run there, call their model over the platform’s own line, and leave nothing behind', async () => {
    const asked = await request(`${askModel} && hostname > where.txt`)
    const id = await home.api.create(asked)
    const there = await cluster.kube()
    const claim = await waitUntil('the claim is in the cluster', () =>
      there.find(SandboxClaims, { namespace: 'agents', name: id }),
    )
    expect(claim.metadata.ownerReferences ?? []).toEqual([])
    const task = await home.api.untilEnded(id)
    expect(task).toMatchObject({ status: 'SUCCEEDED', outcome: 'changes', pushed: true })
    expect(task.sandbox).toMatchObject({ provider: 'staging', claim: id })
    expect(task.usage?.input_tokens).toBeGreaterThan(0)
    const { text } = await home.api.request('GET', `/tasks/${id}/diff`)
    expect(text).toContain('+http://127.0.0.1:8787/v1 200')
    expect(model.requests.at(-1)?.headers.authorization).toBe('Bearer sk-real')
    await waitUntil('the claim is gone', async () => {
      return !(await there.find(SandboxClaims, { namespace: 'agents', name: id }))
    })
    const { items } = await (await home.kube()).list(Pods, {})
    expect(items).toEqual([])
  })

  it('go on while the platform is away, and find their model when it is back', async () => {
    const id = await home.api.create(
      await request(`echo waiting; while [ ! -e /tmp/go ]; do sleep 0.1; done; ${askModel}`),
    )
    const running = await home.api.until(id, 'runs', ({ status }) => status === 'RUNNING')
    await home.kill9()
    const pod = running.sandbox?.pod ?? ''
    const released = await cluster.kubectl(['-n', 'agents', 'exec', pod, '--', 'touch', '/tmp/go'])
    expect(released.code, released.stderr).toBe(0)
    await home.restart()
    expect(await home.api.untilEnded(id)).toMatchObject({ status: 'SUCCEEDED', outcome: 'changes' })
  })

  it('end with BrokerUnreachable before the agent starts where a program inside has the broker’s port', async () => {
    const take = `setsid node -e "require('net').createServer().listen(8787,'127.0.0.1')" >/dev/null 2>&1 & sleep 1`
    const task = await home.api.run(await request('touch started', { setup: take }))
    expect(task).toMatchObject({ status: 'FAILED', cause: { code: 'BrokerUnreachable' } })
    const events = await home.api.allEvents(task.id)
    expect(events.some((event) => event.type === 'stage' && event.stage === 'agent' && event.state === 'started')).toBe(
      false,
    )
  })

  it.each([
    { what: 'a provider nobody added', more: { sandbox: { provider: 'nowhere' } }, says: /no provider .*nowhere/ },
    { what: 'egress by name', more: { egress: ['example.org:443'] }, says: /egress/ },
  ])('are refused for $what', async ({ more, says }) => {
    const answer = await home.api.request('POST', '/tasks', { body: await request('true', more) })
    expect(answer.status).toBe(422)
    expect(answer.text).toMatch(says)
  })

  it('say that their cluster does not answer, and can be cancelled', async () => {
    const away = [
      ...['provider', 'add', 'away', '--data-dir', home.dataDir, '--namespace', 'agents'],
      ...['--kubeconfig', join(scratch.path, 'away.yaml')],
    ]
    const missing = await home.corral(away)
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining('there is no kubeconfig') })
    const kubeconfig = readFileSync(cluster.kubeconfig, 'utf8')
    writeFileSync(join(scratch.path, 'away.yaml'), kubeconfig.replace(/https:\/\/[0-9.]+:\d+/g, 'https://127.0.0.1:1'))
    expect(await home.corral(away)).toMatchObject({ code: 0 })
    const id = await home.api.create(await request('true', { sandbox: { provider: 'away' } }))
    await home.api.until(id, 'says so', ({ waiting }) => waiting?.reason === 'ProviderUnreachable')
    await home.api.request('POST', `/tasks/${id}/cancel`)
    expect((await home.api.untilEnded(id)).status).toBe('CANCELLED')
  })

  it('S2-I14 S2-D3: are those that name no provider, when the platform was started with one', async () => {
    await home.stop()
    await home.restart({ args: ['--warm', '0', '--provider', 'staging'] })
    const list = await home.api.request('GET', '/providers')
    expect(list.json).toMatchObject({
      providers: [
        { name: 'embedded', is_default: false },
        { name: 'staging', is_default: true },
        { name: 'away', is_default: false },
      ],
    })
    const { sandbox: _, ...plain } = await request(askModel)
    const task = await home.api.run(plain)
    expect(task).toMatchObject({ status: 'SUCCEEDED', sandbox: { provider: 'staging' } })
    const own = await home.api.run(await request('touch here', atHome))
    expect(own.status).toBe('SUCCEEDED')
    expect(own.sandbox?.provider).toBeUndefined()
  })

  if (isFullSize)
    it('are those that name none from the next start on, once the cluster was chosen under Settings', async () => {
      await home.stop()
      // Where the contexts of a user are.
      mkdirSync(join(home.home, '.kube'))
      copyFileSync(cluster.kubeconfig, join(home.home, '.kube', 'config'))
      await home.restart()
      const { json: choices } = await home.api.request('GET', '/kubernetes/contexts')
      const [{ name: context }] = (choices as { contexts: [{ name: string }] }).contexts
      const body = { provider: 'kubernetes', context, namespace: 'agents' }
      const chosen = await home.api.request('PATCH', '/settings', { body })
      expect(chosen).toMatchObject({ status: 200, json: { ...body, active: { provider: 'embedded' } } })
      const { sandbox: _, ...plain } = await request(askModel)
      const before = await home.api.run({ ...plain, agent: { name: 'command', command: 'touch here' } })
      expect(before).toMatchObject({ status: 'SUCCEEDED' })
      expect(before.sandbox?.provider).toBeUndefined()

      await home.stop()
      await home.restart()
      const { json: settings } = await home.api.request('GET', '/settings')
      expect(settings).toMatchObject({ ...body, active: { provider: 'kubernetes', context, namespace: 'agents' } })
      const after = await home.api.run(plain)
      expect(after).toMatchObject({ status: 'SUCCEEDED', sandbox: { provider: 'kubernetes' } })
      const { json: shown } = await home.api.request('GET', '/pools')
      expect(shown, 'the pools of the cluster in use').toMatchObject({ pools: [{ name: 'corral-tasks' }] })
      const there = await cluster.kube()
      const template = await there.get(SandboxTemplates, { namespace: 'agents', name: 'corral-tasks' })
      const { securityContext, containers } = template.spec.podTemplate.spec
      expect(containers[0]?.image, 'a cluster has our images by their version').toMatch(/^corral\/daemon:\d/)
      expect([securityContext?.runAsNonRoot, containers[0]?.securityContext?.allowPrivilegeEscalation]).toEqual([
        true,
        false,
      ])
      const own = await home.api.run(await request('touch here', atHome))
      expect(own.sandbox?.provider).toBeUndefined()
    })
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import {
  corralProgram,
  type GitFixture,
  gitRepository,
  type PlatformProcess,
  type ScriptedModel,
  scanForSecret,
  startPlatformProcess,
  startScriptedModel,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const key = `sk-${'corral-openai-key'.repeat(3)}`
let model: ScriptedModel
let platform: PlatformProcess
let count = 0

beforeAll(async () => {
  model = await startScriptedModel([[{ type: 'text', text: 'hello from the model' }]])
  platform = await startPlatformProcess({ env: { OPENAI_BASE_URL: model.url } })
  const set = await platform.corral(['secret', 'set', 'openai'], { stdin: `${key}\n` })
  expect(set.code, set.stderr).toBe(0)
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await model?.[Symbol.asyncDispose]()
})

const repository = (): Promise<GitFixture> => gitRepository(join(platform.directory, `repo-${++count}`))

/** A program as agents are: it asks its model over the address and with the token it was given. */
const askModel = `node -e "
  const { OPENAI_BASE_URL: url, OPENAI_API_KEY: token } = process.env
  const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }]
  const body = JSON.stringify({ model: 'gpt-5', messages: [{ role: 'user', content: 'hi' }], tools })
  const headers = { authorization: 'Bearer ' + token, 'content-type': 'application/json' }
  // Asked again where the machine was too busy to connect in the time fetch allows.
  const ask = () => fetch(url + '/chat/completions', { method: 'POST', headers, body }).catch(ask)
  ask().then(async (answer) => {
    console.log('answered', answer.status, (await answer.text()).length > 0)
    process.exit(answer.ok ? 0 : 1)
  })
"`
const openai = (command: string) => ({ name: 'command', command, provider: 'openai' })

describe('a provider that answers 429', () => {
  it('holds back the agents that would be started on it, says so in the queue, and fails none of them', async () => {
    const repo = await repository()
    model.fail({ status: 429, retryAfterSeconds: 250 })
    const command = `${askModel}; while [ ! -e /tmp/go ]; do sleep 0.1; done; ${askModel}`
    const first = await platform.api.create({ repo: repo.path, task: 'First', agent: openai(command) })
    await waitUntil('it was told to wait', async () =>
      (await platform.api.request('GET', `/tasks/${first}/logs`)).text.includes('answered 429'),
    )
    const [second, third] = [
      await platform.api.create({ repo: repo.path, task: 'Second', agent: openai(askModel) }),
      await platform.api.create({ repo: repo.path, task: 'Third', agent: openai(askModel) }),
    ]
    const other = { repo: repo.path, task: 'Other', agent: { name: 'command', command: 'touch other' } }
    expect(await platform.api.run(other)).toMatchObject({ status: 'SUCCEEDED' })
    const waiting = await platform.api.until(second, 'is in the queue', ({ queue }) => queue !== undefined)
    expect(waiting).toMatchObject({
      status: 'QUEUED',
      queue: { position: 1, reason: expect.stringMatching(/^openai asked to wait until /), since: expect.any(String) },
    })
    expect((await platform.api.get(third)).queue?.position).toBe(2)

    const go = await platform.corral(['task', 'shell', first, '--', 'touch', '/tmp/go'])
    expect(go.code, go.stderr).toBe(0)
    for (const id of [first, second, third]) {
      const ended = await platform.api.untilEnded(id)
      const { text: said } = await platform.api.request('GET', `/tasks/${id}/logs`)
      expect(ended, said).toMatchObject({ status: 'SUCCEEDED' })
      expect(ended.queue).toBeUndefined()
    }
  })
})

it('the key is nowhere in the record of a task: calls, artifacts, logs, events', async () => {
  const repo = await repository()
  const command = `${askModel} > calls.txt; env > environment.txt; cat calls.txt`
  const artifacts = ['calls.txt', 'environment.txt']
  const task = await platform.api.run({ repo: repo.path, task: 'Ask', agent: openai(command), artifacts })
  expect(task).toMatchObject({ status: 'SUCCEEDED' })
  const events = await platform.api.allEvents(task.id)
  expect(events).toContainEqual(expect.objectContaining({ type: 'model_call', provider: 'openai', status: 200 }))
  const kept = await platform.api.request('GET', `/tasks/${task.id}/artifacts`)
  expect(kept.text).toContain('environment.txt')
  const { places, looked } = await scanForSecret(platform.dataDir, key)
  expect(places).toEqual([])
  expect(looked.files).toBeGreaterThan(10)
  expect(JSON.stringify(events)).not.toContain(key)
  expect(model.requests.at(-1)?.headers.authorization).toBe(`Bearer ${key}`)
})

it('`corral run` on a terminal asks what to say next, and goes on in the same thread', async () => {
  const repo = await repository()
  const command = `'${process.execPath}' '${corralProgram}' run "first thing" --repo ${repo.path} --agent command --command 'echo "$CORRAL_PROMPT" >> said.txt'`
  // `script` gives it a terminal of its own.
  const env = { ...platform.environment(), CORRAL_DATA_DIR: platform.dataDir, TERM: 'dumb', SHELL: '/bin/sh' }
  const child = spawn('script', ['-qec', command, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'inherit'] })
  let shown = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text
  })
  const ended = once(child, 'exit')
  child.stdin.on('error', (error) => {
    shown += `\n[standard input: ${error.message}]`
  })
  const prompts = (): number => shown.split('follow-up (empty to end): ').length - 1
  await waitUntil('it asks', () => prompts() === 1)
  child.stdin.write('second thing\n')
  await waitUntil('it asks again', () => prompts() === 2)
  expect(child.exitCode, shown).toBeNull()
  child.stdin.write('\n')
  expect((await ended)[0], shown).toBe(0)
  expect(shown).not.toContain('[standard input')
  const branches = await repo.git('branch', '--list', 'corral/*', '--format=%(refname:short)')
  expect(branches.split('\n')).toHaveLength(1)
  expect(await repo.show(branches, 'said.txt')).toBe('first thing\nsecond thing')
})

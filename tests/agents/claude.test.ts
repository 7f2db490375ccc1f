import { join } from 'node:path'
import type { TaskEvent, TaskView } from '@corral/protocol'
import {
  type GitFixture,
  gitRepository,
  type ModelBlock,
  type PlatformProcess,
  type ScriptedModel,
  scanForSecret,
  startPlatformProcess,
  startScriptedModel,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pinnedVersions, provideAgents } from './installed-agents.js'

const key = `sk-ant-api03-${'corral-test-key'.repeat(3)}-AA`
const model = 'claude-sonnet-4-5-20250929'

const script: ModelBlock[][] = [
  [
    { type: 'text', text: 'I will write the file.' },
    {
      type: 'tool_use',
      name: 'Write',
      input: { file_path: '/workspace/repo/hello.txt', content: 'hello from claude\n' },
    },
  ],
  [{ type: 'tool_use', name: 'Bash', input: { command: 'wc -c hello.txt > size.txt; env', description: 'count' } }],
  [{ type: 'tool_use', name: 'Bash', input: { command: 'exit 3', description: 'fail' } }],
  [{ type: 'text', text: 'Done: hello.txt says hello.' }],
]

let brain: ScriptedModel
let platform: PlatformProcess
let count = 0

beforeAll(async () => {
  brain = await startScriptedModel(script)
  platform = await startPlatformProcess({
    env: { ANTHROPIC_BASE_URL: brain.url },
    args: ['--log-level', 'debug'],
  })
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await brain?.[Symbol.asyncDispose]()
})

const repository = (files?: Record<string, string>): Promise<GitFixture> =>
  gitRepository(join(platform.directory, `repo-${++count}`), files)

const claudeTask = (repo: GitFixture): Promise<TaskView> =>
  platform.api.run({ repo: repo.path, task: 'Say hello in a file', agent: { name: 'claude', model } })

describe('before Claude can run', () => {
  const refusal = async (): Promise<{ status: number; json: unknown }> => {
    const repo = await repository()
    const body = { repo: repo.path, task: 'Say hello', agent: { name: 'claude', model } }
    return platform.api.request('POST', '/tasks', { body })
  }

  it('a missing agent is told with the command that installs it', async () => {
    expect(await refusal()).toMatchObject({
      status: 422,
      json: { error: { code: 'AgentNotInstalled', hint: expect.stringContaining('corral agent install claude') } },
    })
    await provideAgents(platform.dataDir)
  })

  it('a missing key is told with the command that sets it', async () => {
    expect(await refusal()).toMatchObject({
      status: 422,
      json: { error: { code: 'ModelKeyMissing', hint: expect.stringContaining('corral secret set anthropic') } },
    })
    const set = await platform.corral(['secret', 'set', 'anthropic'], { stdin: `${key}\n` })
    expect(set).toMatchObject({ code: 0 })
    expect(`${set.stdout}${set.stderr}`).not.toContain(key)
  })
})

describe(`Claude Code ${pinnedVersions()['@anthropic-ai/claude-code']} in a sandbox, its model behind the broker`, () => {
  let repo: GitFixture
  let task: TaskView
  let events: TaskEvent[]
  let during: Awaited<ReturnType<typeof scanForSecret>>

  beforeAll(async () => {
    brain.requests.length = 0
    repo = await repository()
    brain.hold(async (turn) => {
      if (turn === 2) during ??= await scanForSecret(platform.dataDir, key)
    })
    task = await claudeTask(repo)
    brain.hold(undefined)
    events = await platform.api.allEvents(task.id)
  })

  it('FR-5: writes a file, runs a command, and the branch comes back', async () => {
    expect(task).toMatchObject({ status: 'SUCCEEDED', outcome: 'changes', exit_code: 0 })
    expect(await repo.show(task.branch!, 'hello.txt')).toBe('hello from claude')
    expect(await repo.show(task.branch!, 'size.txt')).toBe('18 hello.txt')
  })

  it('speaks the whole vocabulary of events', () => {
    const types = new Set(events.map(({ type }) => type))
    expect([...types].sort()).toEqual(
      expect.arrayContaining(['file_changed', 'message', 'result', 'stage', 'tool_call', 'tool_result', 'usage']),
    )
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'tool_call', tool: 'Write', summary: expect.stringContaining('hello.txt') }),
    )
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'file_changed', path: expect.stringContaining('hello.txt'), change: 'written' }),
    )
    expect(events).toContainEqual(expect.objectContaining({ type: 'tool_result', is_error: true }))
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'message', role: 'assistant', text: 'Done: hello.txt says hello.' }),
    )
  })

  it('counts tokens and cost at the broker, not by the agent’s word', () => {
    const calls = brain.requests.filter(({ path }) => path.startsWith('/v1/messages') && !path.includes('count_tokens'))
    expect(task.usage).toMatchObject({
      input_tokens: calls.length * brain.usage.input,
      output_tokens: calls.length * brain.usage.output,
    })
    expect(task.usage?.cost_usd).toBeGreaterThan(0)
  })

  it('the model sees the real key, the sandbox only a token of its own', async () => {
    const seen = brain.requests.filter(({ path }) => path.startsWith('/v1/messages'))
    expect(seen.length).toBeGreaterThanOrEqual(script.length)
    for (const { headers } of seen) {
      expect(headers['x-api-key']).toBe(key)
      expect(headers.authorization).toBeUndefined()
      expect(headers['accept-encoding']).toBeUndefined()
    }
    const environment = events.find(
      (event) => event.type === 'tool_result' && event.text.includes('ANTHROPIC_BASE_URL'),
    ) as { text: string } | undefined
    expect(environment?.text).toContain('ANTHROPIC_BASE_URL=http://corral-broker:8787')
    expect(environment?.text).toContain('ANTHROPIC_AUTH_TOKEN=')
    expect(environment?.text).not.toContain(key)
  })

  it('secret scan: the key is nowhere while the agent runs', () => {
    expect(during.looked.processes).toBeGreaterThan(2)
    expect(during.looked.files).toBeGreaterThan(10)
    expect(during.looked.repositories).toBeGreaterThan(0)
    expect(during.places).toEqual([])
  })

  it('secret scan: the key is nowhere afterwards, neither in logs nor in events', async () => {
    expect((await scanForSecret(platform.dataDir, key)).places).toEqual([])
    expect(platform.output()).not.toContain(key)
    expect(JSON.stringify(events)).not.toContain(key)
    const { text } = await platform.api.request('GET', `/tasks/${task.id}/logs`)
    expect(text).toContain('"type":"result"')
    expect(text).not.toContain(key)
  })

  it('the token of an ended task opens nothing', async () => {
    const environment = events.find(
      (event) => event.type === 'tool_result' && event.text.includes('ANTHROPIC_AUTH_TOKEN='),
    ) as { text: string } | undefined
    const token = /ANTHROPIC_AUTH_TOKEN=(\S+)/.exec(environment?.text ?? '')?.[1]
    expect(token).toBeTruthy()
    const ports = await import('node:fs').then(
      ({ readFileSync }) =>
        JSON.parse(readFileSync(join(platform.dataDir, 'ports.json'), 'utf8')) as { broker: number },
    )
    const before = brain.requests.length
    const answer = await fetch(`http://127.0.0.1:${ports.broker}/v1/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: '{}',
    })
    expect(answer.status).toBe(401)
    expect(brain.requests.length).toBe(before)
  })
})

describe('the same scan finds a planted key', () => {
  const planted = `sk-ant-api03-${'planted'.repeat(5)}-AA`

  it('in environment, command line, files, database, events and git objects', async () => {
    const repo = await repository({ 'config.txt': `key = ${planted}\n` })
    const command = `echo "$CORRAL_PROMPT"; PLANTED=${planted} sleep 30 & echo ${planted} > leak.txt; echo planted; wait`
    const id = await platform.api.create({ repo: repo.path, task: 'Leak', agent: { name: 'command', command } })
    for await (const event of platform.api.events(id))
      if (event.type === 'output' && event.text.includes('planted')) break
    const { places } = await scanForSecret(platform.dataDir, planted)
    await platform.api.request('POST', `/tasks/${id}/cancel`)
    await platform.api.untilEnded(id)
    const found = (pattern: RegExp): boolean => places.some((place) => pattern.test(place))
    expect({
      environ: found(/^process environ$/),
      cmdline: found(/^process cmdline$/),
      sandbox: found(/^file pods\/.*leak\.txt$/),
      database: found(/^file api\//),
      mirror: found(/^git mirrors\//),
    }).toEqual({ environ: true, cmdline: true, sandbox: true, database: true, mirror: true })
    const after = await scanForSecret(platform.dataDir, planted)
    expect(after.places.some((place) => /^(git|file) tasks\//.test(place))).toBe(true)
  })
})

describe('a key from the platform’s environment', () => {
  it('serves Claude and stays out of the sandbox', async () => {
    await using other = await startPlatformProcess({
      env: { ANTHROPIC_BASE_URL: brain.url, ANTHROPIC_API_KEY: key },
    })
    await provideAgents(other.dataDir)
    const repo = await gitRepository(join(other.directory, 'repo'))
    let during: Awaited<ReturnType<typeof scanForSecret>> | undefined
    brain.hold(async (turn) => {
      if (turn === 1) during ??= await scanForSecret(other.dataDir, key)
    })
    const task = await other.api.run({ repo: repo.path, task: 'Say hello', agent: { name: 'claude', model } })
    brain.hold(undefined)
    expect(task.status).toBe('SUCCEEDED')
    expect(during?.looked.processes).toBeGreaterThan(2)
    expect(during?.places).toEqual([])
    expect((await scanForSecret(other.dataDir, key)).places).toEqual([])
  })
})

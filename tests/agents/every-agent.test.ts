import { join } from 'node:path'
import type { TaskEvent, TaskView } from '@corral/protocol'
import {
  type GitFixture,
  gitRepository,
  type PlatformProcess,
  type ScriptedModel,
  scanForSecret,
  startPlatformProcess,
  startScriptedModel,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AgentScript, agentScripts, editAndCommit } from './agent-scripts.js'
import { provideAgents } from './installed-agents.js'

const keys: Readonly<Record<string, string>> = {
  anthropic: `sk-ant-api03-${'corral-test-key'.repeat(3)}-AA`,
  openai: `sk-${'corral-openai-key'.repeat(3)}`,
  google: `AIza-${'corral-google-key'.repeat(3)}`,
}

let brain: ScriptedModel
let platform: PlatformProcess
let count = 0

beforeAll(async () => {
  brain = await startScriptedModel([])
  const env = Object.fromEntries(agentScripts.map(({ baseUrlVariable }) => [baseUrlVariable, brain.url]))
  platform = await startPlatformProcess({ env })
  await provideAgents(platform.dataDir)
  for (const [provider, key] of Object.entries(keys))
    expect(await platform.corral(['secret', 'set', provider], { stdin: `${key}\n` })).toMatchObject({ code: 0 })
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await brain?.[Symbol.asyncDispose]()
})

const repository = (files?: Record<string, string>): Promise<GitFixture> =>
  gitRepository(join(platform.directory, `repo-${++count}`), files)

async function run(
  { agent, options }: AgentScript,
  request: object = {},
  files?: Record<string, string>,
): Promise<{ repo: GitFixture; task: TaskView; events: TaskEvent[] }> {
  const repo = await repository(files)
  brain.requests.length = 0
  const task = await platform.api.run({
    repo: repo.path,
    task: 'Say hello in a file',
    agent: { name: agent, ...options },
    ...request,
  })
  return { repo, task, events: await platform.api.allEvents(task.id) }
}

const callsOf = (events: TaskEvent[]): Extract<TaskEvent, { type: 'model_call' }>[] =>
  events.filter((event) => event.type === 'model_call')
const said = (events: TaskEvent[]): string => JSON.stringify(events.slice(-20))

describe.each(agentScripts)('$agent in a sandbox, its model behind the broker', (script) => {
  it('edits, commits, and the branch comes back with its cost', async () => {
    brain.setScript(editAndCommit(script, 'hello.txt'))
    const { repo, task, events } = await run(script)
    expect(task, said(events)).toMatchObject({ status: 'SUCCEEDED', outcome: 'changes', exit_code: 0 })
    expect(await repo.show(task.branch!, 'hello.txt')).toBe(`hello from ${script.agent}`)
    expect(events).toContainEqual(expect.objectContaining({ type: 'tool_call' }))
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'message', role: 'assistant', text: 'Done: hello.txt says hello.' }),
    )
    const calls = callsOf(events)
    expect(calls.length).toBeGreaterThanOrEqual(3)
    expect(calls.every(({ provider, status }) => provider === script.provider && status === 200)).toBe(true)
    expect(task.usage).toMatchObject({
      input_tokens: calls.length * brain.usage.input,
      output_tokens: calls.length * brain.usage.output,
      cost_usd: expect.any(Number),
    })
    const key = keys[script.provider]!
    expect(brain.requests.some(({ headers }) => JSON.stringify(headers).includes(key))).toBe(true)
    expect((await scanForSecret(platform.dataDir, key)).places).toEqual([])
  })

  it('reads the instructions of the repository and of the request', async () => {
    brain.setScript([[{ type: 'text', text: 'Done.' }]])
    const { task, events } = await run(
      script,
      { instructions: 'Extra rule: say please.' },
      { 'AGENTS.md': 'House rule: be kind.\n' },
    )
    expect(task.status, said(events)).toBe('SUCCEEDED')
    const bodies = JSON.stringify(brain.requests.map(({ body }) => body))
    expect(bodies).toContain('House rule: be kind.')
    expect(bodies).toContain('Extra rule: say please.')
  })

  it.each([429, 529])('a provider that answers %i is waited for', async (status) => {
    brain.setScript([[{ type: 'text', text: 'Done.' }]])
    brain.fail({ status, retryAfterSeconds: 1 }, { status })
    const { task, events } = await run(script)
    expect(task.status, said(events)).toBe('SUCCEEDED')
    expect(callsOf(events)).toContainEqual(expect.objectContaining({ status: 200, retries: 2 }))
  })

  it('a stream that is cut is counted as an estimate, and the task goes on or fails with the model as its cause', async () => {
    brain.setScript([[{ type: 'text', text: 'Done.' }]])
    brain.fail('cut')
    const { task, events } = await run(script)
    expect(callsOf(events)).toContainEqual(
      expect.objectContaining({ status: 200, estimated: true, error: 'the answer broke off' }),
    )
    if (task.status !== 'SUCCEEDED')
      expect(task.cause?.code, said(events)).toMatch(/^(AgentFailed|ModelUnavailable|ModelRefused)$/)
  })

  it('is ended when its budget is used up, and its work is kept', async () => {
    brain.setScript(editAndCommit(script, 'half.txt'))
    const { repo, task, events } = await run(script, { limits: { max_tokens: 50 } })
    expect(task, said(events)).toMatchObject({ status: 'FAILED', cause: { code: 'BudgetExceeded' } })
    expect(task.cause?.message).toMatch(/of its 50 tokens/)
    expect(await repo.show(task.branch!, 'half.txt')).toBe(`hello from ${script.agent}`)
  })
})

describe('an endpoint of one’s own', () => {
  it('serves OpenCode without a key, its price unknown', async () => {
    const opencode = agentScripts.find(({ agent }) => agent === 'opencode')!
    const added = await platform.corral([
      'endpoint',
      'add',
      'local',
      '--kind',
      'openai',
      '--base-url',
      `${brain.url}/v1`,
    ])
    expect(added).toMatchObject({ code: 0 })
    brain.setScript([[{ type: 'text', text: 'Done.' }]])
    const { task, events } = await run({ ...opencode, options: { model: 'llama3', provider: 'local' } })
    expect(task.status, said(events)).toBe('SUCCEEDED')
    expect(task.usage).toMatchObject({ model: 'llama3', input_tokens: expect.any(Number) })
    expect(task.usage).not.toHaveProperty('cost_usd')
    expect(brain.requests.every(({ headers }) => headers.authorization === undefined)).toBe(true)
  })
})

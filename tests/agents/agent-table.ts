import { join } from 'node:path'
import type { AgentCapability } from '@corral/agents'
import { type CreateTaskRequest, isFinalPhase, type TaskEvent, type TaskView } from '@corral/protocol'
import {
  type GitFixture,
  gitRepository,
  type ModelBlock,
  type PlatformProcess,
  type ScriptedModel,
  scanForSecret,
  startPlatformProcess,
  startScriptedModel,
  waitUntil,
} from '@corral/testing'
import { expect } from 'vitest'
import { type AgentScript, agentScripts, editAndCommit } from './agent-scripts.js'
import { provideAgents } from './installed-agents.js'
import { mcpServerSource } from './mcp-server-source.js'

const keys: Readonly<Record<string, string>> = {
  anthropic: `sk-ant-api03-${'corral-table-key'.repeat(3)}-AA`,
  openai: `sk-${'corral-table-openai'.repeat(3)}`,
  google: `AIza-${'corral-table-google'.repeat(3)}`,
}

/** A platform with every agent installed, and the model behind all of them. */
export interface AgentTable extends AsyncDisposable {
  readonly platform: PlatformProcess
  readonly brain: ScriptedModel
  repository(files?: Record<string, string>): Promise<GitFixture>
}

export async function startAgentTable(): Promise<AgentTable> {
  const brain = await startScriptedModel([])
  const env = Object.fromEntries(agentScripts.map(({ baseUrlVariable }) => [baseUrlVariable, brain.url]))
  const platform = await startPlatformProcess({ env })
  await provideAgents(platform.dataDir)
  for (const [provider, key] of Object.entries(keys))
    expect(await platform.corral(['secret', 'set', provider], { stdin: `${key}\n` })).toMatchObject({ code: 0 })
  let count = 0
  return {
    platform,
    brain,
    repository: (files) => gitRepository(join(platform.directory, `repo-${++count}`), files),
    async [Symbol.asyncDispose]() {
      await platform[Symbol.asyncDispose]()
      await brain[Symbol.asyncDispose]()
    },
  }
}

/** One cell that says yes: does what it says, with the real program. */
type Proof = (table: AgentTable, script: AgentScript) => Promise<void>

const text = (words: string): ModelBlock[] => [{ type: 'text', text: words }]
const bodies = ({ brain }: AgentTable): string => JSON.stringify(brain.requests.map(({ body }) => body))

async function requestOf(table: AgentTable, script: AgentScript, files?: Record<string, string>) {
  const repo = await table.repository(files)
  table.brain.requests.length = 0
  const agent = { name: script.agent, ...script.options }
  return { repo, request: { repo: repo.path, task: 'Do the work', agent } satisfies CreateTaskRequest }
}

async function ended({ platform }: AgentTable, id: string): Promise<TaskView> {
  const task = await platform.api.untilEnded(id)
  expect(task, JSON.stringify((await platform.api.allEvents(id)).slice(-20))).toMatchObject({ status: 'SUCCEEDED' })
  return task
}

async function sendMessage({ platform }: AgentTable, id: string, task: string): Promise<string> {
  const answer = await platform.api.request('POST', `/tasks/${id}/messages`, { body: { task } })
  expect(answer).toMatchObject({ status: 201 })
  return (answer.json as { id: string }).id
}

async function decide({ platform }: AgentTable, id: string, verdict: string, body: object): Promise<void> {
  expect(await platform.api.request('POST', `/tasks/${id}/${verdict}`, { body })).toMatchObject({ status: 202 })
}

function untilPlan({ platform }: AgentTable, id: string, revision: number): Promise<string> {
  return waitUntil(`plan ${revision} of ${id}`, async () => {
    const { status, plan } = await platform.api.get(id)
    if (status === 'WAITING_APPROVAL' && plan?.revision === revision) return plan.text
    return status === 'FAILED' ? `failed: ${JSON.stringify((await platform.api.allEvents(id)).slice(-20))}` : undefined
  })
}

/** The model answers by the tool results it sees: only with the earlier ones in the request it gets to the later answers. */
const resumes: Proof = async (table, script) => {
  const { platform, brain } = table
  const { repo, request } = await requestOf(table, script)
  const [one1, one2, one3] = editAndCommit(script, 'one.txt')
  const [two1, two2, two3] = editAndCommit(script, 'two.txt')
  brain.setScript([one1!, one2!, one3!])
  const one = await ended(table, await platform.api.create({ ...request, task: 'Remember the word heliotrope' }))
  expect(one.session).toMatchObject({ id: expect.any(String) })

  brain.requests.length = 0
  brain.setScript([one1!, one2!, two1!, two2!, two3!])
  const two = await ended(table, await sendMessage(table, one.id, 'And now the word marigold'))
  expect(two).toMatchObject({ branch: one.branch, base_commit: one.commit })
  expect(two.warnings ?? []).not.toContainEqual(expect.objectContaining({ code: 'SessionNotResumed' }))
  for (const words of ['Remember the word heliotrope', 'Done: one.txt says hello.', 'And now the word marigold'])
    expect(bodies(table)).toContain(words)

  brain.requests.length = 0
  brain.setScript([one1!, one2!, two1!, two2!, text('Heliotrope, marigold.')])
  const three = await ended(table, await sendMessage(table, two.id, 'Which words?'))
  expect(three.outcome).toBe('no_changes')
  const said = (await platform.api.allEvents(three.id)).flatMap((event) =>
    event.type === 'message' ? [event.text] : [],
  )
  expect(said).toContain('Heliotrope, marigold.')
  expect(said).not.toContain('Done: one.txt says hello.')
  for (const file of ['one.txt', 'two.txt'])
    expect(await repo.show(one.branch!, file)).toBe(`hello from ${script.agent}`)
  expect((await scanForSecret(platform.dataDir, keys[script.provider]!)).places).toEqual([])
}

/** A model that tries to write while it plans: whatever the agent makes of it, nothing is written. The sandbox goes meanwhile. */
const plans: Proof = async (table, script) => {
  const { platform, brain } = table
  const { repo, request } = await requestOf(table, script)
  const sneak = [script.run('echo no > sneaked.txt')]
  brain.setScript([sneak, text('Plan A: write a file.')])
  const id = await platform.api.create({ ...request, mode: 'plan', hold_sandbox_seconds: 0 })
  expect(await untilPlan(table, id, 1)).toContain('Plan A: write a file.')
  brain.setScript([sneak, text('Plan B: write it well.')])
  brain.requests.length = 0
  await decide(table, id, 'revise', { revision: 1, remark: 'Write it well.' })
  expect(await untilPlan(table, id, 2)).toContain('Plan B: write it well.')
  expect(bodies(table)).toContain('Plan A: write a file.')
  expect(bodies(table)).toContain('Write it well.')
  const work = editAndCommit(script, 'planned.txt')
  // Only a session that is gone on with still holds the call of the plan.
  brain.setScript(script.forgets ? work : [sneak, ...work])
  brain.requests.length = 0
  await decide(table, id, 'approve', { revision: 2 })
  const task = await ended(table, id)
  expect(task.outcome).toBe('changes')
  expect(bodies(table)).toContain('Plan B: write it well.')
  expect(await repo.show(task.branch!, 'planned.txt')).toBe(`hello from ${script.agent}`)
  await expect(repo.show(task.branch!, 'sneaked.txt')).rejects.toThrow(/does not exist in|exists on disk, but not in/)
}

/** The model waits with its second answer until the message is there. */
const isSteered: Proof = async (table, script) => {
  const { platform, brain } = table
  const { request } = await requestOf(table, script)
  brain.setScript(editAndCommit(script, 'steered.txt'))
  let sent: unknown
  let id = ''
  brain.hold(async (turn) => {
    if (turn !== 1 || sent !== undefined) return
    const body = { task: 'STEERED-MESSAGE' }
    sent = (await platform.api.request('POST', `/tasks/${id}/messages`, { body })).json
  })
  try {
    id = await platform.api.create(request)
    const task = await ended(table, id)
    expect(sent).toMatchObject({ delivery: 'steered' })
    expect(task.messages).toEqual([expect.objectContaining({ delivery: 'steered', read: true })])
  } finally {
    brain.hold(undefined)
  }
  expect(bodies(table)).toContain('STEERED-MESSAGE')
  const told = JSON.stringify(brain.requests.at(-1)?.body).split('STEERED-MESSAGE')
  expect(told, 'told once').toHaveLength(2)
}

/** Allowed the first time, over HTTP, and denied the second, from the command line; it waits for both. */
const asks: Proof = async (table, script) => {
  const { platform, brain } = table
  const { repo, request } = await requestOf(table, script)
  brain.setScript([[script.run('echo yes > allowed.txt')], [script.run('echo no > denied.txt')], text('Done.')])
  const id = await platform.api.create({ ...request, ask: 'always' })
  const optionOf = async (name: string, pattern: RegExp): Promise<{ id: string; number: number }> => {
    const question = await waitUntil(name, async () => {
      const { status, questions = [] } = await platform.api.get(id)
      const found = questions.find((each) => each.id === name)
      if (!found && isFinalPhase(status)) throw new Error(JSON.stringify((await platform.api.allEvents(id)).slice(-20)))
      return status === 'WAITING_INPUT' ? found : undefined
    })
    expect(question).toMatchObject({ kind: 'permission', text: expect.any(String) })
    const index = question.options.findIndex(({ label }) => pattern.test(label))
    expect(index, JSON.stringify(question.options)).toBeGreaterThanOrEqual(0)
    return { id: question.options[index]!.id, number: index + 1 }
  }
  const allow = { question: 'q1', option: (await optionOf('q1', /^(allow|yes)( once)?$/i)).id }
  expect(await platform.api.request('POST', `/tasks/${id}/answers`, { body: allow })).toMatchObject({ status: 202 })
  const deny = await optionOf('q2', /deny|reject|no\b/i)
  expect(await platform.corral(['task', 'answer', id, '--option', String(deny.number)])).toMatchObject({ code: 0 })
  const task = await platform.api.untilEnded(id)
  expect(task.questions).toMatchObject([{ answer: expect.any(String) }, { answer: expect.any(String) }])
  expect(await repo.show(task.branch!, 'allowed.txt')).toBe('yes')
  await expect(repo.show(task.branch!, 'denied.txt')).rejects.toThrow(/'denied.txt' does not exist/)
}

const isCounted: Proof = async (table, script) => {
  const { platform, brain } = table
  const { request } = await requestOf(table, script)
  brain.setScript(editAndCommit(script, 'counted.txt'))
  const task = await ended(table, await platform.api.create(request))
  const events = await platform.api.allEvents(task.id)
  const calls = events.filter(
    (event): event is Extract<TaskEvent, { type: 'model_call' }> => event.type === 'model_call',
  )
  expect(calls.length).toBeGreaterThan(0)
  expect(calls.every(({ provider, status }) => provider === script.provider && status === 200)).toBe(true)
  expect(task.usage).toMatchObject({
    input_tokens: calls.length * brain.usage.input,
    output_tokens: calls.length * brain.usage.output,
    cost_usd: expect.any(Number),
  })
  expect((await scanForSecret(platform.dataDir, keys[script.provider]!)).places).toEqual([])
}

/** The model calls the tool by the name the agent offers it under, and sees what it answered. */
const usesServers: Proof = async (table, script) => {
  const { platform, brain } = table
  const { request } = await requestOf(table, script, { 'mcp.mjs': mcpServerSource })
  brain.setScript([[script.callTool('house', 'ring_the_bell')], text('Done.')])
  const servers = [{ name: 'house', command: 'node', args: ['mcp.mjs'] }]
  await ended(table, await platform.api.create({ ...request, mcp_servers: servers }))
  expect(bodies(table)).toContain('ring_the_bell')
  expect(bodies(table)).toContain('DING-DONG')
}

/** The program is spoken to by our own client, whose lines are the protocol's. */
const speaksAcp: Proof = async (table, script) => {
  const { platform, brain } = table
  const { repo, request } = await requestOf(table, script)
  brain.setScript(editAndCommit(script, 'acp.txt'))
  const task = await ended(table, await platform.api.create(request))
  expect(await repo.show(task.branch!, 'acp.txt')).toBe(`hello from ${script.agent}`)
  expect((await platform.api.request('GET', `/tasks/${task.id}/logs`)).text).toContain('"method":"session/update"')
}

export const proofs: Readonly<Record<AgentCapability, Proof>> = {
  resume: resumes,
  plan: plans,
  steer: isSteered,
  ask: asks,
  usage: isCounted,
  mcp: usesServers,
  acp: speaksAcp,
}

/** One cell that says no: what becomes of a request for it, told with the reason. */
export const refusals: Readonly<
  Record<AgentCapability, (table: AgentTable, script: AgentScript, why: string) => Promise<void>>
> = {
  async resume(table, script) {
    const { platform, brain } = table
    const { request } = await requestOf(table, script)
    brain.setScript([text('Done.')])
    const one = await ended(table, await platform.api.create(request))
    expect(one).not.toHaveProperty('session')
    const two = await ended(table, await sendMessage(table, one.id, 'And then?'))
    expect(two.continues).toBe(one.id)
  },
  plan: (table, script, why) => isRefused(table, script, { mode: 'plan' }, why),
  ask: (table, script, why) => isRefused(table, script, { ask: 'always' }, why),
  mcp: (table, script, why) => isRefused(table, script, { mcp_servers: [{ name: 'a', command: 'x' }] }, why),
  async steer(table, script) {
    const { platform, brain } = table
    const { request } = await requestOf(table, script)
    brain.setScript(editAndCommit(script, 'queued.txt'))
    const id = await platform.api.create(request)
    await platform.api.untilPhase(id, 'RUNNING')
    const body = { task: 'QUEUED-MESSAGE' }
    const sent = await platform.api.request('POST', `/tasks/${id}/messages`, { body })
    // One that ended meanwhile has a follow-up at once.
    if (sent.status !== 201) expect(sent).toMatchObject({ status: 202, json: { delivery: 'queued' } })
    await ended(table, id)
  },
  async usage() {
    throw new Error('every agent that uses a model uses it through the broker')
  },
  // Nothing of a request asks for it.
  async acp() {},
}

async function isRefused(table: AgentTable, script: AgentScript, more: object, why: string): Promise<void> {
  const { request } = await requestOf(table, script)
  const answer = await table.platform.api.request('POST', '/tasks', { body: { ...request, ...more } })
  expect(answer).toMatchObject({
    status: 422,
    json: { error: { code: 'Invalid', message: expect.stringContaining(why) } },
  })
}

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
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { agentScripts, editAndCommit } from './agent-scripts.js'
import { installIntoCache, provideAgents } from './installed-agents.js'

const keys: Readonly<Record<string, string>> = {
  anthropic: `sk-ant-api03-${'corral-talk-key'.repeat(3)}-AA`,
  openai: `sk-${'corral-talk-openai'.repeat(3)}`,
  google: `AIza-${'corral-talk-google'.repeat(3)}`,
}

let brain: ScriptedModel
let platform: PlatformProcess
let count = 0

beforeAll(async () => {
  await installIntoCache(...agentScripts.map(({ agent }) => agent))
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

const repository = (): Promise<GitFixture> => gitRepository(join(platform.directory, `repo-${++count}`))
const said = async (task: TaskView): Promise<string> =>
  JSON.stringify((await platform.api.allEvents(task.id)).slice(-20))
const bodies = (): string => JSON.stringify(brain.requests.map(({ body }) => body))

async function send(id: string, task: string): Promise<TaskView> {
  const answer = await platform.api.request('POST', `/tasks/${id}/messages`, { body: { task } })
  expect(answer).toMatchObject({ status: 201 })
  return platform.api.untilEnded((answer.json as { id: string }).id)
}

describe.each(agentScripts)('a conversation with $agent', (script) => {
  it('a follow-up shows the model the earlier turns, twice in a row, and works on the same branch', async () => {
    const repo = await repository()
    // The model answers by the tool results it sees: only with the earlier ones in the request it gets to the later answers.
    const [one1, one2, one3] = editAndCommit(script, 'one.txt')
    const [two1, two2, two3] = editAndCommit(script, 'two.txt')
    brain.setScript([one1!, one2!, one3!])
    const agent = { name: script.agent, ...script.options }
    const one = await platform.api.run({ repo: repo.path, task: 'Remember the word heliotrope', agent })
    expect(one, await said(one)).toMatchObject({ status: 'SUCCEEDED', session: { id: expect.any(String) } })

    brain.requests.length = 0
    brain.setScript([one1!, one2!, two1!, two2!, two3!])
    const two = await send(one.id, 'And now the word marigold')
    expect(two, await said(two)).toMatchObject({ status: 'SUCCEEDED', branch: one.branch, base_commit: one.commit })
    expect(two.warnings ?? []).not.toContainEqual(expect.objectContaining({ code: 'SessionNotResumed' }))
    expect(bodies()).toContain('Remember the word heliotrope')
    expect(bodies()).toContain('Done: one.txt says hello.')
    expect(bodies()).toContain('And now the word marigold')

    brain.requests.length = 0
    brain.setScript([one1!, one2!, two1!, two2!, [{ type: 'text', text: 'Heliotrope, marigold.' }]])
    const three = await send(two.id, 'Which words?')
    expect(three, await said(three)).toMatchObject({ status: 'SUCCEEDED', outcome: 'no_changes' })
    expect(bodies()).toContain('heliotrope')
    expect(bodies()).toContain('marigold')
    const answer = (await platform.api.allEvents(three.id)).filter(
      (event): event is Extract<TaskEvent, { type: 'message' }> => event.type === 'message',
    )
    expect(answer.map(({ text }) => text)).toContain('Heliotrope, marigold.')
    expect(answer.map(({ text }) => text)).not.toContain('Done: one.txt says hello.')
    expect(await repo.show(one.branch!, 'one.txt')).toBe(`hello from ${script.agent}`)
    expect(await repo.show(one.branch!, 'two.txt')).toBe(`hello from ${script.agent}`)
    expect((await scanForSecret(platform.dataDir, keys[script.provider]!)).places).toEqual([])
  })

  it('plans without changing anything, revises, and carries the approved plan out in the same session', async () => {
    const repo = await repository()
    const text = (words: string): ModelBlock[] => [{ type: 'text', text: words }]
    const agent = { name: script.agent, ...script.options }
    // A model that tries to write while it plans: whatever the agent makes of it, nothing is written.
    brain.setScript([[script.run('echo no > sneaked.txt')], text('Plan A: write a file.')])
    const body = { repo: repo.path, task: 'Write the file', agent, mode: 'plan' as const, hold_sandbox_seconds: 0 }
    const id = await platform.api.create(body)
    expect(await untilPlan(id, 1)).toContain('Plan A: write a file.')
    brain.setScript([[script.run('echo no > sneaked.txt')], text('Plan B: write it well.')])
    brain.requests.length = 0
    await decide(id, 'revise', { revision: 1, remark: 'Write it well.' })
    expect(await untilPlan(id, 2)).toContain('Plan B: write it well.')
    expect(bodies()).toContain('Plan A: write a file.')
    expect(bodies()).toContain('Write it well.')
    const [write, commit, done] = editAndCommit(script, 'planned.txt')
    brain.setScript([[script.run('echo no > sneaked.txt')], write!, commit!, done!])
    brain.requests.length = 0
    await decide(id, 'approve', { revision: 2 })
    const ended = await platform.api.untilEnded(id)
    expect(ended, await said(ended)).toMatchObject({ status: 'SUCCEEDED', outcome: 'changes' })
    expect(bodies()).toContain('Plan B: write it well.')
    expect(await repo.show(ended.branch!, 'planned.txt')).toBe(`hello from ${script.agent}`)
    await expect(repo.show(ended.branch!, 'sneaked.txt')).rejects.toThrow()
  })
})

async function decide(id: string, verdict: string, body: object): Promise<void> {
  expect(await platform.api.request('POST', `/tasks/${id}/${verdict}`, { body })).toMatchObject({ status: 202 })
}

async function untilPlan(id: string, revision: number): Promise<string | undefined> {
  return waitUntil(`plan ${revision} of ${id}`, async () => {
    const { status, plan } = await platform.api.get(id)
    if (status === 'WAITING_APPROVAL' && plan?.revision === revision) return plan.text
    return status === 'FAILED' ? `failed: ${await said(await platform.api.get(id))}` : undefined
  })
}

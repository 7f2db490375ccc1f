import { join } from 'node:path'
import {
  gitRepository,
  type ModelBlock,
  type PlatformProcess,
  type ScriptedModel,
  startPlatformProcess,
  startScriptedModel,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { provideAgents } from './installed-agents.js'

const model = 'claude-sonnet-4-5-20250929'
const question = {
  ...{ question: 'Tabs or spaces?', header: 'Style', multiSelect: false },
  options: [
    { label: 'Tabs', description: 'one each' },
    { label: 'Spaces', description: 'two each' },
  ],
}
const script: ModelBlock[][] = [
  [{ type: 'tool_use', name: 'Bash', input: { command: 'until [ -e go ]; do sleep 0.1; done', description: 'wait' } }],
  [{ type: 'tool_use', name: 'AskUserQuestion', input: { questions: [question] } }],
  [{ type: 'tool_use', name: 'Bash', input: { command: 'rm -f go; echo done > done.txt', description: 'work' } }],
  [{ type: 'text', text: 'Done.' }],
]

let brain: ScriptedModel
let platform: PlatformProcess
beforeAll(async () => {
  brain = await startScriptedModel(script)
  platform = await startPlatformProcess({ env: { ANTHROPIC_BASE_URL: brain.url, ANTHROPIC_API_KEY: 'sk-test' } })
  await provideAgents(platform.dataDir)
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await brain?.[Symbol.asyncDispose]()
})

describe('the real Claude Code', () => {
  it('reads a message while it works, asks, and goes on with the answer, over kill -9 of the platform', async () => {
    const repo = await gitRepository(join(platform.directory, 'repo'))
    const id = await platform.api.create({
      repo: repo.path,
      task: 'Work',
      agent: { name: 'claude', model },
      ask: 'input',
    })
    await waitUntil('its first call', async () =>
      (await platform.api.request('GET', `/tasks/${id}/events?follow=false`)).text.includes('"tool_call"'),
    )
    const sent = await platform.api.request('POST', `/tasks/${id}/messages`, { body: { task: 'STEERED-MESSAGE' } })
    expect(sent).toMatchObject({ status: 202, json: { delivery: 'steered' } })
    await platform.kill9()
    await platform.restart()
    const shell = await platform.corral(['task', 'shell', id, '--', 'sh', '-c', 'touch /workspace/repo/go'])
    expect(shell.code, shell.stderr).toBe(0)
    await waitUntil('its question', async () => (await platform.api.get(id)).status === 'WAITING_INPUT')
    expect(await platform.api.get(id)).toMatchObject({
      messages: [{ delivery: 'steered', read: true }],
      questions: [
        { id: 'q1', kind: 'input', text: 'Tabs or spaces?', options: [{ label: 'Tabs' }, { label: 'Spaces' }] },
      ],
    })
    expect((await platform.corral(['task', 'answer', id, '--option', '2'])).code).toBe(0)
    const ended = await platform.api.untilEnded(id)
    expect(ended, JSON.stringify(ended.cause)).toMatchObject({ status: 'SUCCEEDED', questions: [{ answer: 'Spaces' }] })
    expect(await repo.show(ended.branch!, 'done.txt')).toBe('done')
    const seen = JSON.stringify(brain.requests.map(({ body }) => body))
    expect(seen).toContain('STEERED-MESSAGE')
    expect(seen).toMatch(/Tabs or spaces\?[^"]{0,6}"=[^"]{0,3}"Spaces/)
    const last = JSON.stringify(brain.requests.at(-1)?.body)
    expect(last.split('STEERED-MESSAGE'), 'told once').toHaveLength(2)
  })
})

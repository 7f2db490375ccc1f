import { join } from 'node:path'
import {
  gitRepository,
  type PlatformProcess,
  type ScriptedModel,
  startPlatformProcess,
  startScriptedModel,
} from '@corral/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { agentScripts, editAndCommit } from './agent-scripts.js'
import { provideAgents } from './installed-agents.js'

const keys: Readonly<Record<string, string>> = {
  anthropic: `sk-ant-api03-${'corral-check-key'.repeat(3)}-AA`,
  openai: `sk-${'corral-check-openai'.repeat(3)}`,
  google: `AIza-${'corral-check-google'.repeat(3)}`,
}

let brain: ScriptedModel
let platform: PlatformProcess

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

it.each(agentScripts)(
  'a check that fails is repaired by $agent, in the session that made the mistake',
  async (script) => {
    const repo = await gitRepository(join(platform.directory, `repo-${script.agent}`))
    const [one1, one2, one3] = editAndCommit(script, 'one.txt')
    const [two1, two2, two3] = editAndCommit(script, 'two.txt')
    brain.requests.length = 0
    brain.setScript([one1!, one2!, one3!])
    const id = await platform.api.create({
      repo: repo.path,
      task: 'Write both files',
      agent: { name: script.agent, ...script.options },
      // The pause lets the model get its next lines; where it is too short, another round does.
      checks: [{ name: 'both', command: '[ -f two.txt ] || { sleep 3; echo TWO-IS-MISSING; exit 1; }' }],
      check_rounds: 5,
    })
    for await (const event of platform.api.events(id)) if (event.type === 'stage' && event.stage === 'checks') break
    brain.setScript([one1!, one2!, two1!, two2!, two3!])
    const task = await platform.api.untilEnded(id)
    const events = await platform.api.allEvents(id)
    expect(task, JSON.stringify(events.slice(-20))).toMatchObject({ status: 'SUCCEEDED', outcome: 'changes' })
    expect(task.checks?.rounds[0]).toMatchObject({
      passed: false,
      results: [{ output: 'TWO-IS-MISSING', exit_code: 1 }],
    })
    expect(task.checks?.rounds.at(-1)).toMatchObject({ passed: true })
    const told = brain.requests
      .map(({ body }) => JSON.stringify(body))
      .filter((body) => body.includes('TWO-IS-MISSING'))
    expect(told[0]).toContain('Write both files')
    expect(told[0]).toContain('Done: one.txt says hello.')
    expect(await repo.show(task.branch!, 'one.txt')).toBe(`hello from ${script.agent}`)
    expect(await repo.show(task.branch!, 'two.txt')).toBe(`hello from ${script.agent}`)
  },
)

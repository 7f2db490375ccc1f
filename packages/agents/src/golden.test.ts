import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { agentEventSchema } from '@corral/protocol'
import { describe, expect, it } from 'vitest'
import type { AgentExit, AgentTaskInput } from './agent-adapter.js'
import { agentAdapters } from './agent-registry.js'

// What every agent is started with and what is made of its recorded output, whole, in golden/. A change of an adapter shows there
// as a difference to read; `vitest run packages/agents/src/golden.test.ts -u` takes it.

const names = [...agentAdapters.keys()]
const goldenFile = (name: string): string => fileURLToPath(new URL(`golden/${name}.golden`, import.meta.url))
const shown = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`

const bare: AgentTaskInput = {
  taskId: 'task-1',
  prompt: 'fix it',
  workDir: '/work/repo',
  stateDir: '/work/state',
  options: { command: 'gemini --acp' },
}
const full: AgentTaskInput = {
  ...bare,
  options: { ...bare.options, model: 'big-1', effort: 'high', args: ['--flag', 'a b'] },
  instructions: 'Be brief.',
  inboxDir: '/work/state/inbox-1',
  mcpServers: [
    { name: 'docs', url: 'https://mcp.example/x', headers: { 'x-key': 'v' } },
    { name: 'plain', url: 'https://mcp.example/y' },
    { name: 'local "one"', command: 'mcp-local', args: ['--stdio'], env: { A: 'b' } },
    { name: 'short', command: 'mcp-short' },
  ],
}
const resume = { sessionId: 'session-7' }
const inputs: Record<string, AgentTaskInput> = {
  'nothing but a prompt': bare,
  'every option': full,
  'a plan': { ...full, mode: 'plan' },
  'a plan of an earlier session': { ...bare, mode: 'plan', resume },
  'an earlier session': { ...bare, resume },
  'a person to ask for input': { ...full, ask: 'input' },
  'a person to ask for everything': { ...bare, ask: 'always', inboxDir: '/work/state/inbox-1' },
}

describe.each(names)('%s', (name) => {
  const adapter = agentAdapters.get(name)!

  it('is described, installed and resumed as recorded', async () => {
    const { options: _options, launch: _launch, createParser: _parser, answer: _answer, ...rest } = adapter
    await expect(shown(rest)).toMatchFileSnapshot(goldenFile(`${name}-adapter`))
  })

  it('is started as recorded', async () => {
    const kinds = adapter.speaks ?? ['anthropic', 'openai', 'google']
    const brokers = kinds.map((kind) => ({ kind, baseUrl: 'http://corral-broker:8787/x', token: 'task-token' }))
    const asked = [
      ...Object.entries(inputs),
      ...brokers.map((broker) => [`the model of ${broker.kind}`, { ...bare, broker }] as const),
      ['every option and a model', { ...full, broker: brokers[0] }] as const,
    ]
    const started = asked.map(([what, input]) => {
      const { files, ...launch } = adapter.launch(input)
      // Programs have tests of their own.
      const told = files.map(({ content, ...file }) => ({ ...file, content: content.length > 4_000 ? '…' : content }))
      return [what, { ...launch, files: told }]
    })
    await expect(shown(Object.fromEntries(started))).toMatchFileSnapshot(goldenFile(`${name}-launch`))
  })

  it('refuses options it does not know, and those of the wrong shape', () => {
    const issues = [
      { ...(name === 'command' || name === 'acp' ? { command: 'x' } : {}), unknown: 1 },
      { command: 'x', model: '-m' },
      { command: 'x', model: '' },
      { command: 'x', model: 'a\0b' },
      { command: 'x', provider: 'Not A Name' },
      { command: '' },
      {},
    ].map((options) => adapter.options.safeParse(options).error?.issues.map(({ path, message }) => [path, message]))
    return expect(shown(issues)).toMatchFileSnapshot(goldenFile(`${name}-options`))
  })
})

const exits: AgentExit[] = [{ exitCode: 0 }, { exitCode: 1 }, { exitCode: 143, signal: 15 }]
const fixtures = names.flatMap((name) => {
  const folder = new URL(`agents/${name}/fixtures/`, import.meta.url)
  const files = name === 'command' ? [] : readdirSync(folder)
  return files.map((file) => ({ name, run: file.replace('.ndjson', ''), bytes: readFileSync(new URL(file, folder)) }))
})

describe.each(fixtures)('the recorded run $name/$run', ({ name, run, bytes }) => {
  const play = (chunk: Uint8Array, exit: AgentExit) => {
    const parser = agentAdapters.get(name)!.createParser()
    const events = parser.push(chunk, 'stdout')
    const { questions = [], read = [] } = parser
    events.push(...parser.push(Buffer.from('a warning\n'), 'stderr'), ...parser.end(exit))
    const { verdict, sessionId, finalText } = parser
    return { events, questions, read, verdict, sessionId, finalText }
  }

  it('gives the recorded events, questions and verdict', async () => {
    const { verdict, ...played } = play(bytes, { exitCode: 0 })
    const verdicts = exits.map((exit) => play(bytes, exit).verdict)
    await expect(shown({ ...played, verdict, verdicts })).toMatchFileSnapshot(goldenFile(`${name}-${run}`))
  })

  it('gives events of the contract whichever field of a line is missing or of another type', async () => {
    const lines = bytes.toString().split('\n').filter(Boolean)
    const odd = lines.flatMap((line) => [...variantsOf(JSON.parse(line))].map((variant) => JSON.stringify(variant)))
    const { events, verdict } = play(Buffer.from(`${odd.join('\n')}\n`), { exitCode: 1 })
    // Each event once, with how often it came: most variants of a line give the same.
    const counts = new Map<string, number>()
    for (const event of events) {
      const told = JSON.stringify(agentEventSchema.parse(event))
      counts.set(told, (counts.get(told) ?? 0) + 1)
    }
    const distinct = [...counts].map(([told, count]) => `${count} ${told}`)
    await expect(`${distinct.join('\n')}\n${shown(verdict)}`).toMatchFileSnapshot(goldenFile(`${name}-${run}-odd`))
  })
})

/** The value with each of its fields left out, and with each of them a number, five levels deep. */
function* variantsOf(value: unknown, depth = 5): Generator<unknown> {
  if (typeof value !== 'object' || value === null || depth === 0) return
  for (const [key, inner] of Object.entries(value)) {
    const { [key]: _left, ...rest } = value as Record<string, unknown>
    if (!Array.isArray(value)) yield rest
    const withInner = (next: unknown): unknown =>
      Array.isArray(value) ? value.map((item, at) => (String(at) === key ? next : item)) : { ...rest, [key]: next }
    yield withInner(7)
    for (const next of variantsOf(inner, depth - 1)) yield withInner(next)
  }
}

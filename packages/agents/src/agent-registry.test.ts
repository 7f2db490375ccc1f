import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { agentCapabilityNames } from './agent-capabilities.js'
import { agentAdapters, findAgent } from './agent-registry.js'
import { renderAgentsMarkdown } from './agents-markdown.js'
import { findProvider, providers } from './providers/provider-registry.js'

const adapters = [...agentAdapters.values()]
const input = {
  taskId: 'task-1',
  prompt: 'do it',
  workDir: '/workspace/repo',
  stateDir: '/workspace/.corral',
  options: { command: 'run-it' },
}

describe('the registry', () => {
  it('knows its agents and providers by name and no others', () => {
    expect([...agentAdapters.keys()]).toEqual(['claude', 'codex', 'gemini', 'opencode', 'acp', 'command'])
    expect([...providers.keys()]).toEqual(['anthropic', 'openai', 'google'])
    expect(findAgent('constructor')).toBeUndefined()
    expect(findProvider('__proto__')).toBeUndefined()
  })

  it.each(adapters)('$name speaks APIs that exist and says of every capability yes or why not', (adapter) => {
    for (const kind of adapter.speaks ?? []) expect(findProvider(kind)?.kind).toBe(kind)
    for (const name of agentCapabilityNames) {
      const cell = adapter.capabilities[name]
      if (cell !== true) expect(cell.no).toMatch(/\w+ \w+/)
    }
    expect(adapter.capabilities.resume === true).toBe(adapter.sessions !== undefined)
    expect(adapter.capabilities.ask === true).toBe(adapter.answer !== undefined)
    // What is read and what is asked is told by the parser alone.
    if (adapter.capabilities.steer === true) expect(adapter.createParser().read).toEqual([])
    if (adapter.capabilities.ask === true) expect(adapter.createParser().questions).toEqual([])
  })

  it.each(adapters.filter(({ install }) => install))('$name is installed at an exact version', ({ install }) => {
    expect(install?.version).toMatch(/^\d+\.\d+\.\d+$/)
  })

  it.each(adapters)('$name keeps everything it writes outside the work tree, in private files', (adapter) => {
    const kind = adapter.speaks?.[0] ?? 'openai'
    const launch = adapter.launch({
      ...input,
      instructions: 'Be brief.',
      mcpServers: [{ name: 's', command: 'node', args: ['x.mjs'] }],
      broker: { baseUrl: 'http://corral-broker:8787', token: 'task-token', kind },
    })
    expect(launch.cwd).toBe(input.workDir)
    for (const file of launch.files) {
      expect(file.path).toMatch(/^\/workspace\/\.corral\//)
      expect(file.mode).toBe('0600')
    }
    // A token in a command line could be read by every process of the sandbox, and lies in the daemon's records.
    expect(launch.argv.join(' ')).not.toContain('task-token')
    expect(launch.argv.join(' ')).not.toContain(input.prompt)
  })

  it.each(adapters)('$name refuses options it does not know, and a model that would be an option', ({ options }) => {
    const command = options.safeParse({}).success ? {} : { command: 'x' }
    expect(options.safeParse(command).success).toBe(true)
    expect(options.safeParse({ ...command, modle: 'm' }).success).toBe(false)
    expect(options.safeParse({ ...command, model: '--dangerously' }).success).toBe(false)
    expect(options.safeParse({ ...command, provider: 'No Such' }).success).toBe(false)
  })
})

describe('launching', () => {
  const launch = (name: string, more: object) =>
    findAgent(name)!.launch({
      ...input,
      options: {},
      broker: { baseUrl: 'http://corral-broker:8787', token: 't', kind: findAgent(name)!.speaks![0]! },
      ...more,
    })
  const fileOf = (name: string, more: object, suffix: string): string =>
    launch(name, more).files.find(({ path }) => path.endsWith(suffix))?.content ?? ''

  it.each<{ agent: string; when: string; more: object; has: string }>([
    { agent: 'claude', when: 'an effort', more: { options: { effort: 'high' } }, has: '--effort high' },
    { agent: 'claude', when: 'a plan', more: { mode: 'plan' }, has: '--permission-mode plan' },
    { agent: 'claude', when: 'a session', more: { resume: { sessionId: 'abc' } }, has: '--resume abc' },
    { agent: 'claude', when: 'permissions to ask for', more: { ask: 'always' }, has: '--permission-mode default' },
    { agent: 'claude', when: 'questions to ask', more: { ask: 'input' }, has: '--dangerously-skip-permissions' },
    { agent: 'claude', when: 'arguments', more: { options: { args: ['--max-turns', '3'] } }, has: '--max-turns 3' },
    { agent: 'codex', when: 'a model', more: { options: { model: 'gpt-5' } }, has: '-m gpt-5 -' },
    { agent: 'codex', when: 'a plan', more: { mode: 'plan' }, has: 'exec --sandbox read-only --json' },
    { agent: 'codex', when: 'a session', more: { resume: { sessionId: 'abc' } }, has: 'exec resume --json' },
    { agent: 'gemini', when: 'a plan', more: { mode: 'plan' }, has: '--approval-mode plan --policy' },
    { agent: 'gemini', when: 'a session', more: { resume: { sessionId: 'abc' } }, has: '--yolo --resume abc' },
    { agent: 'opencode', when: 'a plan', more: { mode: 'plan' }, has: '--agent plan' },
    { agent: 'opencode', when: 'a session', more: { resume: { sessionId: 's1' } }, has: '-s s1 --agent build' },
  ])('$agent with $when is started with $has', ({ agent, more, has }) => {
    expect(launch(agent, more).argv.join(' ')).toContain(has)
  })

  it.each(['claude', 'codex', 'gemini', 'opencode'])(
    '%s in plan mode is not given the permission to change',
    (name) => {
      const { argv: words, env } = launch(name, { mode: 'plan', ask: 'input' })
      const argv = words.join(' ')
      expect(env.CORRAL_ASK ?? 'never').toBe('never')
      expect(argv).not.toMatch(/--dangerously|--yolo|--agent build/)
    },
  )

  it('Codex gets servers and instructions in its own home', () => {
    const servers = [
      { name: 'a', command: 'node', args: ['say "hi"'], env: { KEY: 'v' } },
      { name: 'b', url: 'https://mcp.example.com/x', headers: { 'x-key': 'v' } },
    ]
    const toml = fileOf('codex', { mcpServers: servers, options: { effort: 'low' } }, 'config.toml')
    expect(toml).toContain('[mcp_servers."a"]\ncommand = "node"\nargs = ["say \\"hi\\""]\nenv = { "KEY" = "v" }')
    expect(toml).toContain('[mcp_servers."b"]\nurl = "https://mcp.example.com/x"\nhttp_headers = { "x-key" = "v" }')
    expect(toml).toContain('model_reasoning_effort = "low"')
    expect(fileOf('codex', { instructions: 'Be brief.' }, 'codex/AGENTS.md')).toBe('Be brief.')
  })

  it('OpenCode is configured for the API of the provider that was chosen', () => {
    const broker = { baseUrl: 'http://b:1', token: 't', kind: 'openai' }
    const config = JSON.parse(fileOf('opencode', { broker, options: { model: 'llama3' } }, 'opencode.json'))
    expect(config).toMatchObject({
      model: 'corral/llama3',
      provider: { corral: { npm: '@ai-sdk/openai-compatible', options: { baseURL: 'http://b:1/v1' } } },
    })
    expect(JSON.stringify(config)).not.toContain('"t"')
  })
})

it('docs/agents.md is what the registries say', () => {
  const text = readFileSync(new URL('../../../docs/agents.md', import.meta.url), 'utf8')
  expect(text, 'run npm run generate').toBe(renderAgentsMarkdown())
})

import { resolve } from 'node:path'
import { expect, it } from 'vitest'
import { changesFrom, parseAssignment, projectYaml, settingsFromYaml } from './project-settings.js'

it.each<{ given: string; means: object }>([
  { given: 'setup=true', means: { setup: 'true' } },
  { given: 'sign=true', means: { sign: true } },
  { given: 'check_rounds=0', means: { check_rounds: 0 } },
  { given: 'repo=.', means: { repo: resolve('.') } },
  { given: 'egress=[packages, a.example:443]', means: { egress: ['packages', 'a.example:443'] } },
  { given: 'author=Jane Doe <jane@example.com>', means: { author: { name: 'Jane Doe', email: 'jane@example.com' } } },
  { given: 'agent=codex', means: { agent: 'codex' } },
  { given: 'agent.model=m2', means: { agent: { name: 'codex', model: 'm2' } } },
  { given: 'agent.model=', means: { agent: { name: 'codex' } } },
  { given: 'instructions=', means: { instructions: null } },
  { given: 'instructions=a=b', means: { instructions: 'a=b' } },
])('--set $given', ({ given, means }) => {
  const current = { agent: { name: 'codex', model: 'm1' } }
  expect(changesFrom([parseAssignment(given)], current)).toEqual(means)
})

it('puts parts of one setting together', () => {
  const given = ['agent.name=command', 'agent.command=make'].map(parseAssignment)
  expect(changesFrom(given, {})).toEqual({ agent: { name: 'command', command: 'make' } })
})

it.each([
  { given: 'nothing', says: '--set nothing: must be NAME=VALUE' },
  { given: '=x', says: '--set =x: must be NAME=VALUE' },
  { given: 'colour=red', says: '--set colour=red: a project has no setting "colour"' },
  { given: 'agent.a.b=red', says: '--set agent.a.b=red: a project has no setting "agent"' },
  { given: 'author=Jane', says: '--set author: "Jane" is not of the form "Jane Doe <jane@example.com>"' },
  { given: 'sign=perhaps', says: 'sign: must be true or false, not a text' },
  { given: 'egress=[a', says: /--set egress=\[a: the value cannot be read as YAML/ },
  { given: 'minimum_tier=vm', says: 'minimum_tier: must be one of process, bubblewrap, gvisor' },
])('--set $given is refused by name', ({ given, says }) => {
  expect(() => changesFrom([parseAssignment(given)], {})).toThrow(says)
})

it('writes YAML that it reads back', () => {
  const settings = {
    repo: '/r',
    agent: { name: 'command', command: 'a: b # c' },
    instructions: 'One.\nTwo.\n',
    checks: [{ name: 'test', command: 'make' }],
  }
  expect(settingsFromYaml(projectYaml({ name: 'p', resource_version: '1', ...settings }), 'f')).toEqual(settings)
  expect(settingsFromYaml('# only a comment\n', 'f')).toEqual({})
})

it.each([
  { text: 'a: [', says: /^f cannot be read as YAML/ },
  { text: '- a', says: 'f: must be settings, one a line' },
  { text: 'colour: red', says: 'f: settings: there is no field "colour"' },
])('a file with $text is refused', ({ text, says }) => {
  expect(() => settingsFromYaml(text, 'f')).toThrow(says)
})

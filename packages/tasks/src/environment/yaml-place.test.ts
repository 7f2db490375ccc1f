import { expect, it } from 'vitest'
import { parseEnvironmentFile } from './environment-file.js'

const file = `version: 1
# what the agent needs
setup:
  - npm ci
checks:
  - name: unit
    run: npm test
    timeout: ten minutes
egress: {setup: [packages, "https://x"]}
parts:
  web: {path: ../other}
`

it.each([
  { field: 'checks[0].timeout', place: 'line 8, column 5', text: file },
  { field: 'egress.setup[1]', place: 'line 9, column 29', text: file },
  { field: 'parts.web.path', place: 'line 11, column 9', text: file },
  { field: 'checks[0].name', place: 'line 3, column 5', text: 'version: 1\nchecks:\n  - run: npm test\n' },
  { field: 'the file: there is no field "setpu"', place: 'line 2, column 1', text: 'version: 1\nsetpu: npm ci\n' },
  { field: 'setup', place: 'line 2, column 1', text: 'version: 1\nsetup:\n' },
  { field: 'bad indentation', place: 'line 3, column 6', text: 'version: 1\nsetup: npm ci\n  foo: bar\n' },
  { field: 'the file', place: 'line 1, column 1', text: '- a\n' },
])('a mistake in $field is shown at $place', ({ field, place, text }) => {
  expect(() => parseEnvironmentFile(text, 'environment.yaml')).toThrow(
    expect.objectContaining({ message: expect.stringContaining(`${place}: ${field}`) }),
  )
})

it('a tool that there is none of is not taken for one that is spelled a little alike', () => {
  const ruby = 'version: 1\ntools: {ruby: "3"}\n'
  expect(() => parseEnvironmentFile(ruby)).toThrow(/tools: there is no field "ruby"$/)
})

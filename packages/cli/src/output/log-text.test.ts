import { expect, it } from 'vitest'
import { isJsonLines } from './log-text.js'

it.each([
  { what: 'events of an agent', text: '{"type":"system"}\n{"type":"x"}\n', is: true },
  { what: 'a first event that goes on', text: '{"type":"system","tools":["a"', is: true },
  { what: 'plain text', text: 'Running the tests first.\n', is: false },
  { what: 'a brace of some code', text: '{ echo; }\n', is: false },
  { what: 'nothing', text: '', is: false },
])('$what: $is', ({ text, is }) => {
  expect(isJsonLines(text)).toBe(is)
})

import { expect, it } from 'vitest'
import { describeEvent } from './event-printer.js'
import { terminalText } from './terminal-text.js'

it.each([
  { what: 'plain text', text: 'one\n\ttwo é ✓', shown: 'one\n\ttwo é ✓' },
  { what: 'colours, ended at the end', text: '\u001b[1;31mred', shown: '\u001b[1;31mred\u001b[0m' },
  { what: 'a window title', text: 'a\u001b]0;owned\u0007b', shown: 'a␛]0;owned␇b' },
  { what: 'a clipboard', text: '\u001b]52;c;aGk=\u001b\\', shown: '␛]52;c;aGk=␛\\' },
  { what: 'a cursor moved up to rewrite a line', text: '\u001b[1A\u001b[2Kfake', shown: '␛[1A␛[2Kfake' },
  { what: 'an eight-bit escape', text: '\u009b2J', shown: '\ufffd2J' },
  { what: 'progress on one line', text: '10%\r20%\r\n', shown: '10%\n20%\n' },
  { what: 'text that runs backwards', text: 'a\u202eb', shown: 'a\ufffdb' },
])('shows $what without obeying it', ({ text, shown }) => {
  expect(terminalText(text, true)).toBe(shown)
})

it('lets no colour of an agent pass into a pipe', () => {
  expect(terminalText('\u001b[1;31mred\u001b[0m and plain', false)).toBe('red and plain')
})

const base = { sequence: 1, at: '2030-01-01T00:00:00Z' }
it.each([
  { ...base, type: 'output', stream: 'stdout', text: '\u001b]0;x\u0007' },
  { ...base, type: 'message', text: '\u001b]0;x\u0007' },
  { ...base, type: 'tool_call', id: '1', tool: 'Bash', summary: '\u001b]0;x\u0007' },
  { ...base, type: 'tool_result', id: '1', text: '\u001b]0;x\u0007' },
  { ...base, type: 'file_changed', path: '\u001b]0;x\u0007', change: 'modified' },
  { ...base, type: 'error', message: '\u001b]0;x\u0007' },
  { ...base, type: 'stage', stage: 'push', state: 'failed', detail: '\u001b]0;x\u0007' },
] as const)('an event of type $type cannot steer the terminal', (event) => {
  const line = describeEvent(event as unknown as Parameters<typeof describeEvent>[0])
  expect(line).toContain('␛]0;x␇')
  expect(line).not.toContain('\u001b]')
})

import { describe, expect, it } from 'vitest'
import { table } from '../../packages/cli/src/output/table.js'

const header = ['NAME', 'STATUS', 'MESSAGE']

describe('what a sandbox or a repository may call itself, in a table on a terminal', () => {
  it.each([
    ['a line that looks like a row', 'x\ntask-fake  SUCCEEDED  all is well'],
    ['a carriage return over the row', 'x\rtask-fake  SUCCEEDED'],
    ['a line separator of Unicode', 'x\u2028task-fake'],
    ['a code that moves the cursor up', '\u001b[1A\u001b[2Ktask-fake'],
    ['a code that sets the title', '\u001b]0;owned\u0007'],
    ['a code of eight bits', '\u009b2J'],
    ['letters that turn the direction around', '\u202egnp.exe'],
    ['a colour', '\u001b[31mFAILED\u001b[0m'],
  ])('%s stays one cell', (_, text) => {
    const lines = table(
      header,
      [
        ['task-a', 'FAILED', text],
        ['task-b', text, 'ok'],
      ],
      80,
    ).split(/[\n\u2028\u2029]/)
    expect(lines).toHaveLength(3)
    expect(lines[1]).toMatch(/^task-a /)
    expect(lines[2]).toMatch(/^task-b /)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(lines.join('')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/)
  })

  it('words of any language pass as they are', () => {
    expect(table(header, [['task-a', 'FAILED', 'größer – 测试']])).toContain('größer – 测试')
  })

  it('a row fits a narrow terminal, and what names the thing is never cut', () => {
    const row = ['task-5vlq49gtkz', 'SUCCEEDED', 'a message that is much longer than any terminal is wide']
    for (const columns of [40, 60, 80])
      for (const line of table(header, [row], columns).split('\n')) expect(line.length).toBeLessThanOrEqual(columns)
    expect(table(header, [row], 10)).toContain('task-5vlq49gtkz')
  })
})

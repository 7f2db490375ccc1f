import { expect, it } from 'vitest'
import { commitMessage } from './commit-message.js'

const trailers = 'Corral-Task: task-x'
const long = 'Rewrote the totals of the order page so that they are computed once and shown everywhere the same'

it.each<{ when: string; given: Partial<Parameters<typeof commitMessage>[0]>; says: string }>([
  { when: 'the agent said nothing', given: {}, says: `Fix totals\n\n${trailers}\n` },
  { when: 'it said only blanks', given: { summary: ' \n ' }, says: `Fix totals\n\n${trailers}\n` },
  { when: 'it said one line', given: { summary: 'Fixed it.' }, says: `Fixed it.\n\n${trailers}\n` },
  {
    when: 'it said more, with a heading',
    given: { summary: '## **Fixed** totals\n\n- one\n- two\n' },
    says: `Fixed totals\n\n- one\n- two\n\n${trailers}\n`,
  },
  {
    when: 'its first line is too long, all of it is in the body',
    given: { summary: `${long}\n\nMore.` },
    says: `Rewrote the totals of the order page so that they are computed once...\n\n${long}\n\nMore.\n\n${trailers}\n`,
  },
  {
    when: 'the agent has a name',
    given: { coAuthor: { name: 'Claude', email: 'noreply@anthropic.com' } },
    says: `Fix totals\n\n${trailers}\nCo-authored-by: Claude <noreply@anthropic.com>\n`,
  },
  {
    when: 'it wrote for terminals',
    given: { summary: '\u001b[31mred\u001b[0m\r\nline\u0007' },
    says: `[31mred[0m\n\nline\n\n${trailers}\n`,
  },
  { when: 'there is not even a prompt', given: { prompt: ' ' }, says: `Work of a coding agent\n\n${trailers}\n` },
])('when $when', ({ given, says }) => {
  const message = commitMessage({ prompt: 'Fix totals\nand more', taskName: 'task-x', ...given })
  expect(message).toBe(says)
  expect(message.split('\n', 1)[0]!.length).toBeLessThanOrEqual(72)
})

import { expect, it } from 'vitest'
import { environmentFileSchema } from './environment-file.js'
import { issueWords } from './issue-words.js'
import { createTaskRequestSchema } from './task-api.js'

const good = { repo: '/r', task: 't' }

it.each<{ when: string; value: unknown; says: string[] }>([
  { when: 'the task is empty', value: { ...good, task: '' }, says: ['task: must not be empty'] },
  { when: 'the repository is missing', value: { task: 't' }, says: ['repo: is required where no project names it'] },
  { when: 'the task is a number', value: { ...good, task: 7 }, says: ['task: must be a text, not a number'] },
  { when: 'it is a list', value: [], says: ['body: must be an object, not a list'] },
  { when: 'it is null', value: null, says: ['body: must be an object, not null'] },
  {
    when: 'the time is a fraction',
    value: { ...good, timeout_seconds: 1.5 },
    says: ['timeout_seconds: must be a whole number'],
  },
  { when: 'there is no time', value: { ...good, timeout_seconds: 0 }, says: ['timeout_seconds: must be at least 1'] },
  {
    when: 'there is too much time',
    value: { ...good, timeout_seconds: 1e6 },
    says: ['timeout_seconds: must be at most 86400'],
  },
  {
    when: 'a field has a typing error',
    value: { ...good, brunch: 'x' },
    says: ['body: there is no field "brunch"'],
  },
  {
    when: 'the agent is neither a name nor an object',
    value: { ...good, agent: 7 },
    says: ['agent: must be a text or an object, not a number'],
  },
  {
    when: 'a limit is too small',
    value: { ...good, limits: { max_tokens: 0 } },
    says: ['limits.max_tokens: must be at least 1'],
  },
  {
    when: 'an egress rule has no port',
    value: { ...good, egress: ['example.com'] },
    says: ['egress[0]: must be host:port, e.g. files.example.com:443, or packages'],
  },
  {
    when: 'a file leaves the repository',
    value: { ...good, files: [{ path: '../x', content: '' }] },
    says: ['files[0].path: must be a relative path that stays inside the repository and outside .git'],
  },
  {
    when: 'the prompt has a NUL',
    value: { ...good, task: 'a\0b' },
    says: ['task: must not contain a NUL character'],
  },
  {
    when: 'a label has a long name',
    value: { ...good, labels: { ['x'.repeat(400)]: 'y' } },
    says: [`labels.${'x'.repeat(400)}: its name must have at most 317 characters`],
  },
])('says in plain words what is wrong when $when', ({ value, says }) => {
  const { error } = createTaskRequestSchema.safeParse(value)
  expect(issueWords(error?.issues ?? [], 'body')).toEqual(says)
  expect(says.join()).not.toMatch(/expected|invalid input|too (small|big)/i)
})

it('a number that was written as text is asked for as a number', () => {
  const { error } = environmentFileSchema.safeParse({ version: '1' })
  expect(issueWords(error?.issues ?? [], 'file')).toEqual(['version: must be the number 1'])
})

import { expect, it } from 'vitest'
import { requirementsPage, testsOfReport } from '../../scripts/requirements-table.js'

const passed = { file: 'tests/a.test.ts', status: 'passed' }
const rowOf = (page: string, id: string): string => page.split('\n').find((line) => line.startsWith(`| ${id} |`)) ?? ''

it.each([
  {
    when: 'a test that passed carries the id',
    tests: [{ ...passed, name: 'the API S1-1 S1-2: answers | soon' }],
    says: '`tests/a.test.ts`: the API answers \\| soon',
  },
  { when: 'the test failed', tests: [{ ...passed, status: 'failed', name: 'S1-1: answers' }], says: 'not yet' },
  { when: 'only a longer id is carried', tests: [{ ...passed, name: 'S1-12: answers' }], says: 'not yet' },
  {
    when: 'many tests carry it',
    tests: ['a', 'b', 'c', 'd', 'e'].map((name) => ({ ...passed, name: `S1-1: ${name}` })),
    says: '`tests/a.test.ts`: a; `tests/a.test.ts`: b; `tests/a.test.ts`: c; 2 more',
  },
  {
    when: 'a suite whose report is committed carries it',
    tests: testsOfReport({
      command: 'npm run conformance:real-node',
      commit: 'abcdef0123456789',
      date: '2026-01-02T03:04:05.678Z',
      tests: [
        { name: 'S1-1: a pod runs', status: 'passed' },
        { name: 'S1-1: another', status: 'failed' },
      ],
    }),
    says: '`npm run conformance:real-node` at abcdef0 on 2026-01-02: a pod runs',
  },
])('an id is asserted by "$says" when $when', ({ tests, says }) => {
  const page = requirementsPage([{ title: 'Some', rows: [{ id: 'S1-1', text: 'it answers' }] }], tests)
  expect(rowOf(page, 'S1-1')).toBe(`| S1-1 | it answers | ${says} |`)
})

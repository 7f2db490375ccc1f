import { expect, it } from 'vitest'
import { checksRequest } from './check-options.js'

it.each<{ given: string[]; becomes: [name: string, command: string][] }>([
  { given: ['npm test'], becomes: [['npm-test', 'npm test']] },
  {
    given: ['unit=npm test', 'npm run lint'],
    becomes: [
      ['unit', 'npm test'],
      ['npm-run-lint', 'npm run lint'],
    ],
  },
  {
    given: ['npm test', 'npm test'],
    becomes: [
      ['npm-test', 'npm test'],
      ['npm-test-2', 'npm test'],
    ],
  },
  { given: ['CI=1 npm test'], becomes: [['ci-1-npm-test', 'CI=1 npm test']] },
  { given: ['test "$a" = b'], becomes: [['test-a-b', 'test "$a" = b']] },
  { given: ['./'], becomes: [['check', './']] },
])('--check $given', ({ given, becomes }) => {
  expect(checksRequest({ check: given }).checks?.map(({ name, command }) => [name, command])).toEqual(becomes)
})

it('rounds, time and what becomes of the branch go into the request', () => {
  expect(checksRequest({ check: ['a=b'], checkTimeout: 90, checkRounds: 0, pushFailed: false })).toEqual({
    checks: [{ name: 'a', command: 'b', timeout_seconds: 90 }],
    check_rounds: 0,
    on_failed_checks: 'no-push',
  })
  expect(checksRequest({ pushFailed: true })).toEqual({})
})

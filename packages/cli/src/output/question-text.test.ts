import { expect, it } from 'vitest'
import { answerFrom } from './question-text.js'

const options = [{ id: 'allow' }, { id: 'deny' }]

it.each<{ typed: string; means: object | undefined }>([
  { typed: '1', means: { option: 'allow' } },
  { typed: ' 2 ', means: { option: 'deny' } },
  { typed: '3', means: { answer: '3' } },
  { typed: '0', means: { answer: '0' } },
  { typed: 'Use tabs', means: { answer: 'Use tabs' } },
  { typed: '  ', means: undefined },
])('"$typed" means $means', ({ typed, means }) => {
  expect(answerFrom(typed, options)).toEqual(means)
})

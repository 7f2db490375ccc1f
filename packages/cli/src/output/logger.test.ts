import { expect, it } from 'vitest'
import { errorFields } from './logger.js'

const known = (message: string): Error => Object.assign(new Error(message), { code: 'Forbidden' })

it.each<{ what: string; error: Error; code?: string; hasStack: boolean }>([
  {
    what: 'one the API server answered',
    error: known('serviceaccount "default" not found'),
    code: 'Forbidden',
    hasStack: false,
  },
  { what: 'several of those', error: new AggregateError([known('one'), known('two')], 'both'), hasStack: false },
  { what: 'one that should not happen', error: new TypeError('x is not a function'), hasStack: true },
  {
    what: 'one of several that should not',
    error: new AggregateError([known('one'), new Error('two')]),
    hasStack: true,
  },
])('a failure that is tried again is told without its stack where it is known: $what', ({ error, code, hasStack }) => {
  const fields = errorFields(error, false)
  expect([fields.message, fields.code, fields.stack !== undefined]).toEqual([error.message, code, hasStack])
  expect(errorFields(error, true).stack).toBe(error.stack)
})

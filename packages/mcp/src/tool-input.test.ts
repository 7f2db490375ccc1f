import { expect, it } from 'vitest'
import * as z from 'zod'
import { toolInput } from './tool-input.js'

const input = toolInput({ warmpool: z.string().min(1).default('default'), seconds: z.int().min(1).max(600).optional() })

it.each<[when: string, value: unknown, says: string]>([
  [
    'an argument has a typing error',
    { warmpol: 'x' },
    'arguments: there is no field "warmpol"; did you mean "warmpool"?',
  ],
  ['an argument is of another tool', { command: 'ls' }, 'arguments: there is no field "command"'],
  ['a number is written as text', { seconds: '5' }, 'seconds: must be a number, not a text'],
  ['a number is out of bounds', { seconds: 601 }, 'seconds: must be at most 600'],
  ['there are none', null, 'arguments: must be an object, not null'],
])('is refused in words when %s', async (_, value, says) => {
  const result = await input['~standard'].validate(value)
  expect(result.issues?.map(({ message }) => message)).toEqual([says])
})

it('takes what is right, with defaults, and tells clients its schema', async () => {
  expect(await input['~standard'].validate({ seconds: 5 })).toEqual({ value: { warmpool: 'default', seconds: 5 } })
  expect(input['~standard'].jsonSchema.input({ target: 'draft-2020-12' })).toMatchObject({
    type: 'object',
    additionalProperties: false,
    properties: { warmpool: { type: 'string', default: 'default' } },
  })
})

import { expect, it } from 'vitest'
import { setSecretRequestSchema } from './platform-api.js'
import { patchSettingsRequestSchema } from './settings-api.js'

const says = (result: { error?: { issues: { message: string }[] } | undefined }): string | undefined =>
  result.error?.issues[0]?.message

it.each([
  { what: 'a sequence for the terminal', context: 'prod\u001b[2J' },
  { what: 'a NUL', context: 'a\0b' },
  { what: 'a second line', context: 'prod\nall is well' },
  { what: 'an order of reading', context: 'prod\u202edorp' },
])('a context that is printed with $what is refused', ({ context }) => {
  expect(says(patchSettingsRequestSchema.safeParse({ context }))).toBe('must not contain letters that cannot be seen')
})

it.each(['prod', 'arn:aws:eks:eu-west-1:1234:cluster/shop', 'kind-größe @ büro'])(
  'the context %s is taken',
  (context) => {
    expect(patchSettingsRequestSchema.safeParse({ context })).toMatchObject({ success: true })
  },
)

it('a secret that no variable can hold is refused, one of several lines is taken', () => {
  expect(says(setSecretRequestSchema.safeParse({ value: 'a\0b' }))).toBe('must not contain a NUL character')
  expect(setSecretRequestSchema.safeParse({ value: 'BEGIN\nkey\n' })).toMatchObject({ success: true })
})

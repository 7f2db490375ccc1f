import { expect, it } from 'vitest'
import { findPlatform, requirePlatform } from './find-platform.js'

it.each(['nonsense', 'localhost:8080', 'ftp://files.example.com', 'http://'])(
  'says that %s is no address, instead of that it does not answer',
  async (url) => {
    await expect(findPlatform({ url, token: 'x' }, {})).rejects.toMatchObject({
      exitCode: 2,
      message: `"${url}" is not the address of a platform`,
    })
  },
)

it('takes an address with or without a path, and the last slash away', async () => {
  expect(await findPlatform({ url: 'https://corral.example.com/api/', token: 'x' }, {})).toEqual({
    url: 'https://corral.example.com/api',
    token: 'x',
  })
})

it.each([
  { given: 'the flag', options: { url: 'http://127.0.0.1:1' }, env: {}, says: '--url is given, but no token' },
  { given: 'the variable', options: {}, env: { CORRAL_URL: 'http://a' }, says: 'CORRAL_URL is set, but no token' },
])('names $given that gave the address a token is missing for', async ({ options, env, says }) => {
  await expect(findPlatform(options, env)).rejects.toMatchObject({
    message: says,
    hint: expect.stringContaining('--token or CORRAL_TOKEN'),
  })
})

it('names the data directory in the command that starts a platform there', async () => {
  await expect(requirePlatform({ dataDir: '/no such place' })).rejects.toMatchObject({
    hint: expect.stringContaining("`corral up -d --data-dir '/no such place'`"),
  })
})

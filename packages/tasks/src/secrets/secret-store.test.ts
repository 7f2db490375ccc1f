import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { fileSecretStore, platformSecrets } from './secret-store.js'

const directory = mkdtempSync(join(tmpdir(), 'corral-secrets-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
const store = fileSecretStore(directory)

describe.each([...platformSecrets])('the platform’s own secret %s', (name) => {
  it('is neither listed nor changed', async () => {
    writeFileSync(join(directory, name), 'made by the platform')
    expect(await store.list()).not.toContain(name)
    const refusal = { code: 'Forbidden', message: expect.stringContaining("platform's own") }
    await expect(store.set(name, 'mine')).rejects.toMatchObject(refusal)
    await expect(store.remove(name)).rejects.toMatchObject(refusal)
    await expect(store.find(name)).rejects.toMatchObject(refusal)
    expect(readdirSync(directory)).toContain(name)
  })
})

it.each<[what: string, name: string, value: string, code: string | undefined]>([
  ['a key with the newline that echo adds', 'anthropic', 'sk-ant-1\n', undefined],
  ['a key of two lines', 'anthropic', 'sk-1\nsk-2\n', 'BadRequest'],
  ['a key with a sign that no header takes', 'openai', 'sk-\u2026', 'BadRequest'],
  ['a key of an endpoint of two lines', 'endpoint-house', 'a\nb', 'BadRequest'],
  ['a private key for set-up, of many lines', 'deploy-key', 'BEGIN\nabc\nEND\n', undefined],
  ['nothing but white space', 'deploy-key', ' \n', 'BadRequest'],
  ['a name with a slash', '../x', 'a', 'BadRequest'],
])('%s', async (_, name, value, code) => {
  const set = store.set(name, value)
  if (code) return void (await expect(set).rejects.toMatchObject({ code }))
  await set
  expect(await store.find(name)).toBe(value.trim())
})

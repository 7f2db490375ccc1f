import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, it } from 'vitest'
import * as z from 'zod'
import { namedListFile } from './named-list-file.js'

const directory = mkdtempSync(join(tmpdir(), 'named-list-'))
const path = join(directory, 'endpoints.json')
const schema = z.object({ name: z.string().min(1), url: z.string() })
const store = namedListFile(path, { schema, singular: 'endpoint', add: 'corral endpoint add' })
const one = { name: 'one', url: 'http://a' }
const two = { name: 'two', url: 'http://b' }

beforeEach(() => rmSync(path, { force: true }))
afterAll(() => rmSync(directory, { recursive: true }))

it('is empty before anything was added', async () => {
  expect(await store.list()).toEqual([])
  expect(await store.find('one')).toBeUndefined()
  expect(await store.remove('one')).toBe(false)
})

it('keeps what is put, once for each name, readable by its user alone, and leaves no half-written file', async () => {
  await store.put(one)
  await store.put(two)
  await store.put({ ...one, url: 'http://c' })
  expect(await store.list()).toEqual([two, { name: 'one', url: 'http://c' }])
  expect(await store.find('two')).toEqual(two)
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({ endpoints: [two, { name: 'one', url: 'http://c' }] })
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readdirSync(directory)).toEqual(['endpoints.json'])
})

it('removes the one that is named and says whether it was there', async () => {
  await store.put(one)
  await store.put(two)
  expect([await store.remove('one'), await store.remove('one')]).toEqual([true, false])
  expect(await store.list()).toEqual([two])
})

it.each([
  { what: 'no JSON', text: '{' },
  { what: 'another list', text: '{"providers":[]}' },
  { what: 'an entry without its address', text: '{"endpoints":[{"name":"one"}]}' },
])('a file with $what is refused with the next move, and is not overwritten', async ({ text }) => {
  writeFileSync(path, text)
  const refusal = { code: 'Invalid', hint: expect.stringContaining('corral endpoint add') as string }
  await expect(store.list()).rejects.toMatchObject(refusal)
  await expect(store.put(one)).rejects.toMatchObject(refusal)
  expect(readFileSync(path, 'utf8')).toBe(text)
})

it('an entry that breaks the schema is refused before anything is written', async () => {
  await expect(store.put({ name: '', url: 'x' })).rejects.toMatchObject({
    code: 'Invalid',
    hint: 'See `corral endpoint add --help`.',
  })
  expect(readdirSync(directory)).toEqual([])
})

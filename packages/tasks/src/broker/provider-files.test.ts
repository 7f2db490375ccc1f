import { mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endpointProvider, findProvider } from '@corral/agents'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { fileEndpointStore } from './endpoint-store.js'
import { createModelProviders } from './model-providers.js'
import { filePrices } from './price-file.js'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-files-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const local = { name: 'local', kind: 'openai', base_url: 'http://127.0.0.1:11434/v1' }

describe('endpoints', () => {
  it('are added, changed, found and removed; another process sees it at once', async () => {
    const path = join(directory, 'endpoints.json')
    const store = fileEndpointStore(path)
    expect(await store.list()).toEqual([])
    await store.put(local)
    await store.put({ ...local, base_url: 'http://127.0.0.1:1/v1' })
    expect(await fileEndpointStore(path).list()).toEqual([{ ...local, base_url: 'http://127.0.0.1:1/v1' }])
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(await store.remove('local')).toBe(true)
    expect(await store.remove('local')).toBe(false)
  })

  it('that are not valid change nothing', async () => {
    const store = fileEndpointStore(join(directory, 'endpoints.json'))
    await store.put(local)
    await expect(store.put({ ...local, name: 'openai' })).rejects.toMatchObject({
      code: 'Invalid',
      message: 'name: is the name of a provider',
    })
    expect(await store.list()).toEqual([local])
  })

  it('a broken file is told by name and not taken for an empty one', async () => {
    const path = join(directory, 'endpoints.json')
    writeFileSync(path, '{"endpoints":[{}]}')
    await expect(fileEndpointStore(path).put(local)).rejects.toMatchObject({
      code: 'Invalid',
      message: expect.stringContaining(path),
    })
  })

  it('are providers beside those we know, usable without a key', async () => {
    const endpoints = fileEndpointStore(join(directory, 'endpoints.json'))
    await endpoints.put(local)
    const known = createModelProviders({
      endpoints,
      secrets: { find: async (name) => (name === 'endpoint-local' ? 'own-key' : undefined) },
      env: { OPENAI_API_KEY: 'from-env', OPENAI_BASE_URL: 'http://proxy/v1' },
    })
    const [mine, openai] = [(await known.find('local'))!, (await known.find('openai'))!]
    expect(await known.keyOf(mine)).toBe('own-key')
    expect(known.baseUrlOf(mine)).toBe(local.base_url)
    expect(await known.keyOf(openai)).toBe('from-env')
    expect(known.baseUrlOf(openai)).toBe('http://proxy/v1')
    expect(await known.isUsable((await known.find('google'))!)).toBe(false)
    expect(await known.find('nothing')).toBeUndefined()
  })
})

describe('the price file', () => {
  const openai = findProvider('openai')!
  const write = (content: unknown, seconds: number): string => {
    const path = join(directory, 'prices.json')
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
    utimesSync(path, seconds, seconds)
    return path
  }

  it('adds to the list prices and overrides them, also for endpoints, and is read again when it changes', () => {
    const path = join(directory, 'prices.json')
    const prices = filePrices(path, () => expect.unreachable())
    expect(prices.of(openai)).toBe(openai.prices)
    write(
      {
        as_of: '2026-11-01',
        models: { 'openai/gpt-5': { input: 1, output: 2 }, 'local/llama3': { input: 0, output: 0 } },
      },
      1_000,
    )
    expect(prices.of(openai)['gpt-5']).toMatchObject({ asOf: '2026-11-01', input: 1, output: 2, cacheRead: 1 })
    expect(prices.of(openai)['gpt-5-mini']).toEqual(openai.prices['gpt-5-mini'])
    expect(prices.of(endpointProvider(local))).toMatchObject({ llama3: { input: 0 } })
    write({ as_of: '2026-11-02', models: {} }, 2_000)
    expect(prices.of(openai)).toBe(openai.prices)
  })

  it.each([
    { what: 'no JSON', content: '{' },
    { what: 'no date', content: { models: {} } },
    {
      what: 'a model without its provider',
      content: { as_of: '2026-11-01', models: { 'gpt-5': { input: 1, output: 1 } } },
    },
    { what: 'a price below zero', content: { as_of: '2026-11-01', models: { 'openai/x': { input: -1, output: 1 } } } },
  ])('with $what is told once and not used', ({ content }) => {
    const problems: string[] = []
    const prices = filePrices(write(content, 1_000), (problem) => problems.push(problem))
    expect(prices.of(openai)).toBe(openai.prices)
    prices.of(openai)
    expect(problems).toEqual([expect.stringContaining('prices.json is not used')])
  })
})

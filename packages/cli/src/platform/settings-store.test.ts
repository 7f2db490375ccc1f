import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { fileSettingsStore, taskDefaults } from './settings-store.js'

let directory: string
let path: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-settings-'))
  path = join(directory, 'settings.json')
})
afterEach(() => rmSync(directory, { recursive: true }))

it('says this machine before anybody chose', async () => {
  expect(await fileSettingsStore(path).read()).toEqual({ settings: { provider: 'embedded' }, revision: '0' })
})

it('keeps a change over a restart, and takes away what is null', async () => {
  await fileSettingsStore(path).change({ provider: 'kubernetes', context: 'staging', max_cost_usd: 2 })
  const { settings } = await fileSettingsStore(path).change({ context: null, namespace: 'agents' })
  expect(settings).toEqual({ provider: 'kubernetes', namespace: 'agents', max_cost_usd: 2 })
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(settings)
})

it('refuses a change to settings that somebody else has changed', async () => {
  const store = fileSettingsStore(path)
  const { revision } = await store.read()
  await store.change({ runtime_class: 'gvisor', revision })
  await expect(store.change({ runtime_class: 'kata', revision })).rejects.toMatchObject({ code: 'Conflict' })
  expect((await store.read()).settings.runtime_class).toBe('gvisor')
})

it('names the file where it holds something else', async () => {
  writeFileSync(path, '{"provider": "moon"}')
  await expect(fileSettingsStore(path).read()).rejects.toMatchObject({
    code: 'Invalid',
    message: expect.stringContaining(path),
  })
})

it('gives tasks what was chosen and nothing else', () => {
  expect(taskDefaults({ provider: 'embedded' })).toEqual({})
  expect(taskDefaults({ provider: 'embedded', timeout_seconds: 60, max_tokens: 5, runtime_class: 'gvisor' })).toEqual({
    timeout_seconds: 60,
    runtime_class_name: 'gvisor',
    limits: { max_tokens: 5 },
  })
})

import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { checks, limitsFinding, withSnapshots } from './doctor-checks.js'

it.each([
  { limits: 'enforced', state: 'ok', remedy: undefined },
  { limits: 'partial', state: 'warn', remedy: expect.stringContaining('Delegate=yes') },
  { limits: 'none', state: 'warn', remedy: expect.stringContaining('Delegate=yes') },
] as const)('limits that are $limits are a finding of state $state', ({ limits, state, remedy }) => {
  const finding = limitsFinding('bubblewrap', limits)
  expect(finding).toMatchObject({ check: 'isolation', state, detail: `bubblewrap, limits ${limits}` })
  expect(finding.remedy).toEqual(remedy)
})

it.each([
  {
    when: 'this machine attaches them',
    snapshots: { copyOnWrite: true },
    detail: 'd, snapshots attached copy-on-write',
  },
  {
    when: 'it cannot',
    snapshots: { copyOnWrite: false, detail: 'no idmaps' },
    detail: 'd, snapshots copied (no idmaps)',
  },
  { when: 'nobody has looked', snapshots: undefined, detail: 'd' },
])('snapshots are told beside the isolation when $when, without a warning', ({ snapshots, detail }) => {
  expect(withSnapshots({ check: 'isolation', state: 'ok', detail: 'd' }, snapshots)).toMatchObject({
    state: 'ok',
    detail,
  })
})

it('a data directory that cannot be made is a failure with a way out, as `corral up` will say', async () => {
  const file = fileURLToPath(import.meta.url)
  expect(await checks.disk?.({ dataDir: `${file}/deep/inside` })).toMatchObject({
    state: 'fail',
    detail: `${file}/deep/inside cannot be used as the data directory: ${file} is no directory`,
    remedy: expect.stringContaining('--data-dir'),
  })
})

it('a data directory that has another use is a failure, as `corral up` will say', async () => {
  const directory = dirname(fileURLToPath(import.meta.url))
  expect(await checks.disk?.({ dataDir: directory })).toMatchObject({
    state: 'fail',
    detail: expect.stringMatching(/cannot be used as the data directory: it holds other files \(cli-error\.ts, /),
    remedy: expect.stringContaining('--data-dir'),
  })
})

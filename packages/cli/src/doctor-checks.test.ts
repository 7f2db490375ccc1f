import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryDirectory } from '@corral/testing'
import { expect, it, vi } from 'vitest'
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

it('an old kubeconfig whose cluster is gone is told by its server, and how to have a platform', async () => {
  await using home = temporaryDirectory()
  const path = join(home.path, 'kubeconfig')
  const entries = {
    clusters: [{ name: 'old', cluster: { server: 'http://127.0.0.1:1' } }],
    users: [{ name: 'old', user: { token: 't' } }],
    contexts: [{ name: 'old', context: { cluster: 'old', user: 'old' } }],
  }
  writeFileSync(path, JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': 'old', ...entries }))
  vi.stubEnv('KUBECONFIG', path)
  try {
    expect(await checks.cluster?.({ dataDir: join(home.path, 'data') })).toMatchObject({
      state: 'warn',
      detail: expect.stringMatching(/^the server http:\/\/127\.0\.0\.1:1 cannot be reached/),
      remedy: expect.stringContaining('corral up -d'),
    })
  } finally {
    vi.unstubAllEnvs()
  }
})

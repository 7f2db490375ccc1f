import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeEgressRefused } from '@corral/resources'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseEnvironmentFile } from './environment-file.js'
import { type EnvironmentGrants, fileEnvironmentGrants } from './environment-grants.js'
import { withPath } from './path-entries.js'
import { taskEnvironment } from './task-environment.js'
import { refusalEvent, refusedNames } from './watch-refusals.js'

describe('parseEnvironmentFile', () => {
  it.each([
    { when: 'it has nothing but its version', text: 'version: 1', request: { env: {}, path: [] } },
    {
      when: 'set-up is a list',
      text: 'version: 1\nsetup: [npm ci, npm run build]',
      request: { setup: 'npm ci\nnpm run build', egress: { setup: ['packages'], agent: [] } },
    },
    {
      when: 'variables are numbers and booleans',
      text: 'version: 1\nenv: {A: 1, B: true, C: x}',
      request: { env: { A: '1', B: 'true', C: 'x' }, egress: { setup: [], agent: [] } },
    },
    {
      when: 'it has checks',
      text: 'version: 1\nchecks: [{name: unit, run: npm test, timeout: 5m}, {name: lint, run: npm run lint}]',
      request: {
        checks: [
          { name: 'unit', command: 'npm test', timeout_seconds: 300 },
          { name: 'lint', command: 'npm run lint' },
        ],
      },
    },
    {
      when: 'set-up shall have no network',
      text: 'version: 1\nsetup: make\negress: {setup: []}',
      request: { egress: { setup: [], agent: [] } },
    },
  ])('when $when', ({ text, request }) => {
    expect(parseEnvironmentFile(text)).toMatchObject(request)
  })

  it.each([
    { when: 'it is empty', text: '', says: /the input is empty/ },
    { when: 'it is no YAML', text: 'version: 1\nsetup: [', says: /line \d+/ },
    { when: 'its version is another', text: 'version: 2', says: /version/ },
    { when: 'a field is misspelled', text: 'version: 1\nsetpu: x', says: /setpu/ },
    { when: 'a destination has no port', text: 'version: 1\negress: {setup: [a.example.com]}', says: /host:port/ },
    {
      when: 'two checks have one name',
      text: 'version: 1\nchecks: [{name: a, run: x}, {name: a, run: y}]',
      says: /two checks are named "a"/,
    },
    { when: 'a time has no unit', text: 'version: 1\nchecks: [{name: a, run: x, timeout: "5"}]', says: /such as 90s/ },
    { when: 'a time is too long', text: 'version: 1\nchecks: [{name: a, run: x, timeout: 7h}]', says: /6h at most/ },
    { when: 'it sets PATH', text: 'version: 1\nenv: {PATH: /x}', says: /PATH/ },
    { when: 'a path leads out', text: 'version: 1\npath: [../x]', says: /relative to its root/ },
    { when: 'a path is absolute', text: 'version: 1\npath: [/usr]', says: /relative to its root/ },
  ])('refuses it where $when', ({ text, says }) => {
    expect(() => parseEnvironmentFile(text)).toThrow(
      expect.objectContaining({ code: 'EnvironmentInvalid', message: expect.stringMatching(says) }),
    )
  })
})

const spec = { repository: { url: '/srv/repo one' }, prompt: 'p', agent: { name: 'command' } }
const asks = { text: 'version: 1\negress: {setup: [packages, a.example:443], agent: [b.example:80]}', commit: 'c' }

describe('taskEnvironment', () => {
  it.each([
    { when: 'the repository was granted all of it', more: {}, granted: ['a.example:443', 'b.example:80'] },
    { when: 'the task was granted it', more: { egress: ['a.example:443', 'B.example:80'] }, granted: [] },
    {
      when: 'the task was granted the part of set-up',
      more: { setupEgress: ['a.example:443'] },
      granted: ['b.example:80'],
    },
  ])('opens what the file asks for when $when', ({ more, granted }) => {
    expect(taskEnvironment({ spec: { ...spec, ...more } }, asks, granted).environment).toMatchObject({
      setupEgress: ['packages', 'a.example:443'],
      egress: ['b.example:80'],
    })
  })

  it.each([
    { when: 'nothing was granted', more: {}, granted: [], missing: 'a.example:443 b.example:80' },
    {
      when: 'what the agent wants was granted to set-up alone',
      more: { setupEgress: ['b.example:80'] },
      granted: ['a.example:443'],
      missing: 'b.example:80',
    },
  ])('refuses it with the command to run when $when', ({ more, granted, missing }) => {
    expect(() => taskEnvironment({ spec: { ...spec, ...more } }, asks, granted)).toThrow(
      expect.objectContaining({
        code: 'EnvironmentNotGranted',
        hint: expect.stringContaining(`corral env grant '/srv/repo one' ${missing}`),
      }),
    )
  })
})

describe('grants of environments', () => {
  let directory: string
  let grants: EnvironmentGrants
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'corral-grants-'))
    grants = fileEnvironmentGrants(join(directory, 'grants.json'))
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  it('are kept per repository, each once, until they are taken back', async () => {
    await grants.grant('/a', ['x.example:443'])
    await grants.grant('/a', ['X.example:443', 'y.example:80'])
    await grants.grant('/b', ['z.example:443'])
    expect(await grants.egressOf('/a')).toEqual(['x.example:443', 'y.example:80'])
    await grants.revoke('/a', ['x.example:443'])
    expect(await grants.egressOf('/a')).toEqual(['y.example:80'])
    await grants.revoke('/a', [])
    expect(await grants.list()).toEqual([{ repository: '/b', egress: ['z.example:443'] }])
  })

  it('a destination that is none is refused and changes nothing', async () => {
    await expect(grants.grant('/a', ['ok.example:1', 'nonsense'])).rejects.toMatchObject({
      code: 'Invalid',
      message: expect.stringContaining('nonsense'),
    })
    expect(await grants.list()).toEqual([])
  })
})

describe('refused names', () => {
  const refused = (reason: 'NotAllowed' | 'Unreachable', host: string) => ({
    ...{ host, reason, count: 3 },
    ...{ firstAt: '2030-01-01T00:00:00Z', lastAt: '2030-01-01T00:00:00Z' },
  })
  it('are those no rule covers, each told with the option that allows it', () => {
    const value = writeEgressRefused({
      refused: [refused('NotAllowed', 'cdn.example'), refused('Unreachable', 'granted.example')],
      otherHosts: 0,
      refusedConnections: 0,
    })
    const pod = { metadata: { annotations: { 'corral.dev/egress-refused': value } } }
    expect(refusedNames(pod)).toEqual(['cdn.example'])
    expect(refusalEvent('cdn.example')).toMatchObject({
      type: 'warning',
      code: 'EgressRefused',
      message: expect.stringContaining('--allow cdn.example:443'),
    })
  })
})

it('a command without directories for PATH is started as it is', () => {
  expect(withPath(['a', 'b'], '')).toEqual({ argv: ['a', 'b'], env: {} })
  expect(withPath(['a', 'b'], '/repo/bin').argv.slice(-2)).toEqual(['a', 'b'])
})

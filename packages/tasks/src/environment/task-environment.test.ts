import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeEgressRefused } from '@corral/resources'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseEnvironmentFile } from './environment-file.js'
import { type EnvironmentGrants, fileEnvironmentGrants } from './environment-grants.js'
import { withPath } from './path-entries.js'
import { setupSecrets } from './setup-secrets.js'
import { taskEnvironment } from './task-environment.js'
import { refusalEvent, refusedHint, refusedNames } from './watch-refusals.js'

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
    { when: 'a field is misspelled', text: 'version: 1\nsetpu: x', says: /no field "setpu"; did you mean "setup"\?$/ },
    { when: 'one has a dash', text: 'version: 1\nset-up: x', says: /"set-up"; did you mean "setup"\?/ },
    { when: 'one of a check is', text: 'version: 1\nchecks: [{name: a, run: b, timeuot: 1m}]', says: /mean "timeout"/ },
    { when: 'one of a part is', text: 'version: 1\nparts: {web: {path: w, setups: x}}', says: /parts.web: .*"setup"/ },
    { when: 'a field is like none', text: 'version: 1\nx: 1\nto: 2', says: /no field "x", "to"$/ },
    {
      when: 'set-up is a number',
      text: 'version: 1\nsetup: 5',
      says: /setup: must be a text or a list, not a number$/,
    },
    { when: 'a line of it is', text: 'version: 1\nsetup: [a, 5]', says: /setup\[1\]: must be a text, not a number$/ },
    { when: 'set-up has a NUL', text: 'version: 1\nsetup: "a\\0b"', says: /setup: must not contain a NUL character$/ },
    { when: 'a variable has one', text: 'version: 1\nenv: {A: "a\\0b"}', says: /env.A: must not contain a NUL/ },
    { when: 'a time is none', text: 'version: 1\nchecks: [{name: a, run: b, timeout: soon}]', says: /or 1h$/ },
    { when: 'a destination has no port', text: 'version: 1\negress: {setup: [a.example.com]}', says: /host:port/ },
    {
      when: 'two checks have one name',
      text: 'version: 1\nchecks: [{name: a, run: x}, {name: a, run: y}]',
      says: /two checks are named "a"/,
    },
    { when: 'a time has no unit', text: 'version: 1\nchecks: [{name: a, run: x, timeout: "5"}]', says: /such as 90s/ },
    { when: 'a time is too long', text: 'version: 1\nchecks: [{name: a, run: x, timeout: 7h}]', says: /6h at most/ },
    { when: 'it sets PATH', text: 'version: 1\nenv: {PATH: /x}', says: /PATH/ },
    {
      when: 'a version is a number with a point',
      text: 'version: 1\ntools: {python: 3.10}',
      says: /tools\.python: .*quotes/,
    },
    { when: 'a version is a range', text: 'version: 1\ntools: {node: ">=20"}', says: /tools\.node: must be a version/ },
    {
      when: 'a command has a colon that YAML reads as an object',
      text: 'version: 1\nsetup:\n  - echo a: b',
      says: /setup\[0\]: must be a text, not an object; YAML takes a command with ": " in it .* quotes/,
    },
    {
      when: 'a key is a pattern',
      text: 'version: 1\nkey: ["**/*.lock"]',
      says: /key\[0\]: .*patterns are not followed/,
    },
    {
      when: 'a key lies outside',
      text: 'version: 1\nkey: [/etc/passwd]',
      says: /key\[0\]: must be a file or directory of the repository/,
    },
    { when: 'a tool is unknown', text: 'version: 1\ntools: {ruby: "3"}', says: /tools: there is no field "ruby"/ },
    {
      when: 'a port is too large',
      text: 'version: 1\nstart: [{run: x, ready: {port: 70000}}]',
      says: /start\[0\]\.ready\.port/,
    },
    {
      when: 'a service has no command',
      text: 'version: 1\nservices: [{name: a}]',
      says: /services\[0\]: must have either/,
    },
    {
      when: 'a command has no port',
      text: 'version: 1\nservices: [{name: a, run: x}]',
      says: /services\[0\]\.ready: is required/,
    },
    {
      when: 'a service is unknown',
      text: 'version: 1\nservices: [{name: a, use: redis}]',
      says: /services\[0\]\.use: must be postgres/,
    },
    {
      when: 'two services have one name',
      text: 'version: 1\nservices: [{name: a, use: postgres}, {name: a, use: postgres}]',
      says: /services\[1\]\.name: two services/,
    },
    {
      when: 'a secret is for the agent',
      text: 'version: 1\nsecrets: [{name: a, for: agent}]',
      says: /secrets\[0\]\.for: must be setup/,
    },
    { when: 'a secret is to be PATH', text: 'version: 1\nsecrets: [{name: a, env: PATH}]', says: /secrets\[0\]\.env/ },
    { when: 'a part leads out', text: 'version: 1\nparts: {web: {path: ../x}}', says: /parts\.web\.path/ },
    {
      when: 'a part has a part’s field misspelled',
      text: 'version: 1\nparts: {web: {path: web, setpu: x}}',
      says: /parts\.web: there is no field "setpu"/,
    },
    {
      when: 'it asks for less than a sandbox needs',
      text: 'version: 1\nresources: {memory: 8}',
      says: /resources\.memory: must be an amount such as 8Gi, at least 256Mi/,
    },
    {
      when: 'it asks for an unknown amount',
      text: 'version: 1\nresources: {cpu: many}',
      says: /resources\.cpu: must be cores/,
    },
    {
      when: 'it asks for a path as image',
      text: 'version: 1\nimage: ../x',
      says: /image: must be the name of an image/,
    },
    { when: 'a path leads out', text: 'version: 1\npath: [../x]', says: /relative to its root/ },
    {
      when: 'a path begins at home',
      text: 'version: 1\npath: [~/go/bin]',
      says: /line 2.*path\[0\].*no shell reads it/,
    },
    { when: 'a path has a variable', text: 'version: 1\npath: ["$HOME/bin"]', says: /no shell reads it/ },
    { when: 'a path is absolute', text: 'version: 1\npath: [/usr]', says: /relative to its root/ },
  ])('refuses it where $when', ({ text, says }) => {
    expect(() => parseEnvironmentFile(text)).toThrow(
      expect.objectContaining({ code: 'EnvironmentInvalid', message: expect.stringMatching(says) }),
    )
  })

  const aliases = (count: number): string =>
    `version: 1\nenv:\n  A0: &value ${'x'.repeat(1_000)}\n${Array.from({ length: count }, (_, index) => `  A${index + 1}: *value\n`).join('')}`

  it('an alias saves some repetition', () => {
    expect(Object.keys(parseEnvironmentFile(aliases(50)).env)).toHaveLength(51)
  })

  it.each([
    { what: 'one long value under thousands of names', text: aliases(4_000) },
    {
      what: 'lists of lists of lists',
      text: `version: 1\na: &a [x, x, x, x, x, x, x, x]\n${[...'bcdefghijk'].map((name, index) => `${name}: &${name} [${Array(8).fill(`*${'abcdefghij'[index]}`).join(', ')}]`).join('\n')}`,
    },
  ])('aliases do not make a small file stand for gigabytes: $what', ({ text }) => {
    expect(text.length).toBeLessThan(65_536)
    expect(() => parseEnvironmentFile(text)).toThrow(
      expect.objectContaining({
        code: 'EnvironmentInvalid',
        message: expect.stringContaining('more than 262144 letters once what its aliases stand for is written out'),
      }),
    )
  })
})

const spec = { repository: { url: '/srv/repo one' }, prompt: 'p', agent: { name: 'command' } }
const fileOf = (text: string) => ({
  request: parseEnvironmentFile(`version: 1\n${text}`),
  source: 'the file',
  commit: 'c',
})
const asks = fileOf('egress: {setup: [packages, a.example:443], agent: [b.example:80]}')

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
    expect(
      taskEnvironment({ spec: { ...spec, ...more } }, asks, { egress: granted, secrets: [] }).environment,
    ).toMatchObject({
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
    expect(() => taskEnvironment({ spec: { ...spec, ...more } }, asks, { egress: granted, secrets: [] })).toThrow(
      expect.objectContaining({
        code: 'EnvironmentNotGranted',
        hint: expect.stringContaining(`corral env grant '/srv/repo one' ${missing}`),
      }),
    )
  })
})

it('a secret that was not granted is refused with the command to run, beside what else is missing', () => {
  const file = fileOf('secrets: [{name: npm-private}]\negress: {agent: [a.example:443]}')
  expect(() => taskEnvironment({ spec }, file, { egress: [], secrets: ['other'] })).toThrow(
    expect.objectContaining({
      code: 'EnvironmentNotGranted',
      hint: expect.stringContaining("corral env grant '/srv/repo one' a.example:443 --secret npm-private"),
    }),
  )
  const { environment } = taskEnvironment({ spec: { ...spec, egress: ['a.example:443'] } }, file, {
    egress: [],
    secrets: ['npm-private'],
  })
  expect(environment.secrets).toEqual([{ name: 'npm-private', env: 'NPM_PRIVATE' }])
})

describe('limits of the sandbox', () => {
  const file = fileOf('resources: {cpu: 1, memory: 8Gi, disk: 5Gi}')
  const template = { memory: '4Gi', disk: '10Gi' }
  it.each<{ when: string; granted?: Record<string, string>; limits?: Record<string, string>; missing?: string }>([
    { when: 'the template has less and nothing was granted', missing: '--memory 8Gi' },
    { when: 'less was granted', granted: { memory: '6Gi', disk: '20Gi' }, missing: '--memory 8Gi' },
    { when: 'as much was granted', granted: { memory: '8192Mi' } },
    { when: 'the template has as much', limits: { ...template, memory: '16Gi' } },
    { when: 'the template has fewer cores', limits: { ...template, cpu: '500m', memory: '8Gi' }, missing: '--cpu 1' },
  ])('when $when: $missing is missing', ({ granted, limits = template, missing }) => {
    const asked = () => taskEnvironment({ spec }, file, { egress: [], secrets: [], resources: granted }, limits)
    if (missing)
      expect(asked).toThrow(
        expect.objectContaining({
          code: 'EnvironmentNotGranted',
          hint: expect.stringMatching(new RegExp(`corral env grant '/srv/repo one' ${missing}$`)),
        }),
      )
    else expect(asked().environment.resources).toEqual({ cpu: '1', memory: '8Gi', disk: '5Gi' })
  })
})

it('an image that was not granted is refused with the command to run', () => {
  const file = fileOf('image: debian:12')
  const grants = { egress: [], secrets: [] }
  expect(() => taskEnvironment({ spec }, file, { ...grants, images: ['debian:13'] })).toThrow(
    expect.objectContaining({
      code: 'EnvironmentNotGranted',
      hint: expect.stringMatching(/corral env grant '\/srv\/repo one' --image debian:12$/),
    }),
  )
  expect(taskEnvironment({ spec }, file, { ...grants, images: ['debian:12'] }).environment.image).toBe('debian:12')
})

it('a part has its own commands in its directory and what the root has beside them', () => {
  const text = [
    'version: 1',
    'setup: make',
    'env: {A: 1, B: 1}',
    'tools: {node: 22, go: "1.25"}',
    'checks: [{name: all, run: make check}]',
    'parts: {web: {path: "it\'s", setup: npm ci, env: {B: 2}, tools: {node: 20}}}',
  ].join('\n')
  expect(parseEnvironmentFile(text, 'f', 'web')).toMatchObject({
    setup: "cd -- 'it'\\''s'\nnpm ci",
    env: { A: '1', B: '2' },
    tools: { node: '20', go: '1.25' },
    checks: [{ command: 'make check' }],
    directory: "it's",
  })
  expect(parseEnvironmentFile(text)).toMatchObject({ setup: 'make', tools: { node: '22' }, parts: ['web'] })
  expect(() => parseEnvironmentFile(text, 'f', 'api')).toThrow(
    expect.objectContaining({ message: 'f has no part "api"', hint: 'Its parts: web.' }),
  )
})

it('secrets are hidden however they are printed, and one that is not set is named', async () => {
  const task = { status: { environment: { commit: 'c', secrets: [{ name: 'key', env: 'KEY' }] } } }
  const { env, redact } = await setupSecrets(task, async () => 'line one&\nline two')
  expect(env).toEqual({ KEY: 'line one&\nline two' })
  const printed = [
    'a line one&',
    'line two!',
    Buffer.from('line one&\nline two').toString('base64'),
    'line%20one%26%0Aline%20two',
  ]
  expect(printed.map(redact)).toEqual(['a ***', '***!', '***', '***'])
  await expect(setupSecrets(task, async () => undefined)).rejects.toMatchObject({ code: 'SecretMissing' })
})

describe('grants of environments', () => {
  let directory: string
  let grants: EnvironmentGrants
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'corral-grants-'))
    grants = fileEnvironmentGrants(join(directory, 'grants.json'))
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  const egressOf = async (repository: string) => (await grants.of(repository)).egress
  const words = (egress: string[], secrets: string[] = []) => ({ egress, secrets })

  it('are kept per repository, each once, until they are taken back', async () => {
    await grants.grant('/a', words(['x.example:443']))
    await grants.grant('/a', words(['X.example:443', 'y.example:80'], ['npm']))
    await grants.grant('/b', words(['z.example:443']))
    expect(await egressOf('/a')).toEqual(['x.example:443', 'y.example:80'])
    await grants.revoke('/a', words(['x.example:443']))
    expect(await grants.of('/a')).toEqual({ repository: '/a', egress: ['y.example:80'], secrets: ['npm'] })
    await grants.revoke('/a', words([], ['npm']))
    expect(await grants.of('/a')).toMatchObject({ egress: ['y.example:80'], secrets: [] })
    await grants.revoke('/a', words([]))
    expect(await grants.list()).toEqual([{ repository: '/b', egress: ['z.example:443'], secrets: [] }])
  })

  it('a file from before there were secrets is read', async () => {
    await writeFile(join(directory, 'grants.json'), '{"grants":[{"repository":"/a","egress":["x.example:443"]}]}')
    expect(await grants.of('/a')).toEqual({ repository: '/a', egress: ['x.example:443'], secrets: [] })
  })

  it.each([
    { what: 'a destination that is none', more: words(['ok.example:1', 'nonsense']), says: 'nonsense' },
    { what: 'a name that is none', more: words(['ok.example:1'], ['No Name']), says: 'No Name' },
    { what: 'a key of a model', more: words([], ['anthropic']), says: 'for the platform alone' },
    { what: 'a key of the platform', more: words([], ['broker-token-secret']), says: 'for the platform alone' },
  ])('$what is refused and changes nothing', async ({ more, says }) => {
    await expect(grants.grant('/a', more)).rejects.toMatchObject({
      code: 'Invalid',
      message: expect.stringContaining(says),
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
    expect(refusedNames(pod).map(({ host }) => host)).toEqual(['cdn.example'])
    const task = { spec, status: { environment: { commit: 'c', source: 'f' } } }
    expect(refusalEvent({ host: 'cdn.example', process: 'node install.mjs' }, task)).toMatchObject({
      message: expect.stringMatching(
        /cdn\.example, asked for by node install\.mjs; .*corral env grant '\/srv\/repo one' cdn\.example:443/,
      ),
    })
    expect(refusalEvent({ host: 'cdn.example' }, { spec })).toMatchObject({
      type: 'warning',
      code: 'EgressRefused',
      message: expect.stringContaining('--allow cdn.example:443'),
    })
  })

  it.each([
    { when: 'nothing was refused', hosts: [], source: 'f', hint: undefined },
    {
      when: 'a file of the repository counts',
      hosts: ['npm.example', 'cdn.example'],
      source: 'f',
      hint: "It asked for npm.example:443, cdn.example:443, which it may not reach: name what it needs under egress.setup of .corral/environment.yaml, then: `corral env grant '/srv/repo one' npm.example:443 cdn.example:443`.",
    },
    {
      when: 'the task brought the command',
      hosts: ['npm.example'],
      hint: 'It asked for npm.example:443, which it may not reach: allow what it needs: `--allow-setup npm.example:443`.',
    },
  ])('of a set-up that failed when $when', ({ hosts, source, hint }) => {
    const environment = { commit: 'c', ...(source ? { source } : {}) }
    expect(refusedHint(hosts, { spec, status: { environment } })).toBe(hint)
  })
})

it('a command without directories for PATH is started as it is', () => {
  expect(withPath(['a', 'b'], '')).toEqual({ argv: ['a', 'b'], env: {} })
  expect(withPath(['a', 'b'], '/repo/bin').argv.slice(-2)).toEqual(['a', 'b'])
})

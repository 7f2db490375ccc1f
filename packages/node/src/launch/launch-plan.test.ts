import type { Container, Pod } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import type { ReadyVolume } from './container-mounts.js'
import { hostsFile, type LaunchInput, launchPlan } from './launch-plan.js'

const bytes = (text: string): Uint8Array => Buffer.from(text)
const base: Container = { name: 'c', image: 'any', command: ['run'] }

function input(
  container: Partial<Container>,
  rest: Partial<LaunchInput> & { spec?: Partial<Pod['spec']> } = {},
): LaunchInput {
  const own = { ...base, ...container }
  const { spec, ...others } = rest
  return {
    pod: {
      metadata: { name: 'p', namespace: 'ns', uid: 'u', labels: { app: 'web' }, annotations: { note: 'hi' } },
      spec: { containers: [own], ...spec },
    },
    container: own,
    attempt: 0,
    image: undefined,
    toolchain: { mounts: [{ source: '/usr', target: '/usr', readOnly: true }], path: ['/opt/node/bin'] },
    paths: { directory: '/d', home: '/d/home', tmp: '/d/tmp', logs: '/d/logs', hosts: '/d/hosts' },
    volumes: new Map(),
    sources: {
      configMaps: new Map([['settings', { color: bytes('blue'), 'bad=name': bytes('x') }]]),
      secrets: new Map([['keys', { token: bytes('s3cret') }]]),
    },
    facts: {
      podIP: '100.64.0.2',
      hostIP: '127.0.0.1',
      nodeName: 'n',
      allocatable: { cpuMillis: 4000, memoryBytes: 1024 ** 3, ephemeralStorageBytes: 10 },
    },
    ...others,
  }
}

const planOf = (given: LaunchInput) => launchPlan(given).plan

describe('the command', () => {
  it.each<{ when: string; given: LaunchInput; argv: string[] }>([
    { when: 'only a command is given', given: input({ command: ['a', 'b'] }), argv: ['a', 'b'] },
    { when: 'arguments follow the command', given: input({ command: ['a'], args: ['b'] }), argv: ['a', 'b'] },
    {
      when: 'the image brings one',
      given: input({ command: [] }, { image: { argv: ['daemon', '-x'] } }),
      argv: ['daemon', '-x'],
    },
    {
      when: 'arguments go to the image’s own',
      given: input({ command: [], args: ['y'] }, { image: { argv: ['daemon'] } }),
      argv: ['daemon', 'y'],
    },
    { when: 'a command replaces the image’s', given: input({}, { image: { argv: ['daemon'] } }), argv: ['run'] },
    {
      when: 'variables are named',
      given: input({ command: ['echo', '$(A)', '$$(A)', '$(NONE)', '$A'], env: [{ name: 'A', value: '1' }] }),
      argv: ['echo', '1', '$(A)', '$(NONE)', '$A'],
    },
  ])('when $when', ({ given, argv }) => {
    expect(planOf(given).argv).toEqual(argv)
  })

  it('is missed on an image nobody knows', () => {
    expect(() => planOf(input({ command: [], image: 'nginx' }))).toThrow(/no command specified for image "nginx"/)
  })
})

describe('the environment', () => {
  it.each<{ when: string; given: LaunchInput; env: Record<string, string | undefined> }>([
    {
      when: 'nothing is set',
      given: input({}),
      env: {
        HOME: '/home/agent',
        HOSTNAME: 'p',
        LANG: 'C.UTF-8',
        PATH: '/opt/node/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin:/home/agent/.local/bin',
      },
    },
    {
      when: 'the image brings some and the container overrides',
      given: input({ env: [{ name: 'B', value: '2' }] }, { image: { env: { A: '1', B: '1' } } }),
      env: { A: '1', B: '2' },
    },
    {
      when: 'one variable refers to an earlier one',
      given: input({
        env: [
          { name: 'A', value: '1' },
          { name: 'B', value: '$(A)$(C)' },
          { name: 'C', value: '3' },
        ],
      }),
      env: { B: '1$(C)' },
    },
    {
      when: 'a whole ConfigMap is taken with a prefix',
      given: input({ envFrom: [{ prefix: 'P_', configMapRef: { name: 'settings' } }] }),
      env: { P_color: 'blue', 'P_bad=name': undefined },
    },
    {
      when: 'a key of a Secret is named',
      given: input({ env: [{ name: 'T', valueFrom: { secretKeyRef: { name: 'keys', key: 'token' } } }] }),
      env: { T: 's3cret' },
    },
    {
      when: 'an optional key is missing',
      given: input({
        env: [{ name: 'T', valueFrom: { secretKeyRef: { name: 'keys', key: 'none', optional: true } } }],
      }),
      env: { T: undefined },
    },
    {
      when: 'an optional object is missing',
      given: input({ envFrom: [{ secretRef: { name: 'none', optional: true } }] }),
      env: {},
    },
    {
      when: 'the pod is asked about itself',
      given: input({
        env: [
          { name: 'NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          { name: 'APP', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
          { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
        ],
      }),
      env: { NAME: 'p', APP: 'web', IP: '100.64.0.2' },
    },
    {
      when: 'limits are asked for',
      given: input({
        resources: { limits: { cpu: '250m' }, requests: { memory: '64Mi' } },
        env: [
          { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } },
          { name: 'CPUS', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } },
          { name: 'MEM', valueFrom: { resourceFieldRef: { resource: 'limits.memory', divisor: '1Mi' } } },
          { name: 'REQ', valueFrom: { resourceFieldRef: { resource: 'requests.memory', divisor: '1Mi' } } },
        ],
      }),
      env: { CPU: '250', CPUS: '1', MEM: '1024', REQ: '64' },
    },
  ])('when $when', ({ given, env }) => {
    const actual = planOf(given).env
    for (const [name, value] of Object.entries(env)) expect(actual[name], name).toBe(value)
  })

  it.each([
    {
      when: 'a ConfigMap is missing',
      container: { envFrom: [{ configMapRef: { name: 'none' } }] },
      says: 'configmap "none" not found',
    },
    {
      when: 'a Secret is missing',
      container: { env: [{ name: 'T', valueFrom: { secretKeyRef: { name: 'none', key: 'k' } } }] },
      says: 'secret "none" not found',
    },
    {
      when: 'a key is missing',
      container: { env: [{ name: 'T', valueFrom: { configMapKeyRef: { name: 'settings', key: 'k' } } }] },
      says: "couldn't find key k in ConfigMap ns/settings",
    },
    {
      when: 'a field does not exist',
      container: { env: [{ name: 'T', valueFrom: { fieldRef: { fieldPath: 'spec.secret' } } }] },
      says: 'unsupported fieldPath: spec.secret',
    },
  ])('says why it cannot be made when $when', ({ container, says }) => {
    expect(() => planOf(input(container))).toThrow(
      expect.objectContaining({ code: 'CreateContainerConfigError', message: says }),
    )
  })
})

describe('the mounts', () => {
  const volumes = new Map<string, ReadyVolume>([
    ['data', { type: 'directory', path: '/v/data', readOnly: false }],
    ['conf', { type: 'directory', path: '/v/conf', readOnly: true }],
    ['ram', { type: 'memory', sizeBytes: 1024 }],
  ])

  it('put the host’s tools, HOME, /tmp and the message file beside the container’s volumes', () => {
    const { mounts, tmpfs } = planOf(
      input(
        {
          volumeMounts: [
            { name: 'data', mountPath: '/data/deep' },
            { name: 'conf', mountPath: '/conf' },
            { name: 'ram', mountPath: '/ram/' },
          ],
        },
        { volumes },
      ),
    )
    expect(mounts).toEqual([
      { source: '/usr', target: '/usr', readOnly: true },
      { source: '/d/home', target: '/home/agent', readOnly: false },
      { source: '/d/tmp', target: '/tmp', readOnly: false },
      { source: '/d/termination/c.0', target: '/dev/termination-log', readOnly: false },
      { source: '/v/conf', target: '/conf', readOnly: true },
      { source: '/v/data', target: '/data/deep', readOnly: false },
    ])
    expect(tmpfs).toEqual([{ target: '/ram', sizeBytes: 1024 }])
  })

  it('let a volume take the place of /tmp', () => {
    const { mounts } = planOf(
      input({ volumeMounts: [{ name: 'data', mountPath: '/tmp', readOnly: true }] }, { volumes }),
    )
    expect(mounts.filter((mount) => mount.target === '/tmp')).toEqual([
      { source: '/v/data', target: '/tmp', readOnly: true },
    ])
  })

  it('follow a sub-path, expanded where it is an expression', () => {
    const { plan, subPaths } = launchPlan(
      input(
        {
          env: [{ name: 'N', value: 'x' }],
          volumeMounts: [{ name: 'data', mountPath: '/a', subPathExpr: 'pods/$(N)' }],
        },
        { volumes },
      ),
    )
    expect(plan.mounts.at(-1)).toEqual({ source: '/v/data/pods/x', target: '/a', readOnly: false })
    expect(subPaths).toEqual([{ root: '/v/data', relative: 'pods/x', source: '/v/data/pods/x', readOnly: false }])
  })

  it.each(['../other', '/etc', 'a/../../b'])('refuse the sub-path %s', (subPath) => {
    expect(() => planOf(input({ volumeMounts: [{ name: 'data', mountPath: '/a', subPath }] }, { volumes }))).toThrow(
      /leaves the volume/,
    )
  })

  it.each([
    { field: 'mountPath', mount: { mountPath: '/a\0b--bind\0b/\0b/host' } },
    { field: 'subPath', mount: { mountPath: '/a', subPath: 'b\0c' } },
    { field: 'subPathExpr', mount: { mountPath: '/a', subPathExpr: 'b\0c' } },
  ])('refuse a NUL in $field', ({ field, mount }) => {
    expect(() => planOf(input({ volumeMounts: [{ name: 'data', ...mount }] }, { volumes }))).toThrow(
      `${field} of volume "data" must not contain NUL`,
    )
  })

  it('bring the pod’s own hosts where it has aliases', () => {
    const spec = { hostAliases: [{ ip: '10.0.0.1', hostnames: ['db', 'db.local'] }] }
    const given = input({}, { spec })
    expect(planOf(given).mounts).toContainEqual({ source: '/d/hosts', target: '/etc/hosts', readOnly: true })
    expect(hostsFile(given.pod, '100.64.0.2')).toContain('100.64.0.2 p\n10.0.0.1 db db.local\n')
  })
})

describe('who the container is, and what it may use', () => {
  it.each<{ when: string; given: LaunchInput; user: [number, number] }>([
    { when: 'nobody says', given: input({}), user: [1000, 1000] },
    {
      when: 'the pod says',
      given: input({}, { spec: { securityContext: { runAsUser: 7, runAsGroup: 8 } } }),
      user: [7, 8],
    },
    {
      when: 'the container says otherwise',
      given: input({ securityContext: { runAsUser: 9 } }, { spec: { securityContext: { runAsUser: 7 } } }),
      user: [9, 1000],
    },
    { when: 'root is asked for', given: input({ securityContext: { runAsUser: 0 } }), user: [0, 0] },
  ])('when $when', ({ given, user }) => {
    const { uid, gid } = planOf(given)
    expect([uid, gid]).toEqual(user)
  })

  it('is never root where root is forbidden', () => {
    const given = input({ securityContext: { runAsUser: 0 } }, { spec: { securityContext: { runAsNonRoot: true } } })
    expect(() => planOf(given)).toThrow(/runAsUser breaks non-root policy \(pod: "p_ns\(u\)", container: c\)/)
  })

  it('S0-C17: carries the limits of the proof of concept', () => {
    const { limits } = planOf(input({ resources: { limits: { memory: '128Mi', cpu: '200m' } } }, { pidsLimit: 100 }))
    expect(limits).toEqual({ memoryBytes: 128 * 1024 * 1024, cpuMillis: 200, pids: 100 })
  })

  it('writes each run to a log of its own', () => {
    expect(planOf({ ...input({}), attempt: 3 })).toMatchObject({
      attempt: 3,
      logPath: '/d/logs/c/3.log',
      workingDir: '/home/agent',
    })
  })
})

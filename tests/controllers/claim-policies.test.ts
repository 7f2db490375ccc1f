import { isNotFound, type SandboxClaim, SandboxClaims, Sandboxes, type SandboxTemplate } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { readSandbox, ready, started } from './cold-claims.js'
import { ref } from './objects.js'

describe('metadata the claim wants on its Pod', () => {
  it.each([
    { what: 'a label without a domain', labels: { plain: '1' } },
    { what: 'a value of 64 characters', labels: { 'sandbox.users.io/x': 'a'.repeat(64) } },
    { what: 'a bad value', labels: { 'sandbox.users.io/x': 'invalid@value' } },
    { what: 'a bad key', labels: { 'invalid@key': '1' } },
    { what: 'a system domain', labels: { 'kubernetes.io/x': '1' } },
    { what: "the router's label", labels: { app: 'sandbox-router' } },
    { what: 'a system annotation', annotations: { 'foo.k8s.io/x': '1' } },
  ])('scenario 86: $what is refused', async ({ what: _, ...additionalPodMetadata }) => {
    await using passes = await started({ additionalPodMetadata: additionalPodMetadata as never })
    expect(await passes.claim('c')).toEqual({})
    const found = await ready(passes)
    expect(found?.reason).toBe('InvalidMetadata')
    expect(found?.message).toMatch(/^invalid additionalPodMetadata: failed to validate (label|annotation) "/)
    expect(await passes.client.find(Sandboxes, ref('c'))).toBeUndefined()
  })

  it('scenario 86: a value that is too long is counted in bytes, as by the library upstream is built with', async () => {
    await using passes = await started({ additionalPodMetadata: { labels: { 'sandbox.users.io/x': 'a'.repeat(64) } } })
    await passes.claim('c')
    expect((await ready(passes))?.message).toMatch(/must be no more than 63 bytes$/)
  })

  it('scenario 87: what is allowed reaches the pod template', async () => {
    const additionalPodMetadata = {
      labels: { 'sandbox.users.io/team': 'a', 'sub.sandbox.users.io/x': 'b', 'custom.company.com/x': 'c' },
      annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false', plain: '1' },
    }
    await using passes = await started({ additionalPodMetadata }, {}, (options) => {
      options.claim.labelDomains = ['sandbox.users.io', 'custom.company.com']
    })
    await passes.claim('c')
    const { metadata } = (await readSandbox(passes)).spec.podTemplate
    expect(metadata?.labels).toMatchObject(additionalPodMetadata.labels)
    expect(metadata?.annotations).toEqual(additionalPodMetadata.annotations)
  })

  it('a key that the template sets otherwise is a conflict', async () => {
    const podTemplate = {
      metadata: { labels: { 'sandbox.users.io/x': 'a' } },
      spec: { containers: [{ name: 'm', image: 'x' }] },
    }
    await using passes = await started(
      { additionalPodMetadata: { labels: { 'sandbox.users.io/x': 'b' } } },
      { podTemplate },
    )
    const text =
      'metadata override conflict: label "sandbox.users.io/x" is defined in template with value "a", but claim requests "b"'
    await expect(passes.claim('c')).rejects.toThrow(text)
    expect(await ready(passes)).toMatchObject({ reason: 'ReconcilerError', message: `Error seen: ${text}` })
  })
})

describe('variables', () => {
  const containers = [
    {
      name: 'first',
      image: 'x',
      env: [
        { name: 'A', value: 'template' },
        { name: 'B', value: 'b' },
      ],
    },
    { name: 'second', image: 'x', envFrom: [{ configMapRef: { name: 'm' } }] },
  ]
  const podTemplate = { spec: { containers, initContainers: [{ name: 'init', image: 'x' }] } }
  type Env = NonNullable<SandboxClaim['spec']['env']>
  type Policy = SandboxTemplate['spec']['envVarsInjectionPolicy']
  const run = async (
    env: Env,
    policy: Policy,
  ): Promise<{ outcome: unknown; env?: unknown; reason?: string | undefined; message?: string | undefined }> => {
    await using passes = await started({ env }, { podTemplate, ...(policy && { envVarsInjectionPolicy: policy }) })
    const outcome = await passes.claim('c').then(
      () => 'ok',
      () => 'error',
    )
    const spec = (await passes.client.find(Sandboxes, ref('c')))?.spec.podTemplate.spec
    const found = await ready(passes)
    const all = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]
    return {
      outcome,
      env: spec && Object.fromEntries(all.map((c) => [c.name, c.env ?? []])),
      reason: found?.reason,
      message: found?.message,
    }
  }

  it('scenario 88: Overrides appends new ones and replaces old ones in place', async () => {
    const { env } = await run(
      [
        { name: 'A', value: 'claim' },
        { name: 'C', value: 'c' },
      ],
      'Overrides',
    )
    expect(env).toMatchObject({
      first: [
        { name: 'A', value: 'claim' },
        { name: 'B', value: 'b' },
        { name: 'C', value: 'c' },
      ],
    })
  })

  it('scenario 89: Allowed appends, and refuses to override', async () => {
    expect((await run([{ name: 'C', value: 'c' }], 'Allowed')).env).toMatchObject({
      first: [{ name: 'A' }, { name: 'B' }, { name: 'C' }],
    })
    const refused = await run([{ name: 'A', value: 'x' }], 'Allowed')
    expect(refused).toMatchObject({ outcome: 'error', reason: 'ReconcilerError' })
    expect(refused.message).toContain(
      'environment variable override is not allowed by the template policy for variable "A"',
    )
  })

  it.each<Policy>(['Disallowed', undefined])('scenario 90: %s rejects them', async (policy) => {
    expect(await run([{ name: 'A', value: 'x' }], policy)).toMatchObject({
      outcome: 'ok',
      reason: 'EnvVarsInjectionRejected',
      message:
        'environment variable injection rejected: environment variable injection is not allowed by the template policy',
    })
  })

  it('scenario 91: Allowed stays away from containers with envFrom that are targeted, and only from those', async () => {
    const refused = await run([{ name: 'X', value: '1', containerName: 'second' }], 'Allowed')
    expect(refused).toMatchObject({ outcome: 'ok', reason: 'EnvVarsInjectionRejected' })
    expect(refused.message).toContain('container "second" uses EnvFrom sources')
    expect((await run([{ name: 'X', value: '1', containerName: 'first' }], 'Allowed')).env).toBeDefined()
    expect((await run([], 'Allowed')).env).toBeDefined()
  })

  it('scenario 92: a named container gets its own, an unknown one is an error', async () => {
    const { env } = await run([{ name: 'X', value: '1', containerName: 'init' }], 'Allowed')
    expect(env).toMatchObject({ init: [{ name: 'X', value: '1' }], second: [] })
    const unknown = await run([{ name: 'X', value: '1', containerName: 'nope' }], 'Allowed')
    expect(unknown).toMatchObject({ outcome: 'error', reason: 'ReconcilerError' })
    expect(unknown.message).toContain('target container "nope" not found in template for environment variable "X"')
  })
})

describe('volumes', () => {
  const volume = (name: string, storage = '1Gi') => ({
    metadata: { name },
    spec: { resources: { requests: { storage } } },
  })
  type Policy = SandboxTemplate['spec']['volumeClaimTemplatesPolicy']
  const run = async (
    own: string[],
    wanted: string[],
    policy: Policy,
  ): Promise<{
    names?: string[] | undefined
    reason?: string | undefined
    message?: string | undefined
    sizes?: unknown
  }> => {
    const templateSpec = {
      volumeClaimTemplates: own.map((name) => volume(name)),
      ...(policy && { volumeClaimTemplatesPolicy: policy }),
    }
    await using passes = await started(
      { volumeClaimTemplates: wanted.map((name) => volume(name, '2Gi')) },
      templateSpec,
    )
    expect(await passes.claim('c')).toEqual({})
    const volumes = (await passes.client.find(Sandboxes, ref('c')))?.spec.volumeClaimTemplates
    const found = await ready(passes)
    return {
      names: volumes?.map(({ metadata }) => metadata?.name ?? ''),
      sizes: volumes?.map(({ spec }) => spec.resources?.requests?.storage),
      reason: found?.reason,
      message: found?.message,
    }
  }

  it.each<{ when: string; own: string[]; wanted: string[]; policy: Policy; names?: string[]; says?: string }>([
    {
      when: 'Disallowed',
      own: ['a'],
      wanted: ['b'],
      policy: 'Disallowed',
      says: 'failed to merge volume claim templates: volume claim templates are disallowed by the template',
    },
    {
      when: 'unset',
      own: ['a'],
      wanted: ['b'],
      policy: undefined,
      says: 'failed to merge volume claim templates: volume claim templates are disallowed by the template',
    },
    {
      when: 'Allowed, with a clash',
      own: ['a'],
      wanted: ['a'],
      policy: 'Allowed',
      says: 'failed to merge volume claim templates: overriding volume claim templates is forbidden by the template: cannot override template volume "a"',
    },
    { when: 'Allowed, with a new one', own: ['a'], wanted: ['b'], policy: 'Allowed', names: ['a', 'b'] },
    { when: 'Overrides, with the same name', own: ['a', 'b'], wanted: ['a'], policy: 'Overrides', names: ['a', 'b'] },
    { when: 'Overrides, with a new one', own: ['a'], wanted: ['b', 'a'], policy: 'Overrides', names: ['a', 'b'] },
  ])('scenario 94: $when', async ({ own, wanted, policy, names, says }) => {
    const found = await run(own, wanted, policy)
    expect(found.names).toEqual(names)
    if (says) expect(found).toMatchObject({ reason: 'VolumeClaimTemplatesError', message: says })
  })

  it.each([
    {
      when: 'the claim repeats a name',
      own: ['a'],
      wanted: ['b', 'b'],
      says: 'failed to merge volume claim templates: claim: invalid volume claim templates: duplicate name "b"',
    },
    {
      when: 'the claim leaves one empty',
      own: ['a'],
      wanted: [''],
      says: 'failed to merge volume claim templates: claim: invalid volume claim templates: name at index 0 is empty',
    },
    {
      when: 'the template repeats a name and the claim wants none',
      own: ['a', 'a'],
      wanted: [],
      says: 'invalid volume claim templates in template: invalid volume claim templates: duplicate name "a"',
    },
  ])('scenario 95: $when', async ({ own, wanted, says }) => {
    expect(await run(own, wanted, 'Allowed')).toMatchObject({
      names: undefined,
      reason: 'VolumeClaimTemplatesError',
      message: says,
    })
  })
})

it('is silent about a claim that is gone or going', async () => {
  await using passes = await started()
  await passes.client.delete(SandboxClaims, ref('c'))
  expect(await passes.claim('c').catch(isNotFound)).toEqual({})
  expect(passes.writes).toEqual([])
})

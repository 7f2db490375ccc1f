import type { ClaimEnvVar, PodSpec } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { injectEnv } from './env-injection.js'

type Policy = Parameters<typeof injectEnv>[2]
const spec = {
  initContainers: [{ name: 'init' }],
  containers: [{ name: 'main', env: [{ name: 'A', value: 'template' }] }, { name: 'side' }],
} as PodSpec

/** The variables of each container after the injection, in words. */
function gets(env: ClaimEnvVar[], policy: Policy, into: PodSpec = spec): string {
  const { initContainers = [], containers = [] } = injectEnv(into, env, policy)
  return [...initContainers, ...containers]
    .map(({ name, env }) => `${name}: ${(env ?? []).map((one) => `${one.name}=${one.value}`).join(' ') || '-'}`)
    .join('; ')
}
const rejected = 'environment variable injection rejected: '

describe('variables of a claim', () => {
  it.each<{ when: string; env: ClaimEnvVar[]; policy: Policy; into?: PodSpec; is: string }>([
    { when: 'there are none', env: [], policy: 'Disallowed', is: 'init: -; main: A=template; side: -' },
    {
      when: 'no container is named: the first one',
      env: [{ name: 'B', value: '1' }],
      policy: 'Allowed',
      is: 'init: -; main: A=template B=1; side: -',
    },
    {
      when: 'containers are named',
      env: [
        { name: 'B', value: '1', containerName: 'side' },
        { name: 'C', value: '2', containerName: 'init' },
        { name: 'D', value: '3', containerName: 'side' },
        { name: 'E', value: '4' },
      ],
      policy: 'Allowed',
      is: 'init: C=2; main: A=template E=4; side: B=1 D=3',
    },
    {
      when: 'one of the template is set and that is allowed: it keeps its place',
      env: [
        { name: 'B', value: '1' },
        { name: 'A', value: 'claim' },
      ],
      policy: 'Overrides',
      is: 'init: -; main: A=claim B=1; side: -',
    },
    {
      when: 'the container reads a Secret and overrides are allowed',
      env: [{ name: 'B', value: '1' }],
      policy: 'Overrides',
      into: { containers: [{ name: 'main', envFrom: [{ secretRef: { name: 's' } }] }] } as PodSpec,
      is: 'main: B=1',
    },
    {
      when: 'the container reads from an empty list',
      env: [{ name: 'B', value: '1' }],
      policy: 'Allowed',
      into: { containers: [{ name: 'main', envFrom: [] }] } as unknown as PodSpec,
      is: 'main: B=1',
    },
    {
      when: 'another container reads a Secret',
      env: [{ name: 'B', value: '1' }],
      policy: 'Allowed',
      into: { containers: [{ name: 'main' }, { name: 'side', envFrom: [{}] }] } as PodSpec,
      is: 'main: B=1; side: -',
    },
    {
      when: 'there is no container to put them into',
      env: [{ name: 'B', value: '1' }],
      policy: 'Allowed',
      into: {} as PodSpec,
      is: '',
    },
  ])('go into the Pod when $when', ({ env, policy, into, is }) => {
    expect(gets(env, policy, into)).toBe(is)
  })

  it('leave the template as it was, and add no list of init containers', () => {
    const before = structuredClone(spec)
    gets([{ name: 'A', value: 'claim' }], 'Overrides')
    expect(spec).toEqual(before)
    const made = injectEnv({ containers: [{ name: 'main' }] } as PodSpec, [{ name: 'B', value: '1' }], 'Allowed')
    expect(made).toStrictEqual({ containers: [{ name: 'main', env: [{ name: 'B', value: '1' }] }] })
    expect(injectEnv(spec, [], 'Allowed')).toBe(spec)
  })

  it.each<{ when: string; env: ClaimEnvVar[]; policy: Policy; into?: PodSpec; says: string; code?: string }>([
    {
      when: 'the template does not allow any',
      env: [{ name: 'B', value: '1' }],
      policy: 'Disallowed',
      says: `${rejected}environment variable injection is not allowed by the template policy`,
      code: 'EnvVarsInjectionRejected',
    },
    {
      when: 'the template does not say',
      env: [{ name: 'B', value: '1' }],
      policy: undefined,
      says: `${rejected}environment variable injection is not allowed by the template policy`,
      code: 'EnvVarsInjectionRejected',
    },
    {
      when: 'no container has that name',
      env: [{ name: 'B', value: '1', containerName: 'nope' }],
      policy: 'Allowed',
      says: 'target container "nope" not found in template for environment variable "B"',
    },
    {
      when: 'the template sets it',
      env: [{ name: 'A', value: '1' }],
      policy: 'Allowed',
      says: 'environment variable override is not allowed by the template policy for variable "A"',
    },
    {
      when: 'the claim sets it twice',
      env: [
        { name: 'B', value: '1' },
        { name: 'B', value: '2' },
      ],
      policy: 'Allowed',
      says: 'environment variable override is not allowed by the template policy for variable "B"',
    },
    {
      when: 'the container reads a Secret that may hold it',
      env: [{ name: 'B', value: '1' }],
      policy: 'Allowed',
      into: { containers: [{ name: 'main', envFrom: [{ secretRef: { name: 's' } }] }] } as PodSpec,
      says: `${rejected}container "main" uses EnvFrom sources; Allowed policy cannot safely prevent overriding EnvFrom-provided variables`,
      code: 'EnvVarsInjectionRejected',
    },
  ])('are refused when $when', ({ env, policy, into, says, code }) => {
    let error: unknown
    try {
      gets(env, policy, into)
    } catch (thrown) {
      error = thrown
    }
    expect(error).toMatchObject({ message: says, ...(code ? { code } : {}) })
  })
})

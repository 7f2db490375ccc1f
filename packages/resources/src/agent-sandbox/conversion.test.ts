import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { deepFreeze } from '../copies.js'
import { semanticEqual } from '../equality.js'
import { convertTo } from './conversion.js'
import { convertManifest } from './convert-manifest.js'
import { POLICY_ANNOTATION, STATE_ANNOTATIONS } from './keys.js'
import {
  type SandboxClaimV1alpha1,
  type SandboxTemplateV1alpha1,
  type SandboxV1alpha1,
  type SandboxWarmPoolV1alpha1,
  sandboxClaimV1alpha1Schema,
  sandboxTemplateV1alpha1Schema,
  sandboxV1alpha1Schema,
  sandboxWarmPoolV1alpha1Schema,
} from './v1alpha1.js'
import type { Sandbox, SandboxClaim, SandboxTemplate, SandboxWarmPool } from './v1beta1.js'

const AGENTS = 'agents.x-k8s.io'
const EXTENSIONS = 'extensions.agents.x-k8s.io'
const podTemplate = { spec: { containers: [{ name: 'sandbox', image: 'busybox' }] } }

const sandboxUp = (sandbox: SandboxV1alpha1): Sandbox => convertTo(sandbox, `${AGENTS}/v1beta1`)
const sandboxDown = (sandbox: Sandbox): SandboxV1alpha1 => convertTo(sandbox, `${AGENTS}/v1alpha1`)
const claimUp = (claim: SandboxClaimV1alpha1): SandboxClaim => convertTo(claim, `${EXTENSIONS}/v1beta1`)
const claimDown = (claim: SandboxClaim): SandboxClaimV1alpha1 => convertTo(claim, `${EXTENSIONS}/v1alpha1`)

const oldSandbox = (replicas: number | undefined, statusReplicas: number): SandboxV1alpha1 => ({
  apiVersion: `${AGENTS}/v1alpha1`,
  kind: 'Sandbox',
  metadata: { name: 's', annotations: { keep: 'me' }, labels: { a: 'b' } },
  spec: { podTemplate, ...(replicas === undefined ? {} : { replicas }) },
  status: { replicas: statusReplicas, selector: 'x=y' },
})
const newSandbox = (operatingMode?: 'Running' | 'Suspended'): Sandbox => ({
  apiVersion: `${AGENTS}/v1beta1`,
  kind: 'Sandbox',
  metadata: { name: 's' },
  spec: { podTemplate, ...(operatingMode ? { operatingMode } : {}) },
})
const oldClaim = (spec: Partial<SandboxClaimV1alpha1['spec']>, sandboxName?: string): SandboxClaimV1alpha1 => ({
  apiVersion: `${EXTENSIONS}/v1alpha1`,
  kind: 'SandboxClaim',
  metadata: { name: 'claim' },
  spec: { sandboxTemplateRef: { name: 'tpl' }, ...spec },
  ...(sandboxName ? { status: { sandbox: { name: sandboxName } } } : {}),
})
const newClaim = (pool: string): SandboxClaim => ({
  apiVersion: `${EXTENSIONS}/v1beta1`,
  kind: 'SandboxClaim',
  metadata: { name: 'claim' },
  spec: { warmPoolRef: { name: pool } },
})

describe('Sandbox', () => {
  it.each([
    { replicas: undefined, mode: 'Running', statusReplicas: 1 },
    { replicas: 1, mode: 'Running', statusReplicas: 0 },
    { replicas: 0, mode: 'Suspended', statusReplicas: 1 },
  ])(
    'scenario 4: replicas $replicas is $mode, and comes back with its status.replicas',
    ({ replicas, mode, statusReplicas }) => {
      const original = deepFreeze(oldSandbox(replicas, statusReplicas))
      const hub = sandboxUp(original)
      expect(hub.spec.operatingMode).toBe(mode)
      expect(hub.spec).not.toHaveProperty('replicas')
      expect(sandboxDown(hub)).toEqual(original)
    },
  )

  it('scenario 5: does not nest a state annotation that was already there', () => {
    const key = STATE_ANNOTATIONS.Sandbox
    const original = deepFreeze({
      ...oldSandbox(1, 1),
      metadata: { name: 's', annotations: { [key]: 'bogus', keep: 'me' } },
    })
    const state = sandboxUp(original).metadata?.annotations?.[key] ?? ''
    expect(JSON.parse(state)).toMatchObject({ metadata: { annotations: { keep: 'me' } } })
    expect(state).not.toContain(key)
  })

  it.each([
    ['Running', 1],
    ['Suspended', 0],
    [undefined, 1],
  ] as const)('scenario 6: made in v1beta1 with mode %s it has %d replicas', (mode, replicas) => {
    const down = sandboxDown(newSandbox(mode))
    expect([down.spec.replicas, down.status?.replicas]).toEqual([replicas, replicas])
  })

  it.each<{
    when: string
    was: number | undefined
    mode: 'Running' | 'Suspended' | undefined
    replicas: number | undefined
  }>([
    { when: 'suspended since', was: 1, mode: 'Suspended', replicas: 0 },
    { when: 'resumed since', was: 0, mode: 'Running', replicas: 1 },
    { when: 'still running, never counted', was: undefined, mode: 'Running', replicas: undefined },
    { when: 'without a mode', was: 0, mode: undefined, replicas: 1 },
  ])('$when has replicas $replicas', ({ was, mode, replicas }) => {
    const hub = sandboxUp(oldSandbox(was, 1))
    const { operatingMode: _mode, ...spec } = hub.spec
    const down = sandboxDown({ ...hub, spec: { ...spec, ...(mode ? { operatingMode: mode } : {}) } })
    expect(down.spec.replicas).toBe(replicas)
  })

  it('refuses an unreadable state', () => {
    const annotations = { [STATE_ANNOTATIONS.Sandbox]: '{' }
    expect(() => sandboxDown({ ...newSandbox(), metadata: { annotations } })).toThrow(
      /^failed to unmarshal v1alpha1 Sandbox state: /,
    )
  })
})

describe('SandboxClaim', () => {
  it.each([
    { claim: oldClaim({ warmpool: 'my-pool' }, 'other-abc'), pool: 'my-pool', when: 'it names a pool' },
    { claim: oldClaim({ warmpool: 'none' }, 'claim'), pool: 'shadow-pool-tpl', when: 'it wants none and got its own' },
    { claim: oldClaim({ warmpool: 'default' }, 'claim'), pool: 'shadow-pool-tpl', when: 'default gave it its own' },
    { claim: oldClaim({}), pool: 'shadow-pool-tpl', when: 'it is unbound and says nothing' },
    { claim: oldClaim({ warmpool: 'default' }, 'my-pool-abcde'), pool: 'my-pool', when: 'it is bound to a member' },
    { claim: oldClaim({}, 'solo'), pool: 'solo', when: 'its sandbox has a name without dash' },
  ])('scenarios 7, 8 and 9: refers to $pool when $when, and comes back whole', ({ claim, pool }) => {
    const hub = claimUp(deepFreeze(claim))
    expect(hub.spec.warmPoolRef.name).toBe(pool)
    expect(claimDown(hub)).toEqual(claim)
  })

  it.each([
    ['my-pool', 'my-pool', 'my-pool'],
    ['', '', ''],
    ['shadow-pool-my-template', 'default', 'my-template'],
  ])('scenario 10: made in v1beta1 for "%s" has warmpool "%s" and template "%s"', (pool, warmpool, template) => {
    const { spec } = claimDown(newClaim(pool))
    expect([spec.warmpool, spec.sandboxTemplateRef.name]).toEqual([warmpool, template])
  })

  it('follows a pool changed in v1beta1 and keeps the template', () => {
    const hub = claimUp(oldClaim({ warmpool: 'first' }))
    const down = claimDown({ ...hub, spec: { ...hub.spec, warmPoolRef: { name: 'second' } } })
    expect(down.spec).toMatchObject({ warmpool: 'second', sandboxTemplateRef: { name: 'tpl' } })
  })

  it('refuses an unreadable state', () => {
    const annotations = { [STATE_ANNOTATIONS.SandboxClaim]: '[]' }
    expect(() => claimDown({ ...newClaim('p'), metadata: { annotations } })).toThrow(/v1alpha1 SandboxClaim state/)
  })
})

describe('SandboxTemplate', () => {
  const template = (policy?: 'Allowed'): SandboxTemplate => ({
    apiVersion: `${EXTENSIONS}/v1beta1`,
    kind: 'SandboxTemplate',
    metadata: { name: 't' },
    spec: { podTemplate, ...(policy ? { volumeClaimTemplatesPolicy: policy } : {}) },
  })
  const down = (object: SandboxTemplate): SandboxTemplateV1alpha1 => convertTo(object, `${EXTENSIONS}/v1alpha1`)
  const up = (object: SandboxTemplateV1alpha1): SandboxTemplate => convertTo(object, `${EXTENSIONS}/v1beta1`)

  it('scenario 11: carries the policy through v1alpha1 in an annotation', () => {
    const old = down(template('Allowed'))
    expect(old.metadata?.annotations).toEqual({ [POLICY_ANNOTATION]: 'Allowed' })
    const back = up(old)
    expect(back.spec.volumeClaimTemplatesPolicy).toBe('Allowed')
    expect(back.metadata?.annotations).not.toHaveProperty(POLICY_ANNOTATION)
  })

  it('scenario 12: lets a cleared policy stay cleared', () => {
    const stale = { ...template(), metadata: { name: 't', annotations: { [POLICY_ANNOTATION]: 'Allowed' } } }
    const old = down(stale)
    expect(old.metadata).toEqual({ name: 't' })
    expect(up(old).spec).not.toHaveProperty('volumeClaimTemplatesPolicy')
  })

  it('refuses a policy that is none', () => {
    const old = { ...down(template()), metadata: { annotations: { [POLICY_ANNOTATION]: 'Maybe' } } }
    expect(() => up(old)).toThrow('invalid VolumeClaimTemplatesPolicy annotation value: "Maybe"')
  })
})

describe('SandboxWarmPool', () => {
  it.each([undefined, 'Recreate'] as const)(
    'scenario 13: keeps update strategy %s, replicas and status',
    (strategy) => {
      const pool: SandboxWarmPoolV1alpha1 = {
        apiVersion: `${EXTENSIONS}/v1alpha1`,
        kind: 'SandboxWarmPool',
        metadata: { name: 'p' },
        spec: {
          replicas: 3,
          sandboxTemplateRef: { name: 't' },
          ...(strategy ? { updateStrategy: { type: strategy } } : {}),
        },
        status: { replicas: 3, readyReplicas: 2, selector: 'a=b' },
      }
      expect(convertTo(convertTo(pool, `${EXTENSIONS}/v1beta1`), `${EXTENSIONS}/v1alpha1`)).toEqual(pool)
    },
  )

  it('spells out the replicas that v1beta1 leaves open', () => {
    const pool: SandboxWarmPool = {
      apiVersion: `${EXTENSIONS}/v1beta1`,
      kind: 'SandboxWarmPool',
      spec: { sandboxTemplateRef: { name: 't' } },
      status: { observedGeneration: 4, replicas: 1 },
    }
    expect(convertTo(pool, `${EXTENSIONS}/v1alpha1`)).toMatchObject({ spec: { replicas: 1 }, status: { replicas: 1 } })
    expect(convertTo(pool, `${EXTENSIONS}/v1alpha1`)).not.toHaveProperty('status.observedGeneration')
  })
})

describe('v1alpha1 → v1beta1 → v1alpha1', () => {
  const text = fc.string({ maxLength: 12 })
  const map = fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), text, { maxKeys: 3 })
  const name = fc.stringMatching(/^[a-z]([a-z-]{0,8}[a-z])?$/)
  const optional = { requiredKeys: [] as [] }
  const metadata = fc.record({ name, labels: map, annotations: map, generation: fc.nat() }, optional)
  const template = fc.record(
    {
      spec: fc.record(
        {
          containers: fc.uniqueArray(fc.record({ name, image: text }), { selector: (container) => container.name }),
          hostname: text,
        },
        { requiredKeys: ['containers'] },
      ),
      metadata: fc.record({ labels: map }),
    },
    { requiredKeys: ['spec'] },
  )
  const condition = fc.record({
    type: fc.constantFrom('Ready', 'Finished'),
    status: fc.constantFrom('True', 'False', 'Unknown'),
    reason: fc.constant('Because'),
    message: text,
    lastTransitionTime: fc.constant('2026-01-01T00:00:00Z'),
  })
  const conditions = fc.array(condition, { maxLength: 2 })
  const volumes = fc.array(
    fc.record({ metadata: fc.record({ name }), spec: fc.record({ accessModes: fc.array(text) }) }),
    { maxLength: 2 },
  )
  const blueprint = { podTemplate: template, volumeClaimTemplates: volumes, service: fc.boolean() }
  const kinds = {
    Sandbox: {
      group: AGENTS,
      schema: sandboxV1alpha1Schema,
      spec: fc.record(
        { ...blueprint, replicas: fc.constantFrom(0, 1), shutdownPolicy: fc.constantFrom('Delete', 'Retain') },
        { requiredKeys: ['podTemplate'] },
      ),
      status: fc.record({ replicas: fc.nat(3), conditions, serviceFQDN: text, podIPs: fc.array(text) }, optional),
    },
    SandboxClaim: {
      group: EXTENSIONS,
      schema: sandboxClaimV1alpha1Schema,
      spec: fc.record(
        {
          sandboxTemplateRef: fc.record({ name }),
          warmpool: fc.oneof(name, fc.constantFrom('none', 'default', '')),
          env: fc.array(fc.record({ name: text, value: text })),
        },
        { requiredKeys: ['sandboxTemplateRef'] },
      ),
      status: fc.record({ conditions, sandbox: fc.record({ name }, optional) }, optional),
    },
    SandboxTemplate: {
      group: EXTENSIONS,
      schema: sandboxTemplateV1alpha1Schema,
      spec: fc.record(
        { ...blueprint, envVarsInjectionPolicy: fc.constant('Allowed') },
        { requiredKeys: ['podTemplate'] },
      ),
      status: fc.constant(undefined),
    },
    SandboxWarmPool: {
      group: EXTENSIONS,
      schema: sandboxWarmPoolV1alpha1Schema,
      spec: fc.record(
        {
          replicas: fc.nat(9),
          sandboxTemplateRef: fc.record({ name }),
          updateStrategy: fc.record({ type: fc.constant('Recreate') }),
        },
        { requiredKeys: ['replicas', 'sandboxTemplateRef'] },
      ),
      status: fc.record({ replicas: fc.nat(9), readyReplicas: fc.nat(9), selector: text }, optional),
    },
  }

  it.each(Object.entries(kinds))('loses nothing of any %s', (kind, { group, schema, spec, status }) => {
    fc.assert(
      fc.property(
        metadata,
        spec,
        fc.oneof(fc.constant(undefined), status as fc.Arbitrary<unknown>),
        (meta, theSpec, theStatus) => {
          const object = {
            apiVersion: `${group}/v1alpha1`,
            kind,
            metadata: meta,
            spec: theSpec,
            ...(theStatus === undefined ? {} : { status: theStatus }),
          }
          expect(schema.safeParse(object).error?.issues ?? []).toEqual([])
          const hub = convertTo(deepFreeze(object), `${group}/v1beta1`)
          const back = convertTo(hub, `${group}/v1alpha1`)
          if (!semanticEqual(back, object)) expect(back).toEqual(object)
        },
      ),
    )
  })
})

describe('convertManifest', () => {
  it('turns an old claim into a file for today and says what changed', () => {
    const { object, changes } = convertManifest(oldClaim({ warmpool: 'my-pool' }, 'my-pool-x'))
    expect(object).toEqual({
      apiVersion: `${EXTENSIONS}/v1beta1`,
      kind: 'SandboxClaim',
      metadata: { name: 'claim' },
      spec: { warmPoolRef: { name: 'my-pool' } },
    })
    expect(changes).toEqual([
      'SandboxClaim claim: apiVersion is extensions.agents.x-k8s.io/v1beta1 now',
      'SandboxClaim claim: spec.sandboxTemplateRef ({"name":"tpl"}) has no place in v1beta1 and is gone',
      'SandboxClaim claim: spec.warmpool ("my-pool") has no place in v1beta1 and is gone',
      'SandboxClaim claim: spec.warmPoolRef is {"name":"my-pool"}',
      'SandboxClaim claim: status left out, the controller writes it',
    ])
  })

  it('converts the items of a list and leaves everything else alone', () => {
    const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' } }
    const list = { apiVersion: 'v1', kind: 'List', items: [configMap, oldSandbox(0, 0), newSandbox()] }
    const { object, changes } = convertManifest(list)
    expect(object).toMatchObject({ items: [configMap, { spec: { operatingMode: 'Suspended' } }, newSandbox()] })
    expect(changes.every((change) => change.startsWith('Sandbox s:'))).toBe(true)
    expect(convertManifest(configMap)).toEqual({ object: configMap, changes: [] })
  })
})

it('knows no other kinds and no other versions', () => {
  expect(() => convertTo({ apiVersion: 'v1', kind: 'Pod' }, 'v2')).toThrow(/cannot convert v1 Pod/)
  expect(() => convertTo(newSandbox(), `${AGENTS}/v1`)).toThrow(/no version/)
})

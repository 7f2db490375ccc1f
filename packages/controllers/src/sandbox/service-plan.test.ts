import type { PersistentVolumeClaim, Sandbox, Service, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { labels } from '../shared/names.js'
import { planPvcs } from './pvc-plan.js'
import { planService } from './service-plan.js'

const reference = {
  apiVersion: 'agents.x-k8s.io/v1beta1',
  kind: 'Sandbox',
  name: 's',
  uid: 'u',
  controller: true,
  blockOwnerDeletion: true,
}
const theirs = { ...reference, kind: 'Helm', name: 'chart', uid: 'other' }
const hash = { [labels.nameHash]: 'h' }
const adoptable = { [labels.adoptable]: 'true' }
const port = { name: 'p-80-tcp', protocol: 'TCP', port: 80, targetPort: 80 }

function sandbox(spec: object = {}, metadata: object = {}): Stored<Sandbox> {
  const containers = [{ name: 'main', ports: [{ containerPort: 80 }] }]
  return {
    metadata: { name: 's', namespace: 'n', uid: 'u', ...metadata },
    spec: { podTemplate: { spec: { containers } }, ...spec },
  } as unknown as Stored<Sandbox>
}
const portless = { podTemplate: { spec: { containers: [{ name: 'main' }] } } }
const service = (metadata: object, spec?: object): Stored<Service> =>
  ({ metadata: { name: 's', namespace: 'n', ...metadata }, ...(spec && { spec }) }) as unknown as Stored<Service>
const ours = (spec: object, metadata: object = { labels: hash }) =>
  service({ ownerReferences: [reference], ...metadata }, spec)
const asWanted = { clusterIP: 'None', selector: hash, ports: [port] }

const cannotAdopt = (what: string, name: string) =>
  `cannot adopt unowned ${what} "${name}": missing required pool authorization label ("agents.x-k8s.io/adoptable") or sandbox tracking label ("agents.x-k8s.io/sandbox-name-hash")`

describe('the Service of a Sandbox', () => {
  const made = (more: object, spec: object) => ({
    kind: 'create',
    child: 'service',
    object: {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 's', ...more, labels: hash, ownerReferences: [reference] },
      spec,
    },
  })
  const patched = (patch: object) => ({
    kind: 'patch',
    child: 'service',
    name: 's',
    patch,
    failure: 'failed to patch owned service',
  })
  const adopted = (metadata: object, spec: object) => ({
    kind: 'replace',
    child: 'service',
    object: { metadata: { name: 's', namespace: 'n', ...metadata }, spec },
    failure: 'failed to update service with owner reference',
  })

  it.each<{ when: string; sandbox: Stored<Sandbox>; service?: Stored<Service>; is: object }>([
    { when: 'none is asked for', sandbox: sandbox(), is: { actions: [] } },
    { when: 'it is declined', sandbox: sandbox({ service: false }), is: { actions: [] } },
    {
      when: 'it is asked for: without an address of its own, for the ports of the containers',
      sandbox: sandbox({ service: true }),
      is: { actions: [made({ namespace: 'n' }, asWanted)] },
    },
    {
      when: 'it is asked for and no container has a port',
      sandbox: sandbox({ service: true, ...portless }, { namespace: undefined }),
      is: { actions: [made({}, { clusterIP: 'None', selector: hash })] },
    },
    {
      when: 'it is declined and there: it goes',
      sandbox: sandbox({ service: false }),
      service: ours(asWanted),
      is: {
        actions: [
          { kind: 'delete', child: 'service', name: 's', missingIsFine: true, failure: 'failed to delete service' },
        ],
      },
    },
    {
      when: 'it is declined and a user made one of its name: that one stays',
      sandbox: sandbox({ service: false }),
      service: service({ labels: adoptable }),
      is: { actions: [] },
    },
    {
      when: 'it is declined and another owner has one of its name',
      sandbox: sandbox({ service: false }),
      service: service({ ownerReferences: [theirs] }),
      is: { actions: [] },
    },
    {
      when: 'another owner has one of its name',
      sandbox: sandbox({ service: true }),
      service: service({ ownerReferences: [theirs] }),
      is: { actions: [], error: 'service "s" is owned by Helm/chart (UID: other), not by sandbox "s"' },
    },
    {
      when: 'another owner has one of its name and it asks for none',
      sandbox: sandbox(),
      service: service({ ownerReferences: [theirs] }),
      is: { actions: [], error: 'service "s" is owned by Helm/chart (UID: other), not by sandbox "s"' },
    },
    {
      when: 'a user made one and it asks for none: that one is left alone',
      sandbox: sandbox(),
      service: service({ labels: adoptable }),
      is: { actions: [] },
    },
    {
      when: 'a user made one that may not be taken over',
      sandbox: sandbox({ service: true }),
      service: service({}),
      is: { actions: [], error: cannotAdopt('service', 's') },
    },
    {
      when: 'the one to take over has an address of its own',
      sandbox: sandbox({ service: true }),
      service: service({ labels: adoptable }, { clusterIP: '10.0.0.7' }),
      is: {
        actions: [],
        error: 'cannot adopt service "s": ClusterIP is "10.0.0.7" (expected "None", field is immutable)',
      },
    },
    {
      when: 'one is taken over: it keeps its labels, owners and other fields',
      sandbox: sandbox({ service: true }),
      service: service(
        { labels: { ...adoptable, a: 'b' }, ownerReferences: [{ uid: 'x' }] },
        { clusterIP: 'None', ports: [{ port: 9 }], sessionAffinity: 'ClientIP' },
      ),
      is: {
        found: { metadata: { name: 's' } },
        actions: [
          adopted(
            { labels: { ...adoptable, a: 'b', ...hash }, ownerReferences: [{ uid: 'x' }, reference] },
            { clusterIP: 'None', sessionAffinity: 'ClientIP', selector: hash, ports: [port] },
          ),
        ],
      },
    },
    {
      when: 'one without a spec is taken over and no container has a port',
      sandbox: sandbox({ service: true, ...portless }),
      service: service({ labels: hash }),
      is: { actions: [adopted({ labels: hash, ownerReferences: [reference] }, { selector: hash })] },
    },
    {
      when: 'it is as it should be',
      sandbox: sandbox({ service: true }),
      service: ours(asWanted),
      is: { found: { metadata: { name: 's' } }, actions: [] },
    },
    {
      when: 'its label was removed',
      sandbox: sandbox({ service: true }),
      service: ours(asWanted, { labels: { a: 'b' } }),
      is: { actions: [patched({ metadata: { labels: hash } })] },
    },
    {
      when: 'it selects other Pods',
      sandbox: sandbox({ service: true }),
      service: ours({ ...asWanted, selector: { app: 'x' } }),
      is: { actions: [patched({ spec: { selector: { app: null, ...hash } } })] },
    },
    {
      when: 'its ports are old',
      sandbox: sandbox({ service: true }),
      service: ours({ ...asWanted, ports: [{ ...port, port: 81 }] }),
      is: { actions: [patched({ spec: { ports: [port] } })] },
    },
    {
      when: 'its ports are old and it is merely kept',
      sandbox: sandbox(),
      service: ours({ ...asWanted, ports: [{ ...port, port: 81 }] }),
      is: { actions: [] },
    },
    {
      when: 'it lost its spec',
      sandbox: sandbox({ service: true, ...portless }),
      service: service({ labels: hash, ownerReferences: [reference] }),
      is: { actions: [patched({ spec: { selector: hash } })] },
    },
  ])('when $when', ({ sandbox, service, is }) => {
    const step = planService({ sandbox, nameHash: 'h', service })
    expect(step).toMatchObject(is)
    expect(step.actions).toStrictEqual((is as { actions: object[] }).actions)
    expect(step.error).toBe((is as { error?: string }).error)
  })
})

describe('the volumes of a Sandbox', () => {
  const volume = (metadata: object): Stored<PersistentVolumeClaim> =>
    ({ metadata }) as unknown as Stored<PersistentVolumeClaim>
  const made = (name: string, metadata: object = {}, spec: object = {}) => ({
    kind: 'create',
    child: 'pvc',
    object: {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace: 'n', labels: hash, ownerReferences: [reference], ...metadata },
      spec,
    },
  })
  const taken = (...ownerReferences: object[]) => ({
    kind: 'patch',
    child: 'pvc',
    name: 'a-s',
    patch: { metadata: { ownerReferences } },
    failure: 'failed to patch PVC with owner reference',
  })
  const two = [
    { metadata: { name: 'a' }, spec: {} },
    { metadata: { name: 'b' }, spec: {} },
  ]

  it.each<{ when: string; templates?: object[]; existing?: Record<string, Stored<PersistentVolumeClaim>>; is: object }>(
    [
      { when: 'it asks for none', is: { actions: [] } },
      { when: 'it asks for two', templates: two, is: { actions: [made('a-s'), made('b-s')] } },
      {
        when: 'the template names labels, annotations and a size',
        templates: [{ metadata: { name: 'a', labels: { l: '1' }, annotations: { n: '2' } }, spec: { x: 1 } }],
        is: { actions: [made('a-s', { labels: { l: '1', ...hash }, annotations: { n: '2' } }, { x: 1 })] },
      },
      { when: 'the template has no name', templates: [{ spec: {} }], is: { actions: [made('-s')] } },
      {
        when: 'the first is there',
        templates: two,
        existing: { 'a-s': volume({ ownerReferences: [reference] }) },
        is: { actions: [made('b-s')] },
      },
      {
        when: 'the first belongs to another owner: the rest waits',
        templates: two,
        existing: { 'a-s': volume({ ownerReferences: [theirs] }) },
        is: { actions: [], error: 'PVC "a-s" is owned by Helm/chart (UID: other), not by sandbox "s"' },
      },
      {
        when: 'a user made the second and did not mark it: the first is made all the same',
        templates: two,
        existing: { 'b-s': volume({}) },
        is: { actions: [made('a-s')], error: cannotAdopt('PVC', 'b-s') },
      },
      {
        when: 'a user marked the first: it is taken over',
        templates: two,
        existing: { 'a-s': volume({ labels: adoptable, ownerReferences: [{ uid: 'x' }] }) },
        is: { actions: [taken({ uid: 'x' }, reference), made('b-s')] },
      },
      {
        when: 'the first was left by an earlier Sandbox of its name',
        templates: two.slice(0, 1),
        existing: { 'a-s': volume({ labels: hash }) },
        is: { actions: [taken(reference)] },
      },
    ],
  )('when $when', ({ templates, existing = {}, is }) => {
    const spec = templates ? { volumeClaimTemplates: templates } : {}
    expect(planPvcs({ sandbox: sandbox(spec), nameHash: 'h', findPvc: (name) => existing[name] })).toStrictEqual(is)
  })

  it('have no namespace where the Sandbox has none', () => {
    const world = { sandbox: sandbox({ volumeClaimTemplates: two.slice(0, 1) }, { namespace: undefined }) }
    const { actions } = planPvcs({ ...world, nameHash: 'h', findPvc: () => undefined })
    expect(actions[0]).toMatchObject({ object: { metadata: { name: 'a-s' } } })
    expect(JSON.stringify(actions)).not.toContain('namespace')
    expect('namespace' in ((actions[0] as { object: Service }).object.metadata ?? {})).toBe(false)
  })
})

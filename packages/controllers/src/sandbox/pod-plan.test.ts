import type { Pod, Sandbox, Stored } from '@corral/resources'
import { podNameOf } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { annotations, labels } from '../shared/names.js'
import { type PodStep, type PodWorld, planPod } from './pod-plan.js'

const reference = {
  apiVersion: 'agents.x-k8s.io/v1beta1',
  kind: 'Sandbox',
  name: 's',
  uid: 'u',
  controller: true,
  blockOwnerDeletion: true,
}
const theirs = { ...reference, kind: 'ReplicaSet', name: 'web', uid: 'other' }
const carries = { labels: { [labels.nameHash]: 'h' } }
const pod = (name: string, metadata: object = {}): Stored<Pod> =>
  ({ metadata: { name, namespace: 'n', ...metadata }, spec: {} }) as unknown as Stored<Pod>
const mine = (name: string, metadata: object = {}) =>
  pod(name, { ...carries, ownerReferences: [reference], ...metadata })

interface Shape {
  spec?: object
  note?: string
  metadata?: object
}
const sandbox = ({ spec, note, metadata }: Shape = {}): Stored<Sandbox> =>
  ({
    metadata: {
      name: 's',
      namespace: 'n',
      uid: 'u',
      ...(note === undefined ? {} : { annotations: { [annotations.podName]: note } }),
      ...metadata,
    },
    spec: { podTemplate: { spec: { containers: [{ name: 'main' }] } }, ...spec },
  }) as unknown as Stored<Sandbox>

function plan(shape: Shape, world: Partial<PodWorld> = {}): PodStep {
  return planPod({ sandbox: sandbox(shape), nameHash: 'h', hashedPods: [], namedPod: undefined, deferMs: 0, ...world })
}

/** The step in words. */
function does({ actions, ownedCount, found, error, deferred }: PodStep): string {
  const words = actions.map((action) => {
    if (action.kind === 'forgetPodName') return 'forget the note'
    const name = action.kind === 'create' || action.kind === 'replace' ? action.object.metadata?.name : action.name
    const failure = 'failure' in action ? ` (${action.failure})` : ''
    return `${action.kind} ${action.child} ${name}${failure}`
  })
  if (deferred) words.push('patch later')
  if (error) words.push(`error: ${error}`)
  return [`${ownedCount} of its own`, ...words, ...(found ? [`uses ${found.metadata.name}`] : [])].join('; ')
}

const suspended = { operatingMode: 'Suspended' }
const notAdoptable =
  'cannot adopt unowned pod "s": missing required pool authorization label ("agents.x-k8s.io/adoptable") or sandbox tracking label ("agents.x-k8s.io/sandbox-name-hash")'
const notOurs = (name: string) => `pod "${name}" is owned by ReplicaSet/web (UID: other), not by sandbox "s"`

describe('the Pod of a Sandbox', () => {
  it.each<{ when: string; shape?: Shape; world?: Partial<PodWorld>; is: string }>([
    { when: 'there is none', is: '0 of its own; create pod s' },
    {
      when: 'the Pod that was recorded is gone: the record goes too',
      shape: { note: 'old' },
      is: '0 of its own; forget the note; create pod s',
    },
    { when: 'it runs', world: { namedPod: mine('s'), hashedPods: [mine('s')] }, is: '1 of its own; uses s' },
    {
      when: 'it runs and lost its label',
      world: { namedPod: mine('s', { labels: {} }) },
      is: '1 of its own; patch pod s (failed to patch pod); uses s',
    },
    {
      when: 'its label can wait for the next write',
      world: { namedPod: mine('s', { labels: {} }), deferMs: 5 },
      is: '1 of its own; patch later; uses s',
    },
    {
      when: 'a Pod from a pool is taken over, which waits for nothing',
      world: { namedPod: pod('s', { labels: { [labels.adoptable]: 'true' } }), deferMs: 5 },
      is: '0 of its own; patch pod s (failed to patch pod); uses s',
    },
    {
      when: 'a Pod of its name may not be taken over',
      world: { namedPod: pod('s') },
      is: `0 of its own; error: ${notAdoptable}`,
    },
    {
      when: 'a Pod of its name has another owner',
      world: { namedPod: pod('s', { ownerReferences: [theirs] }) },
      is: `0 of its own; error: ${notOurs('s')}`,
    },
    {
      when: 'the recorded Pod has another owner: the record goes',
      shape: { note: 'old' },
      world: { namedPod: pod('old', { ownerReferences: [theirs] }) },
      is: `0 of its own; forget the note; error: ${notOurs('old')}`,
    },
    {
      when: 'the record leads to another Pod than its own',
      shape: { note: 'old' },
      world: { namedPod: pod('old'), hashedPods: [mine('s')] },
      is: '1 of its own; forget the note; uses s',
    },
    {
      when: 'a Pod of another namespace has the recorded name',
      shape: { note: 's' },
      world: { namedPod: pod('s', { namespace: 'm' }), hashedPods: [mine('s')] },
      is: '1 of its own; forget the note; uses s',
    },
    {
      when: 'the record is right: it stays',
      shape: { note: 'old' },
      world: { namedPod: mine('old'), hashedPods: [mine('old')] },
      is: '1 of its own; uses old',
    },
    {
      when: 'its own has another name and nothing is recorded',
      world: { namedPod: pod('s'), hashedPods: [mine('other')] },
      is: '1 of its own; uses other',
    },
    {
      when: 'two Pods are its own: neither is changed',
      world: { hashedPods: [mine('s'), mine('t')], namedPod: mine('s') },
      is: '2 of its own',
    },
    {
      when: 'the named Pod is its own beside another that carries the label',
      world: { hashedPods: [mine('t')], namedPod: mine('s') },
      is: '2 of its own',
    },
    {
      when: 'two are its own and the recorded one is gone',
      shape: { note: 'old' },
      world: { hashedPods: [mine('s'), mine('t')] },
      is: '2 of its own; forget the note',
    },
    {
      when: 'a Pod with its label has another owner: it does not count',
      world: { hashedPods: [pod('t', { ...carries, ownerReferences: [theirs] })], namedPod: mine('s') },
      is: '1 of its own; uses s',
    },
    {
      when: 'it is suspended and its Pod runs',
      shape: { spec: suspended },
      world: { namedPod: mine('s') },
      is: '1 of its own; delete pod s (failed to delete pod); uses s',
    },
    {
      when: 'it is suspended and its Pod is going',
      shape: { spec: suspended },
      world: { namedPod: mine('s', { deletionTimestamp: '2026-01-01T00:00:00Z' }) },
      is: '1 of its own; uses s',
    },
    { when: 'it is suspended and has no Pod', shape: { spec: suspended }, is: '0 of its own' },
    {
      when: 'it is suspended and its recorded Pod is gone: the record goes once',
      shape: { spec: suspended, note: 'old' },
      is: '0 of its own; forget the note',
    },
    {
      when: 'it is suspended and the recorded Pod is not its own: it lives on',
      shape: { spec: suspended, note: 'old' },
      world: { namedPod: pod('old', { ownerReferences: [theirs] }) },
      is: '0 of its own; forget the note; uses old',
    },
    {
      when: 'it is suspended and a Pod of its name is not its own',
      shape: { spec: suspended },
      world: { namedPod: pod('s') },
      is: '0 of its own; uses s',
    },
  ])('when $when', ({ shape = {}, world, is }) => {
    expect(does(plan(shape, world))).toBe(is)
  })

  it('is deleted for a suspension only as long as it is there', () => {
    const { actions } = plan({ spec: suspended }, { namedPod: mine('s') })
    expect(actions).toMatchObject([{ kind: 'delete', missingIsFine: false }])
  })

  it('that is taken over keeps its other owners and labels', () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x' }
    const namedPod = pod('s', { labels: { [labels.adoptable]: 'true', a: 'b' }, ownerReferences: [owner] })
    expect(plan({}, { namedPod }).actions).toMatchObject([
      { patch: { metadata: { labels: { [labels.nameHash]: 'h' }, ownerReferences: [owner, reference] } } },
    ])
    const bare = pod('s', { labels: { [labels.adoptable]: 'true' } })
    expect(plan({}, { namedPod: bare }).actions).toMatchObject([
      { patch: { metadata: { ownerReferences: [reference] } } },
    ])
  })

  it('that is its own gets a patch of what changed, and no owner', () => {
    expect(plan({}, { namedPod: mine('s', { labels: {} }) }).actions).toMatchObject([
      { patch: { metadata: { labels: { [labels.nameHash]: 'h' } } } },
    ])
    const [action] = plan({}, { namedPod: mine('s', { labels: {} }) }).actions
    expect(JSON.stringify(action)).not.toContain('ownerReferences')
  })

  it.each<{ when: string; shape: Shape; is: object }>([
    {
      when: 'the template has no more',
      shape: {},
      is: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 's', namespace: 'n', ...carries, ownerReferences: [reference] },
        spec: { containers: [{ name: 'main' }] },
      },
    },
    {
      when: 'a record of an earlier Pod is left: the new one has its own name',
      shape: { note: 'old', metadata: { namespace: undefined } },
      is: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 's', ...carries, ownerReferences: [reference] },
        spec: { containers: [{ name: 'main' }] },
      },
    },
    {
      when: 'the template has annotations and volumes',
      shape: {
        spec: {
          podTemplate: {
            metadata: { annotations: { a: 'b' } },
            spec: {
              containers: [],
              volumes: [
                { name: 'data', emptyDir: {} },
                { name: 'tmp', emptyDir: {} },
              ],
            },
          },
          volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {} }, { spec: {} }],
        },
      },
      is: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name: 's',
          namespace: 'n',
          ...carries,
          annotations: { a: 'b', [annotations.propagatedAnnotations]: 'a' },
          ownerReferences: [reference],
        },
        spec: {
          containers: [],
          volumes: [
            { name: 'tmp', emptyDir: {} },
            { name: 'data', persistentVolumeClaim: { claimName: 'data-s' } },
            { name: '', persistentVolumeClaim: { claimName: '-s' } },
          ],
        },
      },
    },
    {
      when: 'it has volumes of its own alone',
      shape: { spec: { volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: {} }] } },
      is: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 's', namespace: 'n', ...carries, ownerReferences: [reference] },
        spec: {
          containers: [{ name: 'main' }],
          volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data-s' } }],
        },
      },
    },
  ])('is made whole when $when', ({ shape, is }) => {
    const made = plan(shape).actions.find(({ kind }) => kind === 'create')
    expect(made).toStrictEqual({ kind: 'create', child: 'pod', object: is })
  })

  it.each([
    { when: 'nothing is recorded', sandbox: sandbox(), is: 's' },
    { when: 'an earlier controller recorded one', sandbox: sandbox({ note: 'old' }), is: 'old' },
    { when: 'the record is empty', sandbox: sandbox({ note: '' }), is: 's' },
    { when: 'the Sandbox has no name yet', sandbox: { spec: {} } as Sandbox, is: '' },
  ])('has the name "$is" when $when', ({ sandbox, is }) => {
    expect(podNameOf(sandbox)).toBe(is)
  })
})

import type { ObjectMeta } from '@corral/resources'
import { expect, it } from 'vitest'
import { type GarbagePlan, type OwnerState, planGarbage } from './garbage-plan.js'

const owner = (uid: string): { apiVersion: string; kind: string; name: string; uid: string } => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  name: uid,
  uid,
})
const states: Record<string, OwnerState> = { alive: 'alive', gone: 'gone', waiting: 'deletingForeground' }

it.each<{ when: string; metadata: ObjectMeta; dependents?: ObjectMeta[]; does: GarbagePlan }>([
  { when: 'it has no owner', metadata: {}, does: { action: 'keep' } },
  { when: 'its owner lives', metadata: { ownerReferences: [owner('alive')] }, does: { action: 'keep' } },
  {
    when: 'its only owner is gone',
    metadata: { ownerReferences: [owner('gone')] },
    does: { action: 'delete', propagationPolicy: 'Background' },
  },
  {
    when: 'one of two owners is gone',
    metadata: { ownerReferences: [owner('gone'), owner('alive')] },
    does: { action: 'dropOwners', uids: ['gone'] },
  },
  {
    when: 'its owner waits for it',
    metadata: { ownerReferences: [owner('waiting')] },
    does: { action: 'delete', propagationPolicy: 'Background' },
  },
  {
    when: 'its owner waits and it has dependents itself',
    metadata: { ownerReferences: [owner('waiting')] },
    dependents: [{}],
    does: { action: 'delete', propagationPolicy: 'Foreground' },
  },
  {
    when: 'it is already being deleted',
    metadata: { deletionTimestamp: 't', ownerReferences: [owner('gone')] },
    does: { action: 'keep' },
  },
  {
    when: 'it is to leave its dependents',
    metadata: { deletionTimestamp: 't', finalizers: ['orphan'] },
    does: { action: 'orphanDependents' },
  },
  {
    when: 'it waits for nobody',
    metadata: { uid: 'me', deletionTimestamp: 't', finalizers: ['foregroundDeletion'] },
    dependents: [{ ownerReferences: [owner('me')] }],
    does: { action: 'removeFinalizer', finalizer: 'foregroundDeletion' },
  },
  {
    when: 'it waits for a dependent that blocks',
    metadata: { uid: 'me', deletionTimestamp: 't', finalizers: ['foregroundDeletion'] },
    dependents: [{ ownerReferences: [{ ...owner('me'), blockOwnerDeletion: true }] }],
    does: { action: 'collectDependents' },
  },
])('when $when', ({ metadata, dependents = [], does }) => {
  expect(planGarbage({ metadata, dependents, ownerState: (uid) => states[uid] ?? 'gone' })).toEqual(does)
})

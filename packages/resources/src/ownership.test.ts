import { expect, it } from 'vitest'
import { Sandboxes } from './kinds.js'
import { controllerOf, isControlledBy, ownerReferenceTo } from './ownership.js'

const owner = { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'a', uid: 'u1' } }

it('makes a controller reference that isControlledBy recognises', () => {
  const child = {
    metadata: {
      ownerReferences: [{ ...ownerReferenceTo(owner), controller: false, uid: 'u0' }, ownerReferenceTo(owner)],
    },
  }
  expect(controllerOf(child)).toEqual({
    apiVersion: 'v1',
    kind: 'Thing',
    name: 'a',
    uid: 'u1',
    controller: true,
    blockOwnerDeletion: true,
  })
  expect(isControlledBy(child, owner)).toBe(true)
  expect(isControlledBy(child, { metadata: { name: 'a', uid: 'u2' } })).toBe(false)
  expect(isControlledBy({ metadata: {} }, { metadata: {} })).toBe(false)
})

it('takes version and kind from the descriptor, and refuses an owner that was never stored', () => {
  expect(ownerReferenceTo(owner, Sandboxes)).toMatchObject({ apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox' })
  expect(() => ownerReferenceTo({ metadata: { name: 'a' } }, Sandboxes)).toThrow(TypeError)
})

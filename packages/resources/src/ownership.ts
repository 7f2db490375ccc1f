import type { KubeObject, OwnerReference, ResourceKind } from './meta.js'

/** The reference to the one owner that controls the object. */
export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata?.ownerReferences?.find((reference) => reference.controller === true)
}

/** Whether `owner` controls the object, judged by uid: a recreated owner of the same name is another owner. */
export function isControlledBy(object: KubeObject, owner: KubeObject): boolean {
  const uid = owner.metadata?.uid
  return uid !== undefined && controllerOf(object)?.uid === uid
}

/** A controller reference to `owner`, which must have been read from a server. Throws without name and uid. */
export function ownerReferenceTo(owner: KubeObject, kind?: ResourceKind): OwnerReference {
  const { name, uid } = owner.metadata ?? {}
  const apiVersion = kind?.apiVersion ?? owner.apiVersion
  const kindName = kind?.kind ?? owner.kind
  if (!name || !uid || !apiVersion || !kindName) {
    throw new TypeError('an owner reference needs apiVersion, kind, name and uid of its owner')
  }
  return { apiVersion, kind: kindName, name, uid, controller: true, blockOwnerDeletion: true }
}

import { controllerOf, EXTENSIONS_GROUP, type KubeObject, type OwnerReference, type Stored } from '@corral/resources'
import { labels } from './names.js'

/** Whose an object is, seen from one owner. A same-named earlier owner with another uid counts as `other`. */
export type Ownership = { kind: 'owned' } | { kind: 'unowned' } | { kind: 'other'; controller: OwnerReference }

export function ownershipOf(object: KubeObject, owner: Stored<KubeObject>): Ownership {
  const controller = controllerOf(object)
  if (!controller) return { kind: 'unowned' }
  return controller.uid === owner.metadata.uid ? { kind: 'owned' } : { kind: 'other', controller }
}

/** Whether the reference names the given extensions kind, in whatever version it was written. */
export function isExtensionsOwner(reference: OwnerReference | undefined, kind?: string): boolean {
  if (!reference || groupOf(reference.apiVersion) !== EXTENSIONS_GROUP) return false
  return kind === undefined || reference.kind === kind
}

/** The pool a Sandbox belongs to, by its controller. */
export function poolOf(sandbox: KubeObject): string | undefined {
  const controller = controllerOf(sandbox)
  return isExtensionsOwner(controller, 'SandboxWarmPool') ? controller?.name : undefined
}

export function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/')
  return slash < 0 ? '' : apiVersion.slice(0, slash)
}

/** An unowned object may be taken over only if it is marked for that, or it already carries our hash. */
export function mayAdopt(object: KubeObject, nameHash: string): boolean {
  const has = object.metadata?.labels
  return has?.[labels.adoptable] === 'true' || has?.[labels.nameHash] === nameHash
}

export function cannotAdopt(what: string, name: string): string {
  return (
    `cannot adopt unowned ${what} ${quote(name)}: missing required pool authorization label ` +
    `(${quote(labels.adoptable)}) or sandbox tracking label (${quote(labels.nameHash)})`
  )
}

export function ownedByOther(what: string, name: string, controller: OwnerReference, sandbox: string): string {
  return (
    `${what} ${quote(name)} is owned by ${controller.kind}/${controller.name} (UID: ${controller.uid}), ` +
    `not by sandbox ${quote(sandbox)}`
  )
}

/** A name in double quotes, escaped: the form in which messages carry names. */
export function quote(text: string): string {
  return JSON.stringify(text)
}

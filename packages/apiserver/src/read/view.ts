import type { KubeObject } from '@corral/resources'
import type { KindDefinition } from '../registry/kind-definition.js'
import { freezeJson } from '../store/plain-json.js'

const views = new WeakMap<KindDefinition, WeakMap<KubeObject, KubeObject>>()

/** A stored object in the kind's version, frozen. Made once per object and version, so its JSON is too. */
export function viewOf(kind: KindDefinition, stored: KubeObject): KubeObject {
  if (!kind.toVersion || kind.isOwnView?.(stored)) return stored
  let byObject = views.get(kind)
  if (!byObject) {
    byObject = new WeakMap()
    views.set(kind, byObject)
  }
  let view = byObject.get(stored)
  if (!view) {
    view = freezeJson(kind.toVersion(stored))
    byObject.set(stored, view)
  }
  return view
}

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

/** How many objects are asked about at a time. */
const VIEWS_AT_ONCE = 200

/** Makes views that somebody else has to help with, so that `viewOf` finds them made. */
export async function prepareViews(kind: KindDefinition, stored: readonly KubeObject[]): Promise<void> {
  if (!kind.loadViews) return
  const missing = stored.filter((object) => !kind.isOwnView?.(object) && !views.get(kind)?.has(object))
  for (let start = 0; start < missing.length; start += VIEWS_AT_ONCE) {
    const some = missing.slice(start, start + VIEWS_AT_ONCE)
    await kind.loadViews(some)
    for (const object of some) viewOf(kind, object)
  }
}

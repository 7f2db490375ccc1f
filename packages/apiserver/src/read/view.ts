import type { KubeObject } from '@corral/resources'
import { freezeJson } from '../objects/plain-json.js'
import type { KindDefinition } from '../registry/kind-definition.js'

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

/** Converts through a webhook first, so that `viewOf` finds the converted objects. */
export async function prepareViews(kind: KindDefinition, stored: readonly KubeObject[]): Promise<void> {
  if (!kind.loadConversions) return
  const missing = stored.filter((object) => !kind.isOwnView?.(object) && !views.get(kind)?.has(object))
  for (let start = 0; start < missing.length; start += VIEWS_AT_ONCE) {
    const some = missing.slice(start, start + VIEWS_AT_ONCE)
    await kind.loadConversions(some)
    for (const object of some) viewOf(kind, object)
  }
}

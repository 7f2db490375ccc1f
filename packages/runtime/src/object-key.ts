import type { KubeObject } from '@corral/resources'
import type { ObjectKey } from './reconcile.js'

/** `namespace/name`, or the bare name where there is no namespace. */
export function joinKey(namespace: string | undefined, name: string): ObjectKey {
  return namespace ? `${namespace}/${name}` : name
}

/** Names contain no slash, so the first one ends the namespace. */
export function splitKey(key: ObjectKey): { namespace: string; name: string } {
  const slash = key.indexOf('/')
  return slash < 0 ? { namespace: '', name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}

export function keyOf(object: KubeObject): ObjectKey {
  return joinKey(object.metadata?.namespace, object.metadata?.name ?? '')
}

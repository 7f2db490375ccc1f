import { KubeError, type ResourceKind } from '@corral/resources'

/** Path of a collection, an object or a sub-resource; parts are percent-encoded where they need it. */
export function resourcePath(kind: ResourceKind, namespace?: string, name?: string, subresource?: string): string {
  let path = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`
  if (kind.namespaced && namespace !== undefined) path += `/namespaces/${encode(namespace)}`
  path += `/${kind.plural}`
  if (name !== undefined) path += `/${encode(name)}`
  if (subresource !== undefined) path += `/${subresource}`
  return path
}

/**
 * Path of one object. Refuses a name that is empty or, from plain JavaScript, undefined: the path would be that of all
 * objects, and a delete would take them all.
 */
export function objectPath(
  kind: ResourceKind,
  namespace: string | undefined,
  name: string,
  subresource?: string,
): string {
  if (typeof name !== 'string' || name === '') {
    throw new KubeError('BadRequest', `a ${kind.kind} without a name was asked for`)
  }
  return resourcePath(kind, namespace, name, subresource)
}

const plain = /^[A-Za-z0-9.\-_]+$/

function encode(part: string): string {
  // `.` and `..` would be folded away by URL parsers on the road.
  if (part === '.' || part === '..') return part.replaceAll('.', '%2E')
  return plain.test(part) ? part : encodeURIComponent(part)
}

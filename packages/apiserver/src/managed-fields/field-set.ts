import { isRecord, type JsonRecord } from '../schema/json-value.js'

/**
 * A set of field paths in the shape of `fieldsV1`: keys are path elements (`f:spec`, `k:{"name":"a"}`, `v:"x"`), an
 * empty node is a member, a node with `.` is a member that also has members below. Sets are never changed in place.
 */
export interface FieldSet {
  readonly [element: string]: FieldSet
}

/** A path element is text, so `__proto__` could only come in as `f:__proto__`; plain objects are safe here. */
type MutableSet = { [element: string]: FieldSet }

/** The set that holds just the place itself. */
export const memberSet: FieldSet = Object.freeze({})

const SELF = '.'

/** Whether the place a node stands for is itself in the set. */
export function isMember(node: FieldSet): boolean {
  if (node[SELF] !== undefined) return true
  for (const _ in node) return false
  return true
}

/** A node from its parts; undefined when nothing is in it. */
export function fieldNode(self: boolean, children: Readonly<Record<string, FieldSet>>): FieldSet | undefined {
  for (const _ in children) return self ? { [SELF]: memberSet, ...children } : children
  return self ? memberSet : undefined
}

/** An operation on two sets. */
export type SetOperation = (a: FieldSet | undefined, b: FieldSet | undefined) => FieldSet | undefined

/** Everything in either set; `a` itself when `b` adds nothing. `inner` does the same for what is below. */
export function unionSets(
  a: FieldSet | undefined,
  b: FieldSet | undefined,
  inner: SetOperation = unionSets,
): FieldSet | undefined {
  if (a === undefined || a === b) return b
  if (b === undefined) return a
  let children: MutableSet | undefined
  for (const key in b) {
    if (key === SELF) continue
    const both = inner(a[key], b[key])!
    if (both === a[key]) continue
    children ??= childrenOf(a)
    children[key] = both
  }
  const self = isMember(a) || isMember(b)
  if (!children && self === isMember(a)) return a
  return fieldNode(self, children ?? childrenOf(a))
}

function childrenOf(set: FieldSet): MutableSet {
  const children: MutableSet = {}
  for (const key in set) if (key !== SELF) children[key] = set[key]!
  return children
}

/**
 * What is in `a` and not in `b`, `a` itself when they share nothing; removing a place leaves what is below it. `inner`
 * does the same for that.
 */
export function subtractSets(
  a: FieldSet | undefined,
  b: FieldSet | undefined,
  inner: SetOperation = subtractSets,
): FieldSet | undefined {
  if (a === undefined || b === undefined) return a
  if (a === b) return undefined
  const losesSelf = isMember(a) && isMember(b)
  let lessened: Map<string, FieldSet | undefined> | undefined
  for (const key in b) {
    if (key === SELF || a[key] === undefined) continue
    const left = inner(a[key], b[key])
    if (left === a[key]) continue
    lessened ??= new Map()
    lessened.set(key, left)
  }
  if (!lessened) return losesSelf ? fieldNode(false, childrenOf(a)) : a
  const children: MutableSet = {}
  for (const key in a) {
    if (key === SELF) continue
    const left = lessened.has(key) ? lessened.get(key) : a[key]
    if (left !== undefined) children[key] = left
  }
  return fieldNode(isMember(a) && !losesSelf, children)
}

/** What is in both. */
export function intersectSets(a: FieldSet | undefined, b: FieldSet | undefined): FieldSet | undefined {
  if (a === undefined || b === undefined) return undefined
  if (a === b) return a
  const children: MutableSet = {}
  for (const key in a) {
    if (key === SELF) continue
    const both = intersectSets(a[key], b[key])
    if (both !== undefined) children[key] = both
  }
  return fieldNode(isMember(a) && isMember(b), children)
}

/** The set without top-level fields that `isIgnored`. */
export function withoutFields(
  set: FieldSet | undefined,
  isIgnored: ((field: string) => boolean) | undefined,
): FieldSet | undefined {
  if (!set || !isIgnored) return set
  const children: MutableSet = {}
  let changed = false
  for (const key in set) {
    if (key.startsWith('f:') && isIgnored(key.slice(2))) changed = true
    else if (key !== SELF) children[key] = set[key]!
  }
  return changed ? fieldNode(set[SELF] !== undefined, children) : set
}

/** Type and server-owned metadata, which have no manager. */
export const unmanagedFields: FieldSet = {
  'f:apiVersion': memberSet,
  'f:kind': memberSet,
  'f:metadata': {
    '.': memberSet,
    'f:name': memberSet,
    'f:namespace': memberSet,
    'f:creationTimestamp': memberSet,
    'f:selfLink': memberSet,
    'f:uid': memberSet,
    'f:clusterName': memberSet,
    'f:generation': memberSet,
    'f:managedFields': memberSet,
    'f:resourceVersion': memberSet,
  },
}

/** The set without type and server-owned metadata. */
export function stripUnmanaged(set: FieldSet | undefined): FieldSet | undefined {
  return subtractSets(set, unmanagedFields)
}

/** Whether two sets hold the same paths. */
export function sameSets(a: FieldSet | undefined, b: FieldSet | undefined): boolean {
  if (a === b) return true
  if (a === undefined || b === undefined || isMember(a) !== isMember(b)) return false
  let count = 0
  for (const key in a) {
    if (key === SELF) continue
    if (!sameSets(a[key], b[key])) return false
    count++
  }
  for (const key in b) if (key !== SELF) count--
  return count === 0
}

/** The set with its keys in order, as Kubernetes writes it; the same set when they are already, or known to be. */
export function sortSet(set: FieldSet, isKnown: (set: FieldSet) => boolean = () => false): FieldSet {
  if (isKnown(set)) return set
  let isSorted = true
  let previous = ''
  for (const key in set) {
    if (key < previous || sortSet(set[key]!, isKnown) !== set[key]) {
      isSorted = false
      break
    }
    previous = key
  }
  if (isSorted) return set
  const sorted: MutableSet = {}
  for (const key of Object.keys(set).sort()) sorted[key] = sortSet(set[key]!, isKnown)
  return sorted
}

/** `fieldsV1` of an entry if it has the right shape; undefined for anything else. */
export function parseFieldSet(fields: unknown): FieldSet | undefined {
  return isFieldSet(fields, 0) ? fields : undefined
}

function isFieldSet(value: unknown, depth: number): value is FieldSet {
  if (!isRecord(value) || depth > 100) return false
  for (const key in value) {
    if (key !== SELF && !(key[1] === ':' && 'fkvi'.includes(key[0]!))) return false
    if (!isFieldSet(value[key], depth + 1)) return false
  }
  return true
}

/** Every member as a path of elements. */
export function* memberPaths(set: FieldSet, prefix: readonly string[] = []): Iterable<readonly string[]> {
  if (prefix.length > 0 && isMember(set)) yield prefix
  for (const key in set) if (key !== SELF) yield* memberPaths(set[key]!, [...prefix, key])
}

/** A path as error messages show it: `.spec.containers[name="a"].image`. */
export function pathText(path: readonly string[]): string {
  return path.map(elementText).join('')
}

function elementText(element: string): string {
  const text = element.slice(2)
  if (element.startsWith('f:')) return `.${text}`
  if (element.startsWith('v:')) return `[=${text}]`
  if (element.startsWith('i:')) return `[${text}]`
  // Keys were written by us or checked when they came in; what does not parse is shown as it is.
  const keys = parseKeys(text)
  return keys ? `[${Object.entries(keys).map(([name, value]) => `${name}=${JSON.stringify(value)}`)}]` : `[${text}]`
}

/** The key fields of a `k:` element's text. */
export function parseKeys(text: string): JsonRecord | undefined {
  try {
    const keys: unknown = JSON.parse(text)
    return isRecord(keys) ? keys : undefined
  } catch {
    return undefined // not JSON, so no key can match it
  }
}

import { pointerMembers } from './field-table.js'
import { parseQuantity } from './quantity.js'

/**
 * Whether two values mean the same to Kubernetes: objects by members whatever their order; absent equal to null, to an
 * empty list and to an empty map, though not to an empty object whose presence says something (`emptyDir: {}`); quantities (`0.5` and `500m`) by value where the member holds resources.
 */
export function semanticEqual(a: unknown, b: unknown): boolean {
  return equal(a, b, '')
}

/** Members whose texts are quantities; elsewhere `1` and `1.0` are different texts. */
const QUANTITY_PARENTS = new Set(['limits', 'requests', 'capacity', 'allocatable', 'overhead', 'allocatedResources'])
const QUANTITY_MEMBERS = new Set(['sizeLimit', 'divisor'])

function equal(a: unknown, b: unknown, member: string, parent = ''): boolean {
  if (a === b) return true
  if (isEmpty(a, member) && isEmpty(b, member)) return true
  if (QUANTITY_PARENTS.has(parent) || QUANTITY_MEMBERS.has(member)) {
    const same = sameQuantity(a, b)
    if (same !== undefined) return same
  }
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    return a.every((item, i) => equal(item, b[i], '', member))
  }
  if (!isRecord(a) || !isRecord(b)) return false
  const keys = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...keys].every((key) => equal(a[key], b[key], key, member))
}

function sameQuantity(a: unknown, b: unknown): boolean | undefined {
  if (!isText(a) || !isText(b)) return undefined
  const left = parseQuantity(a)
  const right = parseQuantity(b)
  return left && right ? left.nanos === right.nanos : undefined
}

const isText = (value: unknown): value is string | number => typeof value === 'string' || typeof value === 'number'

function isEmpty(value: unknown, member: string): boolean {
  if (value === undefined || value === null) return true
  if (Array.isArray(value)) return value.length === 0
  return isRecord(value) && Object.keys(value).length === 0 && !pointerMembers().has(member)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Whether two values mean the same to Kubernetes: absent, null and empty count as equal, key order does not matter, and
 * quantities compare by value (`1000m` is `1`).
 */
export function semanticEqual(a: unknown, b: unknown): boolean {
  if (a === b || (isEmpty(a) && isEmpty(b))) return true
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, at) => semanticEqual(item, b[at]))
  }
  if (isRecord(a) && isRecord(b)) {
    for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
      const same = quantityMaps.has(key) ? equalQuantities(a[key], b[key]) : semanticEqual(a[key], b[key])
      if (!same) return false
    }
    return true
  }
  return false
}

/** Fields of pod and claim specs whose values are maps of quantities. */
const quantityMaps = new Set(['limits', 'requests', 'overhead'])

function equalQuantities(a: unknown, b: unknown): boolean {
  if (!isRecord(a) || !isRecord(b)) return semanticEqual(a, b)
  const keys = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...keys].every((key) => a[key] === b[key] || sameQuantity(a[key], b[key]))
}

const suffixes: Record<string, number> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
}

function sameQuantity(a: unknown, b: unknown): boolean {
  const left = quantity(a)
  return left !== undefined && left === quantity(b)
}

function quantity(value: unknown): number | undefined {
  const match = /^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)$/.exec(String(value))
  const factor = match && suffixes[match[2] ?? '']
  return match && factor !== undefined && factor !== null ? Number(match[1]) * factor : undefined
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null) return true
  if (Array.isArray(value)) return value.length === 0
  return isRecord(value) && Object.keys(value).length === 0
}

/** One place where two columns disagree: the path in the observation and both values. */
export interface Difference {
  readonly path: string
  readonly ours: unknown
  readonly upstream: unknown
}

/** Every path at which two observations differ, in the order of the first. */
export function differencesOf(ours: unknown, upstream: unknown, path = ''): Difference[] {
  if (Object.is(ours, upstream)) return []
  if (isObject(ours) && isObject(upstream)) {
    const keys = [...new Set([...Object.keys(ours), ...Object.keys(upstream)])]
    return keys.flatMap((key) => differencesOf(ours[key], upstream[key], path ? `${path}.${key}` : key))
  }
  if (Array.isArray(ours) && Array.isArray(upstream)) {
    const length = Math.max(ours.length, upstream.length)
    return Array.from({ length }, (_, index) => index).flatMap((index) =>
      differencesOf(ours[index], upstream[index], `${path}[${index}]`),
    )
  }
  return [{ path, ours, upstream }]
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

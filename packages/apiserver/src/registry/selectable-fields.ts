import type { KubeObject } from '@corral/resources'

/** Reads a dotted path as field selectors compare it: a missing value is the empty string. */
export function fieldReader(path: string): (object: KubeObject) => string {
  const keys = path.split('.').filter((key) => key !== '')
  return (object) => {
    let value: unknown = object
    for (const key of keys) {
      if (typeof value !== 'object' || value === null) return ''
      value = (value as Record<string, unknown>)[key]
    }
    return value === undefined || value === null ? '' : String(value)
  }
}

/** Readers for several paths, as a kind's `selectable`. */
export function fieldReaders(...paths: string[]): Record<string, (object: KubeObject) => string> {
  return Object.fromEntries(paths.map((path) => [path, fieldReader(path)]))
}

const cache = new WeakMap<object, Uint8Array>()

/** The object as JSON bytes, made once per object. Only for frozen objects: a later change would not be seen. */
export function jsonBytes(object: object): Uint8Array {
  let bytes = cache.get(object)
  if (!bytes) {
    bytes = Buffer.from(JSON.stringify(object))
    cache.set(object, bytes)
  }
  return bytes
}

/** Size of the object's JSON: exact where it has been made already, else close enough for a limit. */
export function sizeInBytes(object: object): number {
  return cache.get(object)?.length ?? measure(object)
}

function measure(value: unknown): number {
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object' || value === null) return 5
  let size = 2
  if (Array.isArray(value)) for (const item of value) size += measure(item) + 1
  else for (const key in value) size += key.length + 4 + measure((value as Record<string, unknown>)[key])
  return size
}

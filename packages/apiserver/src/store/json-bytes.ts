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

/** Remembers bytes that are known to be the object's JSON, for instance those just read from disk. */
export function rememberJson(object: object, bytes: Uint8Array): void {
  cache.set(object, bytes)
}

/** Size of the object's JSON where it has been made already, else an estimate. */
export function knownSizeBytes(object: object): number {
  return cache.get(object)?.length ?? 2048
}

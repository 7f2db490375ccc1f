const OFFSET_BASIS = 0x811c9dc5
const PRIME = 0x01000193

/** 32-bit FNV-1a of the text's UTF-8 bytes as eight hex digits: short enough for a label value. */
export function nameHash(text: string): string {
  let hash = OFFSET_BASIS
  for (const byte of new TextEncoder().encode(text)) {
    hash ^= byte
    hash = Math.imul(hash, PRIME)
  }
  return (hash >>> 0).toString(16).padStart(8, '0')
}

/** 32-bit FNV-1a of the text as eight hex digits: the short, label-safe form of a name. */
export function nameHash(text: string): string {
  let hash = 0x811c9dc5
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193)
  return (hash >>> 0).toString(16).padStart(8, '0')
}

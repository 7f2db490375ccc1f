/** The few DER forms certificates are made of (X.690). Every function returns a complete element. */

function element(tag: number, content: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content])
}

function lengthOf(count: number): Buffer {
  if (count < 0x80) return Buffer.from([count])
  const bytes = count < 0x100 ? [count] : [count >> 8, count & 0xff]
  if (count > 0xffff) throw new RangeError('DER elements here stay below 64 KiB')
  return Buffer.from([0x80 | bytes.length, ...bytes])
}

export const sequence = (...parts: readonly Uint8Array[]): Buffer => element(0x30, Buffer.concat(parts))
export const setOf = (...parts: readonly Uint8Array[]): Buffer => element(0x31, Buffer.concat(parts))
export const octetString = (content: Uint8Array): Buffer => element(0x04, content)
export const utf8String = (text: string): Buffer => element(0x0c, Buffer.from(text, 'utf8'))
export const isTrue: Buffer = element(0x01, Buffer.from([0xff]))

/** Content behind a context-specific tag; `isPrimitive` where the content is a bare value, not an element. */
export function tagged(tag: number, content: Uint8Array, isPrimitive = false): Buffer {
  return element((isPrimitive ? 0x80 : 0xa0) | tag, content)
}

/** A whole number that is not negative, from its bytes with the highest first. */
export function integer(bytes: Uint8Array): Buffer {
  const from = bytes.findIndex((byte) => byte !== 0)
  const digits = from < 0 ? Buffer.from([0]) : bytes.subarray(from)
  // The highest bit is the sign.
  return element(0x02, digits[0]! < 0x80 ? digits : Buffer.concat([Buffer.from([0]), digits]))
}

/** Bits in whole bytes but for the `unusedBits` lowest of the last one. */
export function bitString(bytes: Uint8Array, unusedBits = 0): Buffer {
  return element(0x03, Buffer.concat([Buffer.from([unusedBits]), bytes]))
}

/** An object identifier from its dotted text. */
export function objectId(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number)
  return element(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]))
}

function base128(value: number): number[] {
  const digits = [value & 0x7f]
  for (let left = value >> 7; left > 0; left >>= 7) digits.unshift(0x80 | (left & 0x7f))
  return digits
}

/** A time in whole seconds, in the form X.509 asks for: two digits for the year up to 2049, four from then on. */
export function time(value: Date): Buffer {
  const text = `${value.toISOString().slice(0, 19).replaceAll(/[-T:]/g, '')}Z`
  return value.getUTCFullYear() < 2050 ? element(0x17, Buffer.from(text.slice(2))) : element(0x18, Buffer.from(text))
}

/** One field of an encoded message: its number, and its bytes or its number. */
export interface Field {
  readonly number: number
  readonly value: Uint8Array | bigint
}

/** Takes an encoded message apart, one level deep. Throws `RangeError` where it ends too early. */
export function protobufFields(message: Uint8Array): Field[] {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength)
  const fields: Field[] = []
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes.readUInt8(at)
      at += 1
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
  }
  const slice = (length: number): Uint8Array => {
    if (at + length > bytes.length) throw new RangeError('the message ends inside a field')
    at += length
    return bytes.subarray(at - length, at)
  }
  while (at < bytes.length) {
    const key = Number(varint())
    const wire = key & 7
    const value = wire === 0 ? varint() : slice(wire === 1 ? 8 : wire === 5 ? 4 : Number(varint()))
    fields.push({ number: key >>> 3, value })
  }
  return fields
}

/** Every occurrence of a field that holds bytes, text or a message. */
export function bytesOf(message: Uint8Array, number: number): Uint8Array[] {
  return protobufFields(message).flatMap(({ number: found, value }) =>
    found === number && typeof value !== 'bigint' ? [value] : [],
  )
}

/** A text field; empty where it is absent, as protobuf has it. */
export function textOf(message: Uint8Array, number: number): string {
  return Buffer.from(bytesOf(message, number).at(-1) ?? []).toString()
}

import { KubeError } from '@corral/resources'

/** One field as it stands on the wire. `value` is a number for varints and fixed ones, bytes for the rest. */
export interface WireField {
  readonly number: number
  readonly value: number | bigint | Uint8Array
}

const VARINT = 0
const FIXED64 = 1
const BYTES = 2
const FIXED32 = 5

/** A body that is not what it claims to be. */
export function malformed(reason: string): KubeError {
  return new KubeError('BadRequest', `the object provided is not valid protobuf: ${reason}`, { status: 400 })
}

/** The fields of a message in wire order. Throws `BadRequest` for bytes that are no message. */
export function* readFields(bytes: Uint8Array): Iterable<WireField> {
  const reader = new WireReader(bytes)
  while (!reader.isDone) {
    const tag = Number(reader.varint())
    const number = Math.floor(tag / 8)
    if (number === 0) throw malformed('field number 0')
    switch (tag % 8) {
      case VARINT:
        yield { number, value: reader.varint() }
        break
      case FIXED64:
        yield { number, value: reader.double() }
        break
      case BYTES:
        yield { number, value: reader.bytes(Number(reader.varint())) }
        break
      case FIXED32:
        yield { number, value: reader.float() }
        break
      default:
        throw malformed(`wire type ${tag % 8}`)
    }
  }
}

class WireReader {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  get isDone(): boolean {
    return this.#at >= this.#bytes.length
  }

  /** A number while it fits, a bigint beyond 2^53 and for negative values, which take ten bytes. */
  varint(): number | bigint {
    let small = 0
    for (let i = 0; i < 7; i++) {
      const byte = this.#next()
      small += (byte & 0x7f) * 2 ** (7 * i)
      if (byte < 0x80) return small
    }
    let large = BigInt(small)
    for (let i = 7; i < 10; i++) {
      const byte = this.#next()
      large |= BigInt(byte & 0x7f) << BigInt(7 * i)
      if (byte < 0x80) return BigInt.asIntN(64, large)
    }
    throw malformed('a number is longer than ten bytes')
  }

  bytes(length: number): Uint8Array {
    const end = this.#at + length
    if (!(length >= 0) || end > this.#bytes.length) throw malformed('a field is longer than the message')
    const slice = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return slice
  }

  double(): number {
    const slice = this.bytes(8)
    return this.#view.getFloat64(slice.byteOffset - this.#bytes.byteOffset, true)
  }

  float(): number {
    const slice = this.bytes(4)
    return this.#view.getFloat32(slice.byteOffset - this.#bytes.byteOffset, true)
  }

  #next(): number {
    const byte = this.#bytes[this.#at++]
    if (byte === undefined) throw malformed('the message ends in the middle of a number')
    return byte
  }
}

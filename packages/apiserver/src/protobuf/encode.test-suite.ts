import type { FieldInfo, FieldTable, FieldType, TypeInfo } from '@corral/resources'

/** Encodes JSON by the same table, the way Go's generated code does: for tests that need bodies that were not recorded. */
export function encodeProtobuf(object: { apiVersion: string; kind: string }, table: FieldTable): Uint8Array {
  const type = table.forKind(object.apiVersion, object.kind)
  if (!type) throw new Error(`no type for ${object.kind}`)
  const { apiVersion, kind, ...rest } = object
  const typeMeta = concat([field(1, utf8(apiVersion)), field(2, utf8(kind))])
  return concat([
    new Uint8Array([0x6b, 0x38, 0x73, 0]),
    field(1, typeMeta),
    field(2, message(rest, type, table)),
    field(3, utf8('')),
    field(4, utf8('')),
  ])
}

type Json = Record<string, unknown>

function message(object: Json, type: TypeInfo, table: FieldTable): Uint8Array {
  const parts: Uint8Array[] = []
  for (const [number, member] of type.protoFields) {
    if ('inlined' in member) {
      const inner = table.type(member.inlined)
      const own = Object.fromEntries(Object.entries(object).filter(([name]) => inner.field(name)))
      if (Object.keys(own).length > 0) parts.push(field(number, message(own, inner, table)))
    } else parts.push(...encodeMember(number, object[member.name], member, table))
  }
  return concat(parts)
}

function encodeMember(number: number, value: unknown, member: FieldInfo, table: FieldTable): Uint8Array[] {
  const { type } = member
  if (type.kind === 'array')
    return ((value ?? []) as unknown[]).map((item) => encodeValue(number, item, type.items, table))
  if (type.kind === 'map') {
    return Object.entries((value ?? {}) as Json).map(([key, item]) =>
      field(number, concat([field(1, utf8(key)), encodeValue(2, item, type.values, table)])),
    )
  }
  if (value !== undefined) return [encodeValue(number, value, type, table)]
  return member.pointer ? [] : encodeZero(number, type)
}

/** Go always writes fields that are no pointers. */
function encodeZero(number: number, type: FieldType): Uint8Array[] {
  if (type.kind === 'ref') return [field(number, new Uint8Array())]
  if (type.kind !== 'scalar') return []
  if (type.scalar === 'string') return [field(number, utf8(''))]
  if (type.scalar === 'int32' || type.scalar === 'int64' || type.scalar === 'boolean') return [varintField(number, 0n)]
  return type.scalar === 'time' || type.scalar === 'microTime' ? [field(number, new Uint8Array())] : []
}

function encodeValue(number: number, value: unknown, type: FieldType, table: FieldTable): Uint8Array {
  switch (type.kind) {
    case 'ref':
      return field(number, reference(value, table.type(type.ref), table))
    case 'array':
      return field(number, concat((value as unknown[]).map((item) => encodeValue(1, item, type.items, table))))
    case 'map':
      throw new Error('a map cannot stand alone')
    case 'scalar':
      return scalar(number, value, type.scalar)
  }
}

function reference(value: unknown, type: TypeInfo, table: FieldTable): Uint8Array {
  if (!type.either) return message(value as Json, type, table)
  if (typeof value === 'boolean') return varintField(1, value ? 1n : 0n)
  const schema = type.field('schema')!
  return encodeValue(schema.protoNumber!, value, schema.type, table)
}

function scalar(number: number, value: unknown, type: string): Uint8Array {
  switch (type) {
    case 'string':
      return field(number, utf8(String(value)))
    case 'bytes':
      return field(number, new Uint8Array(Buffer.from(String(value), 'base64')))
    case 'boolean':
      return varintField(number, value ? 1n : 0n)
    case 'int32':
    case 'int64':
      return varintField(number, BigInt(value as number))
    case 'double': {
      const bytes = new Uint8Array(8)
      new DataView(bytes.buffer).setFloat64(0, value as number, true)
      return concat([varint(BigInt(number * 8 + 1)), bytes])
    }
    case 'quantity':
      return field(number, field(1, utf8(String(value))))
    case 'intOrString':
      return field(
        number,
        typeof value === 'number'
          ? concat([varintField(1, 0n), varintField(2, BigInt(value)), field(3, utf8(''))])
          : concat([varintField(1, 1n), varintField(2, 0n), field(3, utf8(String(value)))]),
      )
    case 'time':
    case 'microTime':
      return field(number, timestamp(String(value)))
    default:
      return field(number, field(1, utf8(JSON.stringify(value))))
  }
}

function timestamp(text: string): Uint8Array {
  const seconds = BigInt(Math.floor(Date.parse(`${text.slice(0, 19)}Z`) / 1000))
  const micros = /\.(\d{6})Z$/.exec(text)?.[1] ?? '0'
  return concat([varintField(1, seconds), varintField(2, BigInt(micros) * 1000n)])
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)
const field = (number: number, bytes: Uint8Array): Uint8Array =>
  concat([varint(BigInt(number * 8 + 2)), varint(BigInt(bytes.length)), bytes])
const varintField = (number: number, value: bigint): Uint8Array => concat([varint(BigInt(number * 8)), varint(value)])

function varint(value: bigint): Uint8Array {
  const bytes: number[] = []
  let rest = BigInt.asUintN(64, value)
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128)
    rest >>= 7n
  }
  return new Uint8Array([...bytes, Number(rest)])
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts))
}

import type { FieldInfo, FieldTable, FieldType, TypeInfo } from '@corral/resources'
import { type JsonRecord, setKey } from '../schema/json-value.js'
import { bytesOf, decodeScalar, isZero, text } from './scalars.js'
import { malformed, readFields, type WireField } from './wire.js'

const MAX_DEPTH = 100

/** A message of a type in the table as the JSON that Go would write for it. */
export function decodeMessage(bytes: Uint8Array, type: TypeInfo, table: FieldTable): JsonRecord {
  const object: JsonRecord = {}
  fillMessage(object, bytes, type, table, 0)
  return object
}

function fillMessage(target: JsonRecord, bytes: Uint8Array, type: TypeInfo, table: FieldTable, depth: number): void {
  if (depth > MAX_DEPTH) throw malformed('messages are nested too deeply')
  for (const wire of readFields(bytes)) {
    const field = type.protoFields.get(wire.number)
    // Fields of a newer client than this table are unknown fields; protobuf gives them no name to report.
    if (!field) continue
    if ('inlined' in field) fillMessage(target, bytesOf(wire.value), table.type(field.inlined), table, depth + 1)
    else addField(target, field, wire, table, depth)
  }
}

function addField(target: JsonRecord, field: FieldInfo, wire: WireField, table: FieldTable, depth: number): void {
  const { type, name } = field
  if (type.kind === 'array') {
    const list = Array.isArray(target[name]) ? (target[name] as unknown[]) : []
    list.push(...decodeItems(type.items, wire, table, depth))
    target[name] = list
    return
  }
  if (type.kind === 'map') {
    const map = (target[name] ?? {}) as JsonRecord
    addEntry(map, type.values, bytesOf(wire.value), table, depth)
    target[name] = map
    return
  }
  const value = decodeValue(type, wire.value, table, depth)
  if (value === undefined) return
  // Non-pointer scalars are always written, so their zero is as good as absent; a pointer's zero was meant.
  if (type.kind === 'scalar' && !field.pointer && isZero(value) && (field.omitEmpty || type.scalar === 'intOrString')) {
    return
  }
  target[name] = value
}

function decodeItems(items: FieldType, wire: WireField, table: FieldTable, depth: number): unknown[] {
  const isNumber = items.kind === 'scalar' && (items.scalar === 'int32' || items.scalar === 'int64')
  if (isNumber && wire.value instanceof Uint8Array) return unpack(wire.value)
  const value = decodeValue(items, wire.value, table, depth)
  return value === undefined ? [] : [value]
}

/** Packed numbers: varints one after the other. */
function unpack(bytes: Uint8Array): number[] {
  const numbers: number[] = []
  let at = 0
  while (at < bytes.length) {
    let end = at
    while (end < bytes.length && bytes[end]! >= 0x80) end++
    // A varint is a message of one field once it has a tag.
    const field = new Uint8Array([8, ...bytes.subarray(at, end + 1)])
    for (const { value } of readFields(field)) numbers.push(Number(value))
    at = end + 1
  }
  return numbers
}

function addEntry(map: JsonRecord, values: FieldType, bytes: Uint8Array, table: FieldTable, depth: number): void {
  let key = ''
  let value: unknown
  for (const wire of readFields(bytes)) {
    if (wire.number === 1) key = text(bytesOf(wire.value))
    else if (wire.number === 2) value = decodeValue(values, wire.value, table, depth)
  }
  setKey(map, key, value ?? zeroOf(values))
}

/** An entry without a value has the zero of its type. */
function zeroOf(type: FieldType): unknown {
  if (type.kind === 'array') return []
  if (type.kind !== 'scalar') return {}
  if (type.scalar === 'boolean') return false
  return type.scalar === 'int32' || type.scalar === 'int64' || type.scalar === 'double' ? 0 : ''
}

function decodeValue(type: FieldType, value: WireField['value'], table: FieldTable, depth: number): unknown {
  switch (type.kind) {
    case 'scalar':
      return decodeScalar(type.scalar, value)
    case 'ref':
      return decodeRef(table.type(type.ref), bytesOf(value), table, depth)
    case 'array':
      return decodeWrapped(type.items, bytesOf(value), table, depth)
    case 'map':
      throw malformed('a map cannot stand alone')
  }
}

/** A list inside a map or list is a message of its own with the items as field 1. */
function decodeWrapped(items: FieldType, bytes: Uint8Array, table: FieldTable, depth: number): unknown[] {
  const list: unknown[] = []
  for (const wire of readFields(bytes)) if (wire.number === 1) list.push(...decodeItems(items, wire, table, depth))
  return list
}

function decodeRef(type: TypeInfo, bytes: Uint8Array, table: FieldTable, depth: number): unknown {
  const object: JsonRecord = {}
  fillMessage(object, bytes, type, table, depth + 1)
  if (!type.either) return object
  // JSON has the member that is set in place of the message; a schema wins over its alternative.
  if (object.schema !== undefined) return object.schema
  const [alternative] = Object.values(object)
  return alternative ?? false
}

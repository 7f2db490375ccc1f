import { canonicalQuantity, type FieldInfo, type FieldType, fieldTable, type TypeInfo } from '@corral/resources'
import { undecodable } from '../errors/api-error.js'
import { isJsonObject, type JsonObject } from '../objects/plain-json.js'
import type { KindDefinition } from '../registry/kind-definition.js'

export interface KnownFields {
  readonly value: JsonObject
  /** Paths of what was dropped. */
  readonly unknown: readonly string[]
}

/**
 * A built-in object without the fields its type does not have, in the form a typed decoder leaves it: quantities in
 * their canonical text and, unless `keepsZeros`, no zeros where Go leaves them out. A value of the wrong JSON type is
 * refused. Parts that stay the same are returned as they are.
 */
export function unknownFields(kind: KindDefinition, object: JsonObject, keepsZeros: boolean): KnownFields {
  const type = fieldTable.forKind(kind.apiVersion, kind.kind)
  if (!type) return { value: object, unknown: [] }
  const unknown: string[] = []
  return { value: new Walk(kind, unknown, keepsZeros).object(type, object, ''), unknown }
}

/** The same for the metadata of a custom object, which is typed whatever its kind. */
export function unknownMetadata(kind: KindDefinition, object: JsonObject): KnownFields {
  if (!isJsonObject(object.metadata)) return { value: object, unknown: [] }
  const unknown: string[] = []
  const metadata = new Walk(kind, unknown, true).object(objectMeta, object.metadata, 'metadata')
  return { value: metadata === object.metadata ? object : { ...object, metadata }, unknown }
}

const objectMeta = fieldTable.find('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta')!

class Walk {
  constructor(
    private readonly kind: KindDefinition,
    private readonly unknown: string[],
    private readonly keepsZeros: boolean,
  ) {}

  object(type: TypeInfo, value: JsonObject, path: string): JsonObject {
    let result = value
    for (const key of Object.keys(value)) {
      const field = type.field(key)
      const at = path === '' ? key : `${path}.${key}`
      if (!field) {
        this.unknown.push(at)
        if (result === value) result = { ...value }
        delete result[key]
        continue
      }
      const before = value[key]
      const after = this.value(field.type, before, at)
      const isDropped = !this.keepsZeros && isLeftOut(field, after)
      if (after === before && !isDropped) continue
      if (result === value) result = { ...value }
      if (isDropped) delete result[key]
      else result[key] = after
    }
    return result
  }

  private value(type: FieldType, value: unknown, path: string): unknown {
    if (value === null || value === undefined) return value
    switch (type.kind) {
      case 'scalar':
        return this.scalar(type.scalar, value, path)
      case 'ref': {
        const info = fieldTable.find(type.ref)
        if (!info || info.either) return value
        if (!isJsonObject(value)) throw this.mismatch(value, path, 'an object')
        return this.object(info, value, path)
      }
      case 'array': {
        if (!Array.isArray(value)) throw this.mismatch(value, path, 'a list')
        return mapSame(value, (item, index) => this.value(type.items, item, `${path}[${index}]`))
      }
      case 'map': {
        if (!isJsonObject(value)) throw this.mismatch(value, path, 'an object')
        let result = value
        for (const key of Object.keys(value)) {
          const after = this.value(type.values, value[key], `${path}.${key}`)
          if (after === value[key]) continue
          if (result === value) result = { ...value }
          result[key] = after
        }
        return result
      }
    }
  }

  private scalar(scalar: string, value: unknown, path: string): unknown {
    switch (scalar) {
      case 'string':
        if (typeof value !== 'string') throw this.mismatch(value, path, 'a string')
        return value
      case 'time':
      case 'microTime':
        if (typeof value !== 'string') throw this.mismatch(value, path, 'a string')
        if (!TIME.test(value) || (scalar === 'microTime' && !MICROSECONDS.test(value)))
          throw this.unreadable(`parsing time ${JSON.stringify(value)}: it is not RFC 3339`)
        return value
      case 'bytes':
        if (typeof value !== 'string') throw this.mismatch(value, path, 'a string')
        if (!isBase64(value)) throw this.unreadable(`illegal base64 data at input byte ${firstBad(value)}`)
        return value
      case 'boolean':
        if (typeof value !== 'boolean') throw this.mismatch(value, path, 'a boolean')
        return value
      case 'int32':
      case 'int64':
        if (typeof value !== 'number' || !Number.isInteger(value)) throw this.mismatch(value, path, 'an integer')
        return value
      case 'quantity':
        return this.quantity(value, path)
      case 'intOrString':
        if (typeof value !== 'number' && typeof value !== 'string') throw this.mismatch(value, path, 'a number or text')
        return value
      default:
        return value
    }
  }

  private quantity(value: unknown, path: string): string {
    if (typeof value !== 'string' && typeof value !== 'number') throw this.mismatch(value, path, 'a quantity')
    const text = String(value)
    const known = quantities.get(text)
    if (known !== undefined) return known
    if (QUANTITY.test(text)) {
      const canonical = canonicalQuantity(text) ?? text
      // Clients choose the texts, so the memory is bounded; most objects use the same few.
      if (quantities.size < 1_000) quantities.set(text, canonical)
      return canonical
    }
    throw this.unreadable("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
  }

  private unreadable(why: string): Error {
    const { kind, version } = this.kind
    return undecodable(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${why}`)
  }

  private mismatch(value: unknown, path: string, wanted: string): Error {
    const { kind, version } = this.kind
    const found = Array.isArray(value) ? 'array' : typeof value
    return undecodable(
      `${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: json: cannot unmarshal ${found} into field ${kind}.${path}: ${wanted} is needed`,
    )
  }
}

/** Whether Go writes nothing for the value: no pointer, and the zero of its type. A struct is never left out. */
function isLeftOut(field: FieldInfo, value: unknown): boolean {
  if (value === null) return field.pointer || (field.omitEmpty && !isTime(field))
  if (!field.omitEmpty || field.pointer) return false
  if (value === '' || value === 0 || value === false) return field.type.kind === 'scalar'
  if (Array.isArray(value)) return value.length === 0
  return field.type.kind === 'map' && isJsonObject(value) && isEmpty(value)
}

/** Go shows a time that was never set as null; of metadata's own it says nothing. */
const isTime = ({ type, name }: FieldInfo): boolean =>
  type.kind === 'scalar' && (type.scalar === 'time' || type.scalar === 'microTime') && name !== 'creationTimestamp'

function isEmpty(value: object): boolean {
  for (const _ in value) return false
  return true
}

const quantities = new Map<string, string>()

const TIME = /^\d{4}-(0\d|1[0-2])-([0-2]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/
/** Go reads these times by their exact form. */
const MICROSECONDS = /\.\d{6}(Z|[+-]\d\d:\d\d)$/
/** By length and alphabet: lines may be broken anywhere. */
function isBase64(text: string): boolean {
  const plain = /[\r\n]/.test(text) ? text.replace(/[\r\n]/g, '') : text
  return plain.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(plain)
}

const firstBad = (text: string): number => Math.max(text.search(/[^A-Za-z0-9+/\r\n]/), 0)

const QUANTITY = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+|[numkMGTPE]|Ki|Mi|Gi|Ti|Pi|Ei)?$/

function mapSame(list: unknown[], change: (item: unknown, index: number) => unknown): unknown[] {
  let result = list
  for (const [index, item] of list.entries()) {
    const after = change(item, index)
    if (after === item) continue
    if (result === list) result = [...list]
    result[index] = after
  }
  return result
}

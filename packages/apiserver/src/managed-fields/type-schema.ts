/**
 * What field ownership needs to know about a type. `implicit` marks places that exist even in an empty object of the
 * type (Go structs that are no pointers): filling them gives no manager the field itself.
 */
export type TypeSchema = LeafType | RecordType | SetType | ListType | AnyType

/** Owned as one value: scalars, atomic lists and maps. */
export interface LeafType {
  readonly kind: 'leaf'
  /** An atomic struct that is no pointer. */
  readonly implicit?: boolean
}

/** A struct or a granular map: owned field by field. */
export interface RecordType {
  readonly kind: 'record'
  readonly implicit: boolean
  field(name: string): TypeSchema
  /** Whether a name is an entry of a map rather than a declared field: the manager that applies an entry owns that entry. */
  isEntry(name: string): boolean
}

/** A list of scalars, owned value by value. */
export interface SetType {
  readonly kind: 'set'
  readonly implicit: boolean
}

/** A list of objects, owned item by item and told apart by keys. */
export interface ListType {
  readonly kind: 'list'
  readonly implicit: boolean
  readonly keys: readonly string[]
  /** Values of keys an item may leave out. */
  readonly keyDefaults: Readonly<Record<string, unknown>>
  readonly item: TypeSchema
}

/** Nothing is known: objects are owned field by field, lists as a whole. */
export interface AnyType {
  readonly kind: 'any'
}

export const leafType: LeafType = { kind: 'leaf' }
/** A struct that is owned as one value and exists even where it was never set. */
export const implicitLeafType: LeafType = { kind: 'leaf', implicit: true }
export const anyType: AnyType = { kind: 'any' }

/** A record type whose fields are worked out when they are first asked for. */
export function recordType(
  resolve: (name: string) => TypeSchema,
  options: { readonly implicit?: boolean; readonly isEntry?: (name: string) => boolean } = {},
): RecordType {
  const known = new Map<string, TypeSchema>()
  return {
    kind: 'record',
    implicit: options.implicit ?? false,
    isEntry: options.isEntry ?? (() => false),
    field(name) {
      let type = known.get(name)
      if (!type) {
        type = resolve(name)
        // Names come from objects, so the memory must not grow with whatever clients invent.
        if (known.size < 1_000) known.set(name, type)
      }
      return type
    },
  }
}

import { type JsonSchema, mapValueSchema } from './json-schema.js'
import { isRecord, type JsonRecord, jsonCopy, setKey } from './json-value.js'

type Defaulter = (value: unknown) => unknown

/** One property or map value: its default, whether null may stay, and what is below. */
interface Place {
  readonly fallback: unknown
  readonly nullable: boolean
  readonly apply: Defaulter
}

/**
 * Compiles a schema to a function that fills in its defaults where the parent exists, replaces a `null` the schema does
 * not allow by the default and drops it where there is none. The input is never changed; without anything to do it is
 * returned as it is.
 */
export function compileDefaults(schema: JsonSchema): Defaulter {
  const places = new Map<string, Place>()
  /** Properties that appear even where the value does not mention them. */
  const defaulted: [string, Place][] = []
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    const place = placeOf(child)
    places.set(name, place)
    if (place.fallback !== undefined) defaulted.push([name, place])
  }
  const values = mapValueSchema(schema)
  const valuePlace = values && placeOf(values)
  const item = schema.items && placeOf(schema.items)

  return (value) => {
    if (Array.isArray(value)) return item ? defaultItems(value, item) : value
    if (!isRecord(value)) return value
    let copy: JsonRecord | undefined
    for (const name of Object.keys(value)) {
      const place = places.get(name) ?? valuePlace
      const before = value[name]
      if (!place || (typeof before !== 'object' && before !== undefined)) continue
      const after = defaultAt(before, place)
      if (after === before) continue
      copy ??= copyRecord(value)
      if (after === undefined) delete copy[name]
      else setKey(copy, name, after)
    }
    for (const [name, place] of defaulted) {
      if (Object.hasOwn(value, name)) continue
      copy ??= copyRecord(value)
      setKey(copy, name, place.apply(jsonCopy(place.fallback)))
    }
    return copy ?? value
  }
}

function placeOf(schema: JsonSchema): Place {
  let apply: Defaulter | undefined
  const isTyped = schema.type !== undefined || schema['x-kubernetes-int-or-string'] === true
  return {
    fallback: schema.default,
    nullable: schema.nullable === true || !isTyped,
    // Compiled when a value first needs it: most of a large schema never does.
    apply: (value) => {
      apply ??= compileDefaults(schema)
      return apply(value)
    },
  }
}

function defaultAt(before: unknown, { fallback, nullable, apply }: Place): unknown {
  if (before !== undefined && (before !== null || nullable)) return before === null ? null : apply(before)
  return fallback === undefined ? undefined : apply(jsonCopy(fallback))
}

function defaultItems(list: unknown[], place: Place): unknown[] {
  let copy: unknown[] | undefined
  for (const [i, before] of list.entries()) {
    // An item cannot be dropped without moving the others; validation reports the null instead.
    const after = before === null && place.fallback === undefined ? null : defaultAt(before, place)
    if (after === before) continue
    copy ??= list.slice()
    copy[i] = after
  }
  return copy ?? list
}

function copyRecord(value: JsonRecord): JsonRecord {
  const copy: JsonRecord = {}
  for (const key of Object.keys(value)) setKey(copy, key, value[key])
  return copy
}

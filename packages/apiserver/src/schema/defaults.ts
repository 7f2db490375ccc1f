import { type JsonSchema, mapValueSchema, someSchema } from './json-schema.js'
import { isRecord, type JsonRecord, jsonCopy, ownValue, setKey } from './json-value.js'

type Defaulter = (value: unknown) => unknown

const unchanged: Defaulter = (value) => value

/**
 * Compiles a schema to a function that fills in its defaults where the parent exists, replaces a `null` the schema does
 * not allow by the default and drops it where there is none. The input is never changed; without anything to do it is
 * returned as it is.
 */
export function compileDefaults(schema: JsonSchema): Defaulter {
  return compileNode(schema)
}

function compileNode(schema: JsonSchema): Defaulter {
  const record = compileRecord(schema)
  const items = schema.items
  if (!items) return (value) => (isRecord(value) ? record(value) : value)
  const item = compileNode(items)
  const replacesNull = items.nullable !== true && items.default !== undefined
  return (value) => {
    if (isRecord(value)) return record(value)
    return Array.isArray(value) ? defaultArray(value, item, replacesNull ? items.default : undefined) : value
  }
}

function defaultArray(value: unknown[], item: Defaulter, fallback: unknown): unknown[] {
  let copy: unknown[] | undefined
  for (let i = 0; i < value.length; i++) {
    const before = value[i] === null && fallback !== undefined ? jsonCopy(fallback) : value[i]
    const after = item(before)
    if (after === value[i]) continue
    copy ??= value.slice()
    copy[i] = after
  }
  return copy ?? value
}

interface Property {
  readonly name: string
  readonly fallback: unknown
  readonly nullable: boolean
  readonly apply: Defaulter
}

function compileRecord(schema: JsonSchema): (value: JsonRecord) => JsonRecord {
  const properties: Property[] = []
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    properties.push({
      name,
      fallback: child.default,
      nullable: child.nullable === true || (child.type === undefined && !child['x-kubernetes-int-or-string']),
      // Scalars have nothing below them; skipping them keeps the walk short.
      apply: someSchema(child, (each) => each.type === 'object' || each.type === 'array')
        ? compileNode(child)
        : unchanged,
    })
  }
  const values = mapValueSchema(schema)
  const applyValues = values ? compileNode(values) : undefined
  const dropsNullValues = values !== undefined && values.nullable !== true && values.type !== undefined

  return (value) => {
    let copy: JsonRecord | undefined
    for (const property of properties) {
      const before = ownValue(value, property.name)
      const after = defaultProperty(before, property)
      if (after === before) continue
      copy ??= copyRecord(value)
      if (after === undefined) delete copy[property.name]
      else setKey(copy, property.name, after)
    }
    if (applyValues && values) copy = defaultValues(value, copy, schema, values, applyValues, dropsNullValues)
    return copy ?? value
  }
}

function defaultProperty(before: unknown, property: Property): unknown {
  if (before === undefined) {
    return property.fallback === undefined ? undefined : property.apply(jsonCopy(property.fallback))
  }
  if (before === null) {
    if (property.nullable) return null
    return property.fallback === undefined ? undefined : property.apply(jsonCopy(property.fallback))
  }
  return property.apply(before)
}

function defaultValues(
  value: JsonRecord,
  started: JsonRecord | undefined,
  schema: JsonSchema,
  values: JsonSchema,
  apply: Defaulter,
  dropsNull: boolean,
): JsonRecord | undefined {
  let copy = started
  for (const key of Object.keys(value)) {
    if (schema.properties && Object.hasOwn(schema.properties, key)) continue
    const before = value[key]
    const filled = before === null && dropsNull ? jsonCopy(values.default) : before
    const after = filled === undefined ? undefined : apply(filled)
    if (after === before) continue
    copy ??= copyRecord(value)
    if (after === undefined) delete copy[key]
    else setKey(copy, key, after)
  }
  return copy
}

function copyRecord(value: JsonRecord): JsonRecord {
  const copy: JsonRecord = {}
  for (const key of Object.keys(value)) setKey(copy, key, value[key])
  return copy
}

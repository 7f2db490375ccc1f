import { type JsonSchema, mapValueSchema } from '../schema/json-schema.js'
import { isRecord, type JsonRecord, ownValue } from '../schema/json-value.js'

/** CEL's own words, which a field name cannot be. */
const KEYWORDS = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
)

/** A field's name as an expression spells it: what is no identifier is written out (`my-field` → `my__dash__field`). */
export function celName(name: string): string {
  if (KEYWORDS.has(name)) return `__${name}__`
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !name.includes('__')) return name
  return name
    .replaceAll('__', '__underscores__')
    .replaceAll('.', '__dot__')
    .replaceAll('-', '__dash__')
    .replaceAll('/', '__slash__')
}

/**
 * A JSON value as CEL sees it through its schema: integers as int, `date-time` as timestamp, `byte` as bytes, fields
 * by their CEL names. `only` limits an object to the fields an expression looks at.
 */
export function toCelValue(value: unknown, schema: JsonSchema | undefined, only?: ReadonlySet<string>): unknown {
  if (typeof value === 'number') return toCelNumber(value, schema)
  if (typeof value === 'string') return toCelString(value, schema?.format)
  if (Array.isArray(value)) return value.map((item) => toCelValue(item, schema?.items))
  return isRecord(value) ? toCelRecord(value, schema, only) : value
}

function toCelNumber(value: number, schema: JsonSchema | undefined): unknown {
  if (schema?.type === 'number') return value
  return Number.isInteger(value) ? BigInt(value) : value
}

function toCelString(value: string, format: string | undefined): unknown {
  if (format === 'date-time' || format === 'datetime' || format === 'date') {
    const date = new Date(value)
    return Number.isNaN(date.getTime()) ? value : date
  }
  return format === 'byte' ? new Uint8Array(Buffer.from(value, 'base64')) : value
}

function toCelRecord(
  value: JsonRecord,
  schema: JsonSchema | undefined,
  only: ReadonlySet<string> | undefined,
): JsonRecord {
  const values = schema && mapValueSchema(schema)
  const record: JsonRecord = Object.create(null)
  for (const key of Object.keys(value)) {
    const name = values ? key : celName(key)
    if (only && !only.has(name)) continue
    const child = schema?.properties ? (ownValue(schema.properties, key) as JsonSchema | undefined) : values
    record[name] = toCelValue(value[key], child)
  }
  return record
}

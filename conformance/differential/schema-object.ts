export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

/** The part of a structural schema that decides about values. */
export interface ObjectSchema {
  readonly type?: string
  readonly format?: string
  readonly pattern?: string
  readonly minimum?: number
  readonly enum?: readonly Json[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, ObjectSchema>>
  readonly additionalProperties?: ObjectSchema | boolean
  readonly items?: ObjectSchema
  readonly 'x-kubernetes-int-or-string'?: boolean
  readonly 'x-kubernetes-list-type'?: string
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
}

type Random = () => number

const pick = <T>(random: Random, values: readonly T[]): T => values[Math.floor(random() * values.length)]!
const words = ['a', 'one', 'example-2', 'x.y', '10m', 'v1']
const quantities: readonly Json[] = ['1', '100m', '2Gi', 3]

/** A value that a schema allows. Optional fields are left out more often the deeper they lie. */
export function schemaObject(schema: ObjectSchema, random: Random, depth = 0): Json {
  if (schema.enum) return pick(random, schema.enum)
  if (schema['x-kubernetes-int-or-string'])
    return schema.pattern ? pick(random, quantities) : pick(random, [80, 'http', '25%'])
  switch (schema.type) {
    case 'string':
      return schema.format === 'date-time'
        ? pick(random, ['2030-01-02T03:04:05Z', '2031-01-01T00:00:00+02:00'])
        : pick(random, words)
    case 'integer':
      return Math.max(schema.minimum ?? 0, Math.floor(random() * 100))
    case 'number':
      return random() * 10
    case 'boolean':
      return random() < 0.5
    case 'array':
      return list(schema, random, depth)
    case 'object':
      return record(schema, random, depth)
    default:
      return {}
  }
}

function list(schema: ObjectSchema, random: Random, depth: number): Json[] {
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  const items = Array.from({ length: 1 + Math.floor(random() * 2) }, () =>
    schemaObject(schema.items ?? {}, random, depth + 1),
  )
  if (schema['x-kubernetes-list-type'] === 'set') return [...new Set(items)]
  // Keys tell the elements of a map apart, so they are made to differ.
  for (const [index, item] of items.entries()) {
    const key = keys[0]
    if (key && isRecord(item)) item[key] = typeof item[key] === 'number' ? 1000 + index : `key-${index}`
  }
  return items
}

function record(schema: ObjectSchema, random: Random, depth: number): Json {
  const result: { [name: string]: Json } = {}
  const names = Object.keys(schema.properties ?? {})
  const chance = depth === 0 ? 0.6 : Math.min(0.5, 2.5 / names.length) / (1 + depth / 3)
  const keys = schema.required ?? []
  for (const name of names) {
    if (keys.includes(name) || random() < chance)
      result[name] = schemaObject(schema.properties![name]!, random, depth + 1)
  }
  const { additionalProperties } = schema
  if (typeof additionalProperties === 'object') {
    for (let count = Math.floor(random() * 3); count > 0; count -= 1)
      result[pick(random, words)] = schemaObject(additionalProperties, random, depth + 1)
  }
  return result
}

export const isRecord = (value: Json | undefined): value is { [name: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The same value with one thing about it changed: mostly, but not always, into something a server must refuse. */
export function spoiled(value: Json, random: Random): Json {
  const copy = structuredClone(value)
  const places = placesIn(copy)
  const place = pick(random, places)
  if (!place) return copy
  const { parent, key } = place
  const old = (parent as Record<string | number, Json>)[key]!
  const set = (next: Json): void => {
    ;(parent as Record<string | number, Json>)[key] = next
  }
  const changes: (() => void)[] = [
    () => set(typeof old === 'string' ? 5 : 'text'),
    () => set(null),
    () => set([]),
    () => set({}),
    () => set(typeof old === 'number' ? -old - 1 : ''),
    () => set(typeof old === 'number' ? old + 0.5 : 1e12),
    () => set(typeof old === 'string' ? `${old} No such value` : true),
    () => {
      if (Array.isArray(parent)) parent.splice(Number(key), 1)
      else delete (parent as Record<string, Json>)[key]
    },
    () => {
      if (Array.isArray(old) && old[0] !== undefined) old.push(structuredClone(old[0]))
      else if (isRecord(old)) old.unheardOf = 'x'
      else set('2030-13-45T99:00:00Z')
    },
  ]
  pick(random, changes)()
  return copy
}

interface Place {
  readonly parent: Json[] | { [name: string]: Json }
  readonly key: string | number
}

function placesIn(value: Json, found: Place[] = []): Place[] {
  if (typeof value !== 'object' || value === null) return found
  const entries: [string | number, Json][] = Array.isArray(value) ? [...value.entries()] : Object.entries(value)
  for (const [key, child] of entries) {
    found.push({ parent: value, key })
    placesIn(child, found)
  }
  return found
}

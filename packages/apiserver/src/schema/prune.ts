import { type JsonSchema, mapValueSchema } from './json-schema.js'
import { isRecord, type JsonRecord, setKey } from './json-value.js'

/** What pruning left and the paths of what it dropped (`spec.foo`, `spec.items[0].bar`). */
export interface Pruned<T = unknown> {
  readonly value: T
  readonly unknownPaths: string[]
}

type Pruner = (value: unknown, path: string, unknown: string[]) => unknown

/** Type metadata every resource, and every embedded resource, has whether its schema names it or not. */
const TYPE_FIELDS = new Set(['apiVersion', 'kind'])

/** What metadata has, whatever a schema says about it. */
const METADATA_FIELDS = new Set([
  'annotations',
  'creationTimestamp',
  'deletionGracePeriodSeconds',
  'deletionTimestamp',
  'finalizers',
  'generateName',
  'generation',
  'labels',
  'managedFields',
  'name',
  'namespace',
  'ownerReferences',
  'resourceVersion',
  'selfLink',
  'uid',
])

/**
 * Compiles a schema to a function that drops fields the schema does not know. The input is never changed: values in
 * which nothing is dropped come back as they are, the others as copies along the changed path.
 */
export function compilePrune(schema: JsonSchema): (value: unknown) => Pruned {
  const pruner = compileNode(schema, true)
  return (value) => {
    const unknownPaths: string[] = []
    return { value: pruner(value, '', unknownPaths), unknownPaths }
  }
}

function compileNode(schema: JsonSchema, isResource: boolean): Pruner {
  const keepsUnknown = schema['x-kubernetes-preserve-unknown-fields'] === true
  const items = schema.items ? lazyNode(schema.items) : null
  const values = compileMapValues(schema)
  const properties = new Map<string, Pruner>()
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    // Metadata is always ObjectMeta; a schema may only narrow its name.
    if (isResource && name === 'metadata') continue
    properties.set(name, lazyNode(child))
  }
  const hasShape = properties.size > 0 || values !== null

  const pruneField = (key: string): Pruner | undefined => {
    const known = properties.get(key)
    if (known) return known
    if (isResource && TYPE_FIELDS.has(key)) return keep
    if (isResource && key === 'metadata') return pruneMetadata
    if (values) return values
    return keepsUnknown ? keep : undefined
  }

  return (value, path, unknown) => {
    if (Array.isArray(value)) return items ? pruneArray(value, items, path, unknown) : value
    if (!isRecord(value)) return value
    if (keepsUnknown && !hasShape && !isResource) return value
    return pruneRecord(value, pruneField, path, unknown)
  }
}

/** A pruner that is compiled when a value first needs it. */
function lazyNode(schema: JsonSchema): Pruner {
  let pruner: Pruner | undefined
  return (value, path, unknown) => {
    pruner ??= compileNode(schema, schema['x-kubernetes-embedded-resource'] === true)
    return pruner(value, path, unknown)
  }
}

function compileMapValues(schema: JsonSchema): Pruner | null {
  if (schema.additionalProperties === true) return keep
  const values = mapValueSchema(schema)
  return values ? lazyNode(values) : null
}

const keep: Pruner = (value) => value

const pruneMetadata: Pruner = (value, path, unknown) =>
  isRecord(value) ? pruneRecord(value, (key) => (METADATA_FIELDS.has(key) ? keep : undefined), path, unknown) : value

function pruneArray(value: unknown[], items: Pruner, path: string, unknown: string[]): unknown[] {
  let copy: unknown[] | undefined
  for (let i = 0; i < value.length; i++) {
    const pruned = items(value[i], `${path}[${i}]`, unknown)
    if (pruned === value[i]) continue
    copy ??= value.slice()
    copy[i] = pruned
  }
  return copy ?? value
}

function pruneRecord(
  value: JsonRecord,
  pruneField: (key: string) => Pruner | undefined,
  path: string,
  unknown: string[],
): JsonRecord {
  let changed: Map<string, unknown> | undefined
  for (const key of Object.keys(value)) {
    const pruner = pruneField(key)
    if (!pruner) {
      unknown.push(path ? `${path}.${key}` : key)
      changed ??= new Map()
      changed.set(key, undefined)
      continue
    }
    if (pruner === keep) continue
    const child = value[key]
    if (typeof child !== 'object' || child === null) continue
    const pruned = pruner(child, path ? `${path}.${key}` : key, unknown)
    if (pruned === child) continue
    changed ??= new Map()
    changed.set(key, pruned)
  }
  if (!changed) return value
  const copy: JsonRecord = {}
  for (const key of Object.keys(value)) {
    if (!changed.has(key)) setKey(copy, key, value[key])
    else if (changed.get(key) !== undefined) setKey(copy, key, changed.get(key))
  }
  return copy
}

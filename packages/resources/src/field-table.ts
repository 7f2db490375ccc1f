import { FIELD_TABLE_DATA } from './generated/field-table-data.js'

/**
 * What Kubernetes' own types look like: one table for validation, unknown fields, defaults, strategic merge, server-side
 * apply, protobuf, OpenAPI and the PodSpec inside CRDs.
 *
 *   fieldTable.type('io.k8s.api.core.v1.PodSpec')   TypeInfo, throws for an unknown name; `find` answers undefined
 *   fieldTable.forKind('apps/v1', 'Deployment')      TypeInfo of a served kind, undefined for anything else
 *   type.fields / type.field('containers')           JSON members, those of inlined Go structs included
 *   type.protoFields.get(2)                          what protobuf field 2 is: a member, or a message to inline
 *
 * Each type is one line of text, decoded at first use: `|` between entries, an entry is `!atomic`, an inlined type
 * `+Ref number`, or a field `name type number flags key=value...`. Types: one letter per scalar, `[` array of, `{` map of,
 * `@Ref`, where a reference without dots stays in its package. Flags: r required, p pointer, o omitempty. Keys: d default
 * (JSON), e enum, l listType, k listMapKeys, a mapType, s patchStrategy, m patchMergeKey.
 */

/**
 * JSON form by scalar: `quantity` and `intOrString` string or number; `time`, `microTime`, `duration` and `bytes` (base64)
 * string; `fieldsV1` object; `rawExtension` object; `json` anything.
 */
export type ScalarType =
  | 'string'
  | 'int32'
  | 'int64'
  | 'boolean'
  | 'bytes'
  | 'double'
  | 'quantity'
  | 'intOrString'
  | 'time'
  | 'microTime'
  | 'duration'
  | 'fieldsV1'
  | 'rawExtension'
  | 'json'

export type FieldType =
  | { readonly kind: 'scalar'; readonly scalar: ScalarType }
  | { readonly kind: 'ref'; readonly ref: string }
  | { readonly kind: 'array'; readonly items: FieldType }
  | { readonly kind: 'map'; readonly values: FieldType }

export type ListType = 'atomic' | 'set' | 'map'

export interface FieldInfo {
  readonly name: string
  readonly type: FieldType
  readonly required: boolean
  /** Go holds a pointer: absent and zero differ. Protobuf always writes the zero of a non-pointer field. */
  readonly pointer: boolean
  /** Go leaves the zero value out of JSON (structs that are no pointers excepted). */
  readonly omitEmpty: boolean
  /** Number in the message that declares the field. */
  readonly protoNumber?: number
  readonly default?: unknown
  /** Allowed values; of the items where the field is an array. */
  readonly enum?: readonly string[]
  readonly listType?: ListType
  readonly listMapKeys?: readonly string[]
  readonly mapType?: 'atomic' | 'granular'
  readonly patchStrategy?: readonly string[]
  readonly patchMergeKey?: string
}

/** A Go struct embedded in another: its members appear in the outer JSON object, in protobuf it is a message of its own. */
export interface InlinedMessage {
  readonly inlined: string
  readonly protoNumber: number
}

export interface TypeInfo {
  readonly name: string
  readonly fields: readonly FieldInfo[]
  field(name: string): FieldInfo | undefined
  readonly protoFields: ReadonlyMap<number, FieldInfo | InlinedMessage>
  /** Server-side apply owns the object as one value. */
  readonly atomic: boolean
  /**
   * JSON writes one of the members in place of the object (`JSONSchemaPropsOrBool` and its like); the members matter to
   * protobuf only.
   */
  readonly either: boolean
}

export interface FieldTable {
  type(name: string): TypeInfo
  find(name: string): TypeInfo | undefined
  forKind(apiVersion: string, kind: string): TypeInfo | undefined
  names(): readonly string[]
}

const SCALARS: Readonly<Record<string, ScalarType>> = {
  s: 'string',
  i: 'int32',
  l: 'int64',
  b: 'boolean',
  y: 'bytes',
  d: 'double',
  q: 'quantity',
  x: 'intOrString',
  t: 'time',
  m: 'microTime',
  u: 'duration',
  f: 'fieldsV1',
  r: 'rawExtension',
  j: 'json',
}

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1.'
const APIEXTENSIONS = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.'
/** Kinds of the meta group are sent under any group and version. */
const META_KINDS = new Set(['DeleteOptions', 'CreateOptions', 'UpdateOptions', 'PatchOptions', 'ListOptions', 'Status'])

const decoded = new Map<string, TypeInfo>()

export const fieldTable: FieldTable = {
  type(name) {
    const type = this.find(name)
    if (!type) throw new Error(`no Kubernetes type "${name}" in the field table`)
    return type
  },
  find(name) {
    const known = decoded.get(name)
    if (known) return known
    const text = Object.hasOwn(FIELD_TABLE_DATA, name) ? FIELD_TABLE_DATA[name] : undefined
    if (text === undefined) return undefined
    const type = decodeType(name, text)
    decoded.set(name, type)
    return type
  },
  forKind(apiVersion, kind) {
    if (META_KINDS.has(kind)) return this.find(META + kind)
    const type = this.find(packageOf(apiVersion) + kind)
    return type?.field('kind') ? type : undefined
  },
  names: () => Object.keys(FIELD_TABLE_DATA),
}

let pointers: Set<string> | undefined

/** Names of members that Go holds by pointer to a struct: there an empty object says something that none does not. */
export function pointerMembers(): ReadonlySet<string> {
  // Read off the encoded text: decoding every type for this would cost more than all else a process does with the table.
  pointers ??= new Set(
    Object.values(FIELD_TABLE_DATA).flatMap((text) =>
      [...text.matchAll(/(?:^|\|)(\S+) @\S+ \S+ r?p/g)].map((m) => m[1] ?? ''),
    ),
  )
  return pointers
}

function packageOf(apiVersion: string): string {
  if (apiVersion === 'v1') return 'io.k8s.api.core.v1.'
  const [group = '', version = ''] = apiVersion.split('/')
  if (group === 'apiextensions.k8s.io') return APIEXTENSIONS
  if (group === 'meta.k8s.io') return META
  if (group.includes('.') && !group.endsWith('.k8s.io')) return '?.'
  return `io.k8s.api.${group.split('.')[0]}.${version}.`
}

function decodeType(name: string, text: string): TypeInfo {
  const home = name.slice(0, name.lastIndexOf('.') + 1)
  const fields: FieldInfo[] = []
  const protoFields = new Map<number, FieldInfo | InlinedMessage>()
  let atomic = false
  for (const entry of text === '' ? [] : text.split('|')) {
    if (entry === '!atomic') {
      atomic = true
    } else if (entry.startsWith('+')) {
      const [reference = '', number = '-'] = entry.slice(1).split(' ')
      const inlined = resolve(reference, home)
      fields.push(...fieldTable.type(inlined).fields)
      if (number !== '-') protoFields.set(Number(number), { inlined, protoNumber: Number(number) })
    } else {
      const field = decodeField(entry, home)
      fields.push(field)
      if (field.protoNumber !== undefined) protoFields.set(field.protoNumber, field)
    }
  }
  const byName = new Map(fields.map((field) => [field.name, field]))
  const either = /^JSONSchemaPropsOr/.test(name.slice(home.length))
  return { name, fields, field: (member) => byName.get(member), protoFields, atomic, either }
}

function decodeField(entry: string, home: string): FieldInfo {
  const [name = '', type = '', number = '-', flags = '', ...extras] = entry.split(' ')
  const extra = new Map(extras.map((text) => [text[0], text.slice(2)]))
  const value = <T>(key: string, map: (text: string) => T): T | undefined => {
    const text = extra.get(key)
    return text === undefined ? undefined : map(text)
  }
  const optional = {
    protoNumber: number === '-' ? undefined : Number(number),
    default: value('d', (text): unknown => JSON.parse(text)),
    enum: value('e', (text) => text.split(',')),
    listType: value('l', (text) => text as ListType),
    listMapKeys: value('k', (text) => text.split(',')),
    mapType: value('a', (text) => text as 'atomic' | 'granular'),
    patchStrategy: value('s', (text) => text.split(',')),
    patchMergeKey: value('m', (text) => text),
  }
  return {
    name,
    type: decodeFieldType(type, home),
    required: flags.includes('r'),
    pointer: flags.includes('p'),
    omitEmpty: flags.includes('o'),
    // Absent keys stay absent rather than undefined.
    ...(Object.fromEntries(Object.entries(optional).filter(([, v]) => v !== undefined)) as Partial<FieldInfo>),
  }
}

function decodeFieldType(text: string, home: string): FieldType {
  const rest = text.slice(1)
  if (text.startsWith('[')) return { kind: 'array', items: decodeFieldType(rest, home) }
  if (text.startsWith('{')) return { kind: 'map', values: decodeFieldType(rest, home) }
  if (text.startsWith('@')) return { kind: 'ref', ref: resolve(rest, home) }
  const scalar = SCALARS[text]
  if (!scalar) throw new Error(`field table: unknown type code "${text}"`)
  return { kind: 'scalar', scalar }
}

function resolve(reference: string, home: string): string {
  return reference.includes('.') ? reference : home + reference
}

/** One CEL rule of `x-kubernetes-validations`. */
export interface ValidationRule {
  readonly rule: string
  readonly message?: string
  readonly messageExpression?: string
  readonly reason?: string
  readonly fieldPath?: string
  readonly optionalOldSelf?: boolean
}

/** `JSONSchemaProps` of apiextensions.k8s.io/v1, as far as the server reads it. */
export interface JsonSchema {
  readonly type?: string
  readonly format?: string
  readonly title?: string
  readonly description?: string
  readonly nullable?: boolean
  readonly default?: unknown
  readonly example?: unknown
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly additionalProperties?: JsonSchema | boolean
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly allOf?: readonly JsonSchema[]
  readonly not?: JsonSchema
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: boolean
  readonly exclusiveMaximum?: boolean
  readonly multipleOf?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
  readonly minProperties?: number
  readonly maxProperties?: number
  readonly $ref?: string
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
  readonly 'x-kubernetes-embedded-resource'?: boolean
  readonly 'x-kubernetes-int-or-string'?: boolean
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map'
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-map-type'?: 'atomic' | 'granular'
  readonly 'x-kubernetes-validations'?: readonly ValidationRule[]
}

/** The schema of a map's values, when the schema describes a map. */
export function mapValueSchema(schema: JsonSchema): JsonSchema | undefined {
  return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
}

/** Whether any schema in the tree, junctors included, satisfies `test`. */
export function someSchema(schema: JsonSchema, test: (schema: JsonSchema) => boolean): boolean {
  if (test(schema)) return true
  const { properties, items, not } = schema
  for (const name in properties) if (someSchema(properties[name]!, test)) return true
  const values = mapValueSchema(schema)
  if (values && someSchema(values, test)) return true
  if (items && someSchema(items, test)) return true
  for (const list of [schema.anyOf, schema.oneOf, schema.allOf]) {
    if (list?.some((part) => someSchema(part, test))) return true
  }
  return not ? someSchema(not, test) : false
}

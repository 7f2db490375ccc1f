import type { JsonSchema } from '../schema/json-schema.js'

/** A served kind, as far as OpenAPI shows it. */
export interface OpenApiKind {
  readonly group: string
  readonly version: string
  readonly apiVersion: string
  readonly kind: string
  readonly plural: string
  readonly namespaced: boolean
  /** Name of a built-in kind's type in the field table. */
  readonly typeName?: string
  /** `openAPIV3Schema` of a custom kind. */
  readonly schema?: JsonSchema
}

export type Schema = Record<string, unknown>

/** An OpenAPI v3 document of one group-version. */
export interface OpenApiDocument {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, unknown>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** Name of a kind's schema: a custom group is written backwards, as Kubernetes does. */
export function schemaName(kind: OpenApiKind): string {
  return kind.typeName ?? `${kind.group.split('.').reverse().join('.')}.${kind.version}.${kind.kind}`
}

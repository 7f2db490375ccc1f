import * as z from 'zod'
import type { JSONSchemaProps } from '../generated/core-types.js'
import { structuralSchemaOf } from './structural-schema.js'

const INT32_LIMITS = [-2147483648, 2147483647]
const SAFE_LIMITS = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]

/** The structural schema a kind's zod schema stands for. What zod adds on its own account (integer bounds) is dropped. */
export function structuralSchemaFromZod(schema: z.ZodType): JSONSchemaProps {
  const json = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    unrepresentable: 'any',
    reused: 'inline',
    // Input, since output forbids additional members, which a structural schema does by pruning.
    io: 'input',
    override: ({ jsonSchema }) => refine(jsonSchema as Record<string, unknown>),
  })
  return json as JSONSchemaProps
}

function refine(schema: Record<string, unknown>): void {
  if (typeof schema.kubernetesType === 'string') {
    const structural = structuralSchemaOf(schema.kubernetesType)
    delete schema.kubernetesType
    Object.assign(schema, structural)
  }
  if (schema.type === 'integer' && (schema.format === 'int32' || schema.format === 'int64')) {
    for (const bound of ['minimum', 'maximum']) {
      if (INT32_LIMITS.includes(schema[bound] as number) || SAFE_LIMITS.includes(schema[bound] as number))
        delete schema[bound]
    }
  }
  if (schema.openMember === true) {
    delete schema.openMember
    delete schema.enum
    delete schema.const
    schema.type = 'string'
  }
  // JavaScript writes a slash escaped where RE2 has it plain.
  if (typeof schema.pattern === 'string') schema.pattern = schema.pattern.replaceAll('\\/', '/')
  if (schema.type === 'object') delete schema.propertyNames
  if (Array.isArray(schema.required)) schema.required.sort()
  delete schema.id
}

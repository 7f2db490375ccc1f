import { issueWords } from '@corral/protocol'
import type { StandardSchemaWithJSON } from '@modelcontextprotocol/server'
import * as z from 'zod'

/**
 * The arguments of a tool. One that it does not have is refused: a model that misspells `warmpool` would be told nothing and
 * get a sandbox of another pool. What is wrong is told in words, which the model reads to call again.
 */
export function toolInput<Shape extends z.ZodRawShape>(
  shape: Shape,
): StandardSchemaWithJSON<z.input<z.ZodObject<Shape>>, z.output<z.ZodObject<Shape>>> {
  const schema = z.strictObject(shape)
  const { jsonSchema } = (schema as unknown as StandardSchemaWithJSON)['~standard']
  return {
    '~standard': {
      version: 1,
      vendor: 'corral',
      jsonSchema,
      validate(value) {
        const parsed = schema.safeParse(value)
        if (parsed.success) return { value: parsed.data as z.output<z.ZodObject<Shape>> }
        const fieldsAt = (path: readonly PropertyKey[]): string[] => (path.length === 0 ? Object.keys(shape) : [])
        const issues = issueWords(parsed.error.issues, 'arguments', fieldsAt).map((message) => ({ message }))
        return { issues }
      },
    },
  }
}

import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { renderAgentsMarkdown } from '@corral/agents'
import { environmentJsonSchema, renderErrorsMarkdown } from '@corral/protocol'

/** Writes the documents that are made from tables in the code. */
writeFileSync(fileURLToPath(new URL('../../docs/errors.md', import.meta.url)), renderErrorsMarkdown())
writeFileSync(fileURLToPath(new URL('../../docs/agents.md', import.meta.url)), renderAgentsMarkdown())
const schemas = fileURLToPath(new URL('../../config/schemas/', import.meta.url))
mkdirSync(schemas, { recursive: true })
writeFileSync(`${schemas}environment.schema.json`, `${JSON.stringify(environmentJsonSchema(), null, 2)}\n`)

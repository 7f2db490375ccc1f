import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { renderErrorsMarkdown } from '@corral/protocol'

/** Writes the documents that are made from tables in the code. */
writeFileSync(fileURLToPath(new URL('../../docs/errors.md', import.meta.url)), renderErrorsMarkdown())

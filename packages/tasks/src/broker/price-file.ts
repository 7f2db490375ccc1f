import { readFileSync, statSync } from 'node:fs'
import type { PriceTable, Provider } from '@corral/agents'
import { issueWords } from '@corral/protocol'
import * as z from 'zod'

/** What models cost: the providers' list prices, and what the platform's own file says of them or of others. */
export interface Prices {
  of(provider: Provider): PriceTable
}

const dollars = z.number().nonnegative()
const fileSchema = z.strictObject({
  /** The day the prices were looked up. */
  as_of: z.iso.date(),
  /** `provider/model` → US dollars a million tokens. Cached tokens cost what fresh ones do where nothing is said. */
  models: z.record(
    z.string().regex(/^[a-z][a-z0-9-]*\/.+$/, 'must be provider/model'),
    z.strictObject({
      input: dollars,
      output: dollars,
      cache_read: dollars.optional(),
      cache_write: dollars.optional(),
    }),
  ),
})

/**
 * Reads `path` anew whenever it has changed. A file that is missing adds nothing; one with a mistake adds nothing either
 * and is told through `onProblem` once.
 */
export function filePrices(path: string, onProblem: (problem: string) => void): Prices {
  let readAt = -1
  let tables = new Map<string, PriceTable>()
  const refresh = (): void => {
    const changedAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (changedAt === readAt) return
    readAt = changedAt
    tables = new Map()
    if (changedAt === 0) return
    try {
      tables = tablesIn(readFileSync(path, 'utf8'))
    } catch (error) {
      onProblem(`${path} is not used: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return {
    of(provider) {
      refresh()
      const own = tables.get(provider.name)
      return own ? { ...provider.prices, ...own } : provider.prices
    },
  }
}

function tablesIn(text: string): Map<string, PriceTable> {
  const read = fileSchema.safeParse(JSON.parse(text))
  if (!read.success) throw new Error(issueWords(read.error.issues, 'the file').slice(0, 3).join('; '))
  const tables = new Map<string, Record<string, PriceTable[string]>>()
  for (const [name, { input, output, cache_read, cache_write }] of Object.entries(read.data.models)) {
    const slash = name.indexOf('/')
    const table = tables.get(name.slice(0, slash)) ?? {}
    tables.set(name.slice(0, slash), table)
    table[name.slice(slash + 1)] = {
      asOf: read.data.as_of,
      input,
      output,
      cacheRead: cache_read ?? input,
      cacheWrite: cache_write ?? input,
    }
  }
  return tables
}

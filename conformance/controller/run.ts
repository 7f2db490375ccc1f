import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { findGo } from '../../tools/oracle/index.js'
import type { Column, ColumnId } from './harness/column.js'
import { startEmbeddedColumn } from './harness/embedded-column.js'
import { permissionReport } from './harness/permissions.js'
import { startOursReal, startUpstreamReal } from './harness/real-columns.js'
import { inDocument, printTable, section, unexplained } from './harness/report.js'
import { type ColumnRun, type Result, runColumn } from './harness/run-column.js'
import { allScenarios } from './scenarios/index.js'

const root = join(import.meta.dirname, '../..')
const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    columns: { type: 'string', default: 'ours-embedded,ours-real,upstream' },
    parallel: { type: 'string', default: '6' },
    /** Longer than our manager defers a write of low priority: two seconds while others have high priority. */
    'quiet-ms': { type: 'string', default: '2500' },
    /** A result file that stands in for columns and scenarios that do not run now. */
    reuse: { type: 'string' },
    'write-docs': { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
  },
})
// An exit ends every program that was started; a signal alone would not.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
process.exitCode = await main()

/** The suite in every column: a table, raw results, the section of the document; 1 when something fails unexplained. */
async function main(): Promise<number> {
  const starts: Readonly<Record<ColumnId, () => Promise<Column>>> = {
    'ours-embedded': startEmbeddedColumn,
    'ours-real': startOursReal,
    upstream: startUpstreamReal,
  }
  const wanted = options.columns.split(',').filter(Boolean) as ColumnId[]
  if (wanted.some((id) => id !== 'ours-embedded') && !(await findGo())) {
    process.stderr.write('conformance: Go is not installed, so there is no real Kubernetes to compare with; skipped\n')
    return process.env.CI === 'true' ? 1 : 0
  }
  const only = options.only?.split(';').map((number) => number.trim())
  const scenarios = allScenarios.filter(({ number }) => !only || only.includes(number))
  const play = {
    parallel: Number(options.parallel),
    quietMs: Number(options['quiet-ms']),
    onResult: tell,
    onRetry: tellRetry,
  }
  const columns: Column[] = []
  for (const id of wanted) columns.push(await starts[id]())
  // Side by side: most of what a scenario does is wait.
  const runs = await Promise.all(columns.map((column) => runColumn(column, scenarios, play)))
  writeResults(runs)
  if (options.reuse) {
    const { runs: earlier } = JSON.parse(readFileSync(options.reuse, 'utf8')) as { runs: ColumnRun[] }
    runs.splice(0, runs.length, ...combined(earlier, runs))
    writeResults(runs)
  }
  process.stdout.write(printTable(runs, { verbose: options.verbose }))
  if (options['write-docs']) {
    const path = join(root, 'docs/compatibility.md')
    writeFileSync(path, inDocument(readFileSync(path, 'utf8'), section(runs)))
  }
  const ours = runs.find(({ id }) => id === 'ours-real')
  const { forbidden, needless } = permissionReport(ours?.calls ?? [])
  for (const call of forbidden) process.stdout.write(`- config/rbac forbids ${call}\n`)
  // A selection of scenarios uses a selection of permissions.
  const isWhole = ours !== undefined && !only
  if (isWhole) for (const grant of needless) process.stdout.write(`- config/rbac grants ${grant}, which nothing used\n`)
  const hasWrongPermissions = forbidden.length > 0 || (isWhole && needless.length > 0)
  return unexplained(runs).length > 0 || hasWrongPermissions ? 1 : 0
}

/** What ran now in place of what ran earlier; the rest as it was. */
function combined(earlier: readonly ColumnRun[], now: readonly ColumnRun[]): ColumnRun[] {
  const ids: ColumnId[] = ['ours-embedded', 'ours-real', 'upstream']
  return ids.flatMap((id) => {
    const before = earlier.find((run) => run.id === id)
    const after = now.find((run) => run.id === id)
    if (!before || !after) return [after ?? before].filter((run) => run !== undefined)
    const fresh = new Map(after.results.map((result) => [result.number, result]))
    const results = before.results.map((result) => fresh.get(result.number) ?? result)
    return [{ ...after, results, calls: [...before.calls, ...after.calls] }]
  })
}

function tell({ id }: Column, { number, passed, ms, note }: Result): void {
  process.stderr.write(`${id} ${number} ${passed ? 'yes' : 'NO'} (${ms} ms)${note ? `: ${note.slice(0, 400)}` : ''}\n`)
}

function tellRetry({ id }: Column, { number, ms, note = '' }: Result): void {
  process.stderr.write(`${id} ${number} again later (${ms} ms): ${note.slice(0, 400)}\n`)
}

function writeResults(runs: readonly ColumnRun[]): void {
  const directory = join(root, 'conformance/results')
  mkdirSync(directory, { recursive: true })
  const name = `controller-${new Date().toISOString().replaceAll(':', '-')}.json`
  writeFileSync(join(directory, name), `${JSON.stringify({ node: process.version, runs }, null, 1)}\n`)
}

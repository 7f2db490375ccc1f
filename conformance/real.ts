import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import clientNode from '@kubernetes/client-node/package.json' with { type: 'json' }
import { findGo } from '../tools/oracle/index.js'
import { allChecks } from './all-checks.js'
import { prepareGo } from './clients/go-client.js'
import { preparePython, pythonPackages } from './clients/python.js'
import { keepingControllers } from './controller/harness/report.js'
import { startEmbeddedServer } from './harness/embedded-server.js'
import { startRealServer } from './harness/real-server.js'
import { compatibilityPage, printTable, type Run } from './harness/report.js'
import type { Result } from './harness/run-check.js'
import { runSuite } from './harness/run-suite.js'
import type { ServerUnderTest } from './harness/server-under-test.js'

const here = dirname(fileURLToPath(import.meta.url))
const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    server: { type: 'string', default: 'both' },
    parallel: { type: 'string', default: '3' },
    'write-docs': { type: 'boolean', default: false },
  },
})
/** Clients that are packages, not programs. */
const clientPackages = [`@kubernetes/client-node==${clientNode.version}`, ...pythonPackages]
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  process.once(signal, () => process.exit(code))
process.exitCode = await main()

/** The whole suite on a real kube-apiserver and on the embedded one: a table, raw results, and 1 when either fails. */
async function main(): Promise<number> {
  if (options.server !== 'embedded' && !(await findGo())) {
    process.stderr.write('conformance: Go is not installed, so there is no real Kubernetes to compare with; skipped\n')
    return process.env.CI === 'true' ? 1 : 0
  }
  const wanted = selection(options.only)
  const checks = allChecks.filter(({ number }) => !wanted || wanted.has(number))
  const starts: (() => Promise<ServerUnderTest>)[] = []
  if (options.server !== 'embedded') starts.push(startRealServer)
  if (options.server !== 'real') starts.push(() => startEmbeddedServer('sqlite'))
  const runs: Run[] = []
  await Promise.all([preparePython(), prepareGo()])
  for (const start of starts) runs.push(await runOn(await start(), checks))
  writeResults(runs)
  process.stdout.write(printTable(checks, runs))
  if (options['write-docs']) {
    const path = join(here, '../docs/compatibility.md')
    const document = existsSync(path) ? readFileSync(path, 'utf8') : ''
    writeFileSync(path, keepingControllers(compatibilityPage(checks, runs), document))
  }
  return runs.some(({ results }) => results.some(({ outcome }) => outcome === 'failed')) ? 1 : 0
}

async function runOn(server: ServerUnderTest, checks: typeof allChecks): Promise<Run> {
  const startedAt = new Date().toISOString()
  try {
    const parallel = Number(options.parallel)
    const results = await runSuite(checks, server, { parallel, onResult: (result) => tell(server, result) })
    return { kind: server.kind, title: server.title, startedAt, facts: server.facts, results }
  } finally {
    await server.close()
  }
}

function tell(server: ServerUnderTest, { number, outcome, ms, note }: Result): void {
  process.stderr.write(`${server.kind} ${number} ${outcome} (${ms} ms)${note ? `: ${note}` : ''}\n`)
}

function writeResults(runs: readonly Run[]): void {
  const directory = join(here, 'results')
  mkdirSync(directory, { recursive: true })
  const name = `${new Date().toISOString().replaceAll(':', '-')}.json`
  writeFileSync(
    join(directory, name),
    `${JSON.stringify({ node: process.version, packages: clientPackages, runs }, null, 1)}\n`,
  )
}

/** `1,4,30-58` as a set; undefined for everything. */
function selection(text: string | undefined): Set<number> | undefined {
  if (!text) return undefined
  const numbers = text.split(',').flatMap((part) => {
    const [first = 0, last = first] = part.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
  return new Set(numbers)
}

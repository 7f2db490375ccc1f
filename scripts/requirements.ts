// Writes docs/requirements.md from the report of the last `npm test` and the committed reports of longer suites.
//   --check    fails where the page says that something is shown and no test showed it; writes nothing
//   --summary  prints the counts of the last `npm test`
//   --keep FILE --command 'npm run ...' --as NAME   makes docs/reports/NAME.json of a suite's own report (vitest's JSON, or
//                                                   {"results": [{"title", "passed"}]})
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type RanTest, requirementsPage, type Section, type SuiteReport, testsOfReport } from './requirements-table.js'

const root = join(import.meta.dirname, '..')
const page = join(root, 'docs/requirements.md')
const reports = join(root, 'docs/reports')
const { values: flags } = parseArgs({
  options: {
    check: { type: 'boolean' },
    summary: { type: 'boolean' },
    keep: { type: 'string' },
    command: { type: 'string' },
    as: { type: 'string' },
  },
})

if (flags.keep !== undefined) keep(flags.keep, flags.command, flags.as)
else if (flags.summary) {
  const tests = lastRun()
  const count = (status: string): number => tests.filter((test) => test.status === status).length
  const skipped = tests.length - count('passed') - count('failed')
  process.stdout.write(`${count('passed')} passed, ${count('failed')} failed, ${skipped} skipped\n`)
} else {
  const sections = readJson(join(root, 'docs/requirements.json')) as Section[]
  const text = requirementsPage(sections, [...lastRun(), ...keptReports().flatMap(testsOfReport)])
  if (!flags.check) writeFileSync(page, text)
  else {
    const known = notYet(existsSync(page) ? readFileSync(page, 'utf8') : '')
    const lost = [...notYet(text)].filter((id) => !known.has(id))
    if (lost.length > 0) fail(`no test showed ${lost.join(', ')}, which docs/requirements.md says are shown`)
  }
}

/** The ids of a page that no test shows. */
function notYet(text: string): Set<string> {
  return new Set([...text.matchAll(/^\| (\S+) \|.*\| not yet[^|]*\|$/gm)].map(([, id = '']) => id))
}

interface VitestReport {
  testResults: { name: string; assertionResults: { fullName: string; status: string }[] }[]
}

function lastRun(): RanTest[] {
  const file = join(root, 'test-report/report.json')
  if (!existsSync(file)) fail('there is no test report: run `npm test` first')
  return (readJson(file) as VitestReport).testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map(({ fullName, status }) => ({ file: name.slice(root.length + 1), name: fullName, status })),
  )
}

function keptReports(): SuiteReport[] {
  if (!existsSync(reports)) return []
  const files = readdirSync(reports).filter((name) => name.endsWith('.json'))
  return files.sort().map((name) => readJson(join(reports, name)) as SuiteReport)
}

function keep(file: string, command: string | undefined, name: string | undefined): void {
  if (!command || !name || !/^[\w-]+$/.test(name)) fail('--keep needs --command and --as, a plain name')
  const content = readJson(file) as Partial<VitestReport> & { results?: { title: string; passed: boolean }[] }
  const tests = content.testResults
    ? content.testResults.flatMap(({ assertionResults }) =>
        assertionResults.map(({ fullName, status }) => ({ name: fullName, status })),
      )
    : (content.results ?? []).map(({ title, passed }) => ({ name: title, status: passed ? 'passed' : 'failed' }))
  if (tests.length === 0) fail(`${file} has no tests in it`)
  const commit = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).stdout.trim()
  const report: SuiteReport = { command, commit, date: new Date().toISOString(), tests }
  mkdirSync(reports, { recursive: true })
  writeFileSync(join(reports, `${name}.json`), `${JSON.stringify(report, null, 2)}\n`)
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'))
}

function fail(text: string): never {
  process.stderr.write(`requirements: ${text}\n`)
  process.exit(1)
}

#!/usr/bin/env node
// Writes docs/requirements.md from the report of the last `npm test`: every requirement id that a passed test carries in
// its name. --check compares instead of writing, --summary prints the runner's counts.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const target = join(root, 'docs/requirements.md')
const report = join(root, 'test-report', 'report.json')
if (!existsSync(report)) fail('there is no test report: run `npm test` first')
const results = JSON.parse(readFileSync(report, 'utf8')).testResults
const tests = results.flatMap(({ name, assertionResults }) =>
  assertionResults.map(({ fullName, status }) => ({ file: name.slice(root.length + 1), name: fullName, status })),
)

if (process.argv.includes('--summary')) {
  const count = (status) => tests.filter((test) => test.status === status).length
  process.stdout.write(
    `${count('passed')} passed, ${count('failed')} failed, ${tests.length - count('passed') - count('failed')} skipped\n`,
  )
} else {
  const text = render(JSON.parse(readFileSync(join(root, 'docs/requirements.json'), 'utf8')))
  if (!process.argv.includes('--check')) writeFileSync(target, text)
  else if (!existsSync(target) || readFileSync(target, 'utf8') !== text)
    fail('docs/requirements.md is not what the tests show: run `npm run requirements`')
}

function render(requirements) {
  const lines = [
    '# Requirements and the tests that show them',
    '',
    'Written by `npm run requirements` from the report of the last test run. A row lists the tests that ran, passed, and carry',
    'the id in their name; "not yet" means no such test passed. Ids are those of the documents the product was ordered from.',
    '',
  ]
  for (const { title, rows } of requirements) {
    lines.push(`## ${title}`, '', '| id | requirement | shown by |', '|---|---|---|')
    for (const { id, text, untestable } of rows)
      lines.push(`| ${id} | ${text} | ${untestable ? `not testable: ${untestable}` : evidence(id)} |`)
    lines.push('')
  }
  return `${lines.join('\n')}`
}

function evidence(id) {
  const pattern = new RegExp(`(^|[^A-Za-z0-9-])${id.replace(/[.]/g, '\\.')}($|[^0-9A-Za-z])`)
  const passed = tests.filter((test) => test.status === 'passed' && pattern.test(test.name))
  const files = [...new Set(passed.map(({ file }) => file))].sort()
  return files.length === 0 ? 'not yet' : files.map((file) => `\`${file}\``).join(', ')
}

function fail(text) {
  process.stderr.write(`requirements: ${text}\n`)
  process.exit(1)
}

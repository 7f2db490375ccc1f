// Runs a vitest command; when a few of its files fail, runs those files once more and says which they were, so that a test
// that fails now and then is seen and counted instead of hidden:
//   tsx scripts/failed-files-again.ts test-report/report.json npm test
// Ends with 0 only when every file passed at its first or its second try. Each second try that saved the run is a line in
// the file that CORRAL_SECOND_TRIES names; the report holds the results of the second try for the files that had one.
import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { relative } from 'node:path'
import { type FileResult, failedFiles, withSecondTry } from './second-try.js'

/** More than these at once is not a test that fails now and then. */
const MOST_FILES = 5

const [report, program, ...parameters] = process.argv.slice(2)
if (report === undefined || program === undefined) {
  process.stderr.write('failed-files-again: name the report and the command that writes it\n')
  process.exit(2)
}
process.exitCode = await main(report, program, parameters)

async function main(file: string, command: string, words: readonly string[]): Promise<number> {
  const startedMs = Date.now()
  const code = await run(command, words)
  if (code === 0 || !existsSync(file) || statSync(file).mtimeMs < startedMs) return code
  const first = read(file)
  const failed = failedFiles(first.testResults)
  if (failed.length === 0 || failed.length > MOST_FILES) return code
  const names = failed.map((name) => relative(process.cwd(), name))
  process.stderr.write(`\n== failed, second try: ${names.join(' ')}\n`)
  const again = await run(command, command === 'npm' ? [...words, '--', ...names] : [...words, ...names])
  writeFileSync(
    file,
    JSON.stringify({ ...first, testResults: withSecondTry(first.testResults, read(file).testResults) }),
  )
  const log = process.env.CORRAL_SECOND_TRIES
  if (again === 0 && log) {
    appendFileSync(log, `${new Date().toISOString()}  ${[command, ...words].join(' ')}  ${names.join(' ')}\n`)
  }
  return again
}

function read(file: string): { testResults: FileResult[] } {
  return JSON.parse(readFileSync(file, 'utf8')) as { testResults: FileResult[] }
}

function run(command: string, words: readonly string[]): Promise<number> {
  const child = spawn(command, words, { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (exitCode, signal) => resolve(exitCode ?? 128 + constants.signals[signal ?? 'SIGKILL']))
  })
}

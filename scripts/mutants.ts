// Changes the code of one package in many small ways and counts the changes that no test notices (StrykerJS). Run by hand: a whole
// package takes from minutes to an hour. The score is (killed + timed out) / valid.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { partsOf } from './mutants/parts.js'
import { sampleOfLines } from './mutants/sample.js'

const usage = `Usage: npm run mutants -- PACKAGE [--sampled] [--force]

  PACKAGE     one of ${Object.keys(partsOf).join(', ')}
  --sampled   the parts whose tests start processes: lines chosen at random with a fixed seed
  --force     tries every mutant again instead of those whose code or tests changed

Writes test-report/mutants/PACKAGE.json and a page to read, PACKAGE.html.
`
const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const args = process.argv.slice(2)
const [name = ''] = args.filter((word) => !word.startsWith('--'))
const parts = partsOf[name]
if (parts === undefined || args.includes('--help')) {
  process.stdout.write(usage)
  process.exit(args.includes('--help') ? 0 : 2)
}
const isSampled = args.includes('--sampled')
const report = isSampled ? `${name}-sampled` : name
const reports = 'test-report/mutants'
mkdirSync(join(root, reports), { recursive: true })

const files = filesOf(isSampled ? parts.sampled : parts.pure)
if (files.length === 0) fail(`${name} has no ${isSampled ? 'sampled' : 'pure'} parts`)
const lineCount = (path: string): number => readFileSync(join(root, path), 'utf8').split('\n').length
const mutate = isSampled ? sampleOfLines(files.map((path) => ({ path, lines: lineCount(path) }))) : files

const vitestConfig = join(root, `${reports}/${report}.vitest.mjs`)
const tests = parts.tests.map((pattern) => join('packages', name, pattern))
writeFileSync(
  vitestConfig,
  `export default ${JSON.stringify({
    resolve: { conditions: ['corral-source'] },
    ssr: { resolve: { conditions: ['corral-source'], externalConditions: ['corral-source'] } },
    test: { include: tests, exclude: ['**/node_modules/**'], testTimeout: 120_000, hookTimeout: 120_000 },
  })}\n`,
)
const strykerConfig = join(root, `${reports}/${report}.stryker.json`)
writeFileSync(
  strykerConfig,
  JSON.stringify({
    testRunner: 'vitest',
    vitest: { configFile: vitestConfig },
    plugins: ['@stryker-mutator/vitest-runner', join(root, 'scripts/mutants/log-texts.mjs')],
    ignorers: ['log-texts'],
    ignorePatterns: ['/test-report', '/docs', '/tools', '/examples', '/bench', '/conformance'],
    mutate,
    coverageAnalysis: 'perTest',
    concurrency: 2,
    timeoutMS: 30_000,
    incremental: true,
    incrementalFile: `${reports}/${report}.incremental.json`,
    reporters: ['json', 'html', 'clear-text', 'progress'],
    clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
    jsonReporter: { fileName: `${reports}/${report}.json` },
    htmlReporter: { fileName: `${reports}/${report}.html` },
    tempDirName: '.stryker-tmp',
    thresholds: { high: 85, low: 75, break: null },
  }),
)
if (args.includes('--force')) rmSync(join(root, `${reports}/${report}.incremental.json`), { force: true })
const run = spawnSync(join(root, 'node_modules/.bin/stryker'), ['run', strykerConfig], { cwd: root, stdio: 'inherit' })
process.exit(run.status ?? 1)

function filesOf(places: readonly string[]): string[] {
  return places
    .map((place) => join('packages', name, place))
    .flatMap((place) =>
      place.endsWith('.ts')
        ? [place]
        : readdirSync(join(root, place), { recursive: true, encoding: 'utf8' }).map((file) => join(place, file)),
    )
    .filter((path) => path.endsWith('.ts') && !/\.test(-suite)?\.ts$/.test(path))
    .sort()
}

function fail(text: string): never {
  process.stderr.write(`mutants: ${text}\n`)
  process.exit(2)
}

// Changes the code of one package in many small ways and counts the changes that no test notices (StrykerJS). Run by hand: a whole
// package takes from minutes to an hour. The score is (killed + timed out) / valid.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { partsOf } from './mutants/parts.js'
import { defaultSampleSize, defaultSeed, sampleOfMutants } from './mutants/sample.js'
import { keepOnlySample, scoreOf } from './mutants/score.js'
import { tryNamed } from './mutants/try-named.js'
import { tryWarm } from './mutants/warm.js'

const usage = `Usage: npm run mutants -- PACKAGE [--sampled] [--only PATH] [--mutants N] [--seed N] [--concurrency N] [--resume] [--force]

  PACKAGE     one of ${Object.keys(partsOf).join(', ')}
  --sampled   the parts whose tests start processes: mutants chosen at random with a fixed seed
  --only      only files whose path inside the package begins with PATH, as a run of its own (src/providers)
  --mutants   a random sample of N mutants instead of all (default of --sampled: ${defaultSampleSize})
  --seed      another sample, as a run of its own: tests that were written for one are judged by another
  --concurrency   how many mutants are tried at once (default: 2)
  --stryker   a sample in Stryker's own runner, which starts a process per mutant
  --resume    goes on with a sample that was cut short, test file by test file, on the same code
  --force     tries every mutant again instead of those whose code or tests changed

  npm run mutants -- named [WORDS]   tries the faults of scripts/mutants/named.ts, each of which one test has to see

Writes test-report/mutants/PACKAGE.json and a page to read, PACKAGE.html; with --sampled or --only the name says so.
`
const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    sampled: { type: 'boolean', default: false },
    only: { type: 'string' },
    mutants: { type: 'string' },
    seed: { type: 'string' },
    concurrency: { type: 'string', default: '2' },
    force: { type: 'boolean', default: false },
    resume: { type: 'boolean', default: false },
    stryker: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const [name = ''] = positionals
if (name === 'named') process.exit(tryNamed(root, positionals[1]) ? 0 : 1)
const parts = partsOf[name]
if (parts === undefined || flags.help) {
  process.stdout.write(usage)
  process.exit(flags.help ? 0 : 2)
}
const sampleSize = flags.mutants ?? (flags.sampled ? defaultSampleSize : undefined)
const report = [name, flags.sampled ? 'sampled' : '', flags.only?.replace(/\W+/g, '-'), flags.seed]
  .filter(Boolean)
  .join('-')
const reports = 'test-report/mutants'
mkdirSync(join(root, reports), { recursive: true })

const files = filesOf(flags.sampled ? parts.sampled : parts.pure).filter((path) =>
  path.startsWith(join('packages', name, flags.only ?? '')),
)
if (files.length === 0) fail(`${name} has no such ${flags.sampled ? 'sampled' : 'pure'} parts`)
const chosen = { size: Number(sampleSize), seed: Number(flags.seed ?? defaultSeed) }
const sample = sampleSize === undefined ? undefined : new Set(await sampleOfMutants(root, files, chosen))
const mutate = sample ? files.filter((path) => [...sample].some((key) => key.startsWith(`${path} `))) : files
const sampleFile = join(root, `${reports}/${report}.sample.json`)
if (sample) writeFileSync(sampleFile, JSON.stringify({ root, keys: [...sample] }))

const vitestConfig = join(root, `${reports}/${report}.vitest.mjs`)
const tests = ((flags.sampled ? parts.sampledTests : undefined) ?? parts.tests).map((pattern) =>
  join('packages', name, pattern),
)
if (sample && !flags.stryker) {
  process.stdout.write(
    await tryWarm({
      root,
      report: `${reports}/${report}`,
      packageName: name,
      files: mutate,
      tests,
      sample,
      resumes: flags.resume,
    }),
  )
  process.exit(0)
}
writeFileSync(
  vitestConfig,
  `export default ${JSON.stringify({
    resolve: { conditions: ['corral-source'] },
    ssr: { resolve: { conditions: ['corral-source'], externalConditions: ['corral-source'] } },
    test: {
      include: tests,
      exclude: ['**/node_modules/**'],
      // A mutant that makes a test wait for ever is killed by the end of these; tests themselves take seconds.
      testTimeout: 45_000,
      hookTimeout: 45_000,
      expect: { poll: { timeout: 20_000 } },
    },
  })}\n`,
)
const incrementalFile = `${reports}/${report}.incremental.json`
const strykerConfig = join(root, `${reports}/${report}.stryker.json`)
writeFileSync(
  strykerConfig,
  JSON.stringify({
    testRunner: 'vitest',
    vitest: { configFile: vitestConfig },
    plugins: [
      '@stryker-mutator/vitest-runner',
      ...['log-texts.mjs', 'only-sample.mjs'].map((file) => join(root, 'scripts/mutants', file)),
    ],
    ignorers: ['log-texts'],
    checkers: sample ? ['only-sample'] : [],
    ignorePatterns: ['/.stryker-tmp', '/test-report', '/tools', '/examples', '/bench', '/conformance'],
    mutate,
    coverageAnalysis: 'perTest',
    concurrency: Number(flags.concurrency),
    // Only what never ends times out: a machine that is busy with other work must not turn a survivor into one.
    timeoutMS: 120_000,
    timeoutFactor: 4,
    incremental: true,
    incrementalFile,
    reporters: ['json', 'html', 'progress-append-only'],
    jsonReporter: { fileName: `${reports}/${report}.json` },
    htmlReporter: { fileName: `${reports}/${report}.html` },
    // One of its own: Stryker removes the directory when it ends, also under another run.
    tempDirName: `.stryker-tmp/${report}`,
    thresholds: { high: 85, low: 75, break: null },
  }),
)
if (flags.force) rmSync(join(root, incrementalFile), { force: true })
const run = spawnSync(join(root, 'node_modules/.bin/stryker'), ['run', strykerConfig], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, CORRAL_MUTANT_SAMPLE: sampleFile },
})
if (sample && existsSync(join(root, incrementalFile))) keepOnlySample(join(root, incrementalFile), sample)
if (run.status === 0) process.stdout.write(scoreOf(join(root, `${reports}/${report}.json`), sample))
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

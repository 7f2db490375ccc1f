import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { Instrumenter } from '@stryker-mutator/instrumenter'
import { createVitest, type Vitest } from 'vitest/node'
import { logTexts } from './log-texts.mjs'
import { keyOf } from './mutant-key.mjs'
import { silent } from './sample.js'

/** How a mutant ended. `NoCoverage`: no test reaches it. */
type Status = 'Killed' | 'Timeout' | 'Survived' | 'NoCoverage'

interface Mutant {
  id: string
  fileName: string
  mutatorName: string
  replacement: string
  location: { start: { line: number; column: number } }
}

/** A line of what the runner writes, see `warm-runner.mjs`. */
interface Told {
  file: string
  /** The test that is told of. */
  id?: string
  reached?: string[]
  /** Files of the code that the test runs. */
  sources?: string[]
  loaded?: string[]
  apart?: string[]
  seen?: string
  by?: 'Killed' | 'Timeout'
  test?: string
  broken?: string
}

export interface WarmOptions {
  root: string
  /** Where the files of a run lie, and what their names begin with. */
  report: string
  packageName: string
  files: readonly string[]
  tests: readonly string[]
  /** Keys of the mutants that are tried. */
  sample: ReadonlySet<string>
  /** Goes on with what a run that was cut short has written, on the same code. */
  resumes: boolean
}

/** A try that takes longer holds its process up for ever: the slowest tests take seconds, on a busy machine a minute or two. */
const hangMs = 100_000
const hangWithoutMutantMs = 300_000
const testTimeoutMs = 45_000
const hookTimeoutMs = 20_000

/**
 * Tries a sample of mutants, most of them in the process that runs the tests anyway: starting one for each takes ten times
 * as long. Mutants of code that runs while modules are loaded have a process of their own, and so have those whose tests
 * cannot be repeated. Prints each mutant that no test saw, and returns the score as a line to copy.
 */
export async function tryWarm(options: WarmOptions): Promise<string> {
  const { root, report, packageName, files, sample } = options
  const { mutants, sources, instrumented } = await instrument(root, files, sample)
  const plan = join(root, `${report}.plan.json`)
  const results = join(root, `${report}.results.jsonl`)
  const progress = join(root, `${report}.progress.json`)
  const ids = mutants.map(({ id }) => id)
  const decided = new Map<string, Status>()
  const write = (active?: string, only: readonly string[] = []): void =>
    writeFileSync(
      plan,
      JSON.stringify({ sample: ids, sources, decided: [...decided.keys()], active, only, results, progress }),
    )
  if (!options.resumes || !existsSync(results)) writeFileSync(results, '')
  writeFileSync(progress, '{}')
  write()
  process.env.CORRAL_MUTANT_PLAN = plan

  const vitest = await startVitest(options, instrumented)
  try {
    // By mutant that wants a process of its own: the tests that may see it, by their files.
    const apart = new Map<string, Map<string, string[]>>()
    const reached = new Set<string>()
    // A test file that fails anyway would see every mutant that it is run with alone.
    const failing = new Set<string>()
    const finished = new Set(readTold(results).flatMap(({ loaded, file }) => (loaded ? file : [])))
    for (const file of await smallestFirst(vitest)) {
      if (!finished.has(file)) await tryFile(vitest, file, { results, progress })
      process.stdout.write(`${relative(root, file)}: ${seenIn(readTold(results)).size} of ${ids.length} seen\n`)
    }
    for (const told of readTold(results)) {
      for (const id of [...(told.reached ?? []), ...(told.loaded ?? [])]) reached.add(id)
      if (told.broken === undefined || failing.has(told.file)) continue
      failing.add(told.file)
      process.stderr.write(`fails without a mutant: ${told.broken} (${told.file})\n`)
    }
    for (const [id, by] of seenIn(readTold(results))) decided.set(id, by)
    collectApart(readTold(results), sources, apart)
    const alone = [...apart].filter(([id]) => !decided.has(id))
    process.stdout.write(
      `${decided.size} of ${ids.length} seen in one process, ${alone.length} have one of their own\n`,
    )
    for (const [id, tests] of alone) {
      write(id, [...tests.values()].flat())
      const isSeen = (): boolean => readTold(results).some(({ seen }) => seen === id)
      const places = [...tests.keys()].filter((place) => !failing.has(place))
      const status = await tryAlone(vitest, nearestFirst(places, sources[id] ?? ''), progress, isSeen)
      if (status) decided.set(id, status)
      process.stdout.write(`${status ?? 'Survived'} ${relative(root, sources[id] ?? '')} in a process of its own\n`)
    }
    for (const id of ids) if (!decided.has(id)) decided.set(id, reached.has(id) ? 'Survived' : 'NoCoverage')
  } finally {
    await vitest.close()
    process.exitCode = 0
  }
  return scoreOf(packageName, root, mutants, decided)
}

async function instrument(root: string, files: readonly string[], sample: ReadonlySet<string>) {
  const instrumenter = new Instrumenter(silent)
  const { mutants, files: changed } = await instrumenter.instrument(
    files.map((path) => ({ name: join(root, path), mutate: true, content: readFileSync(join(root, path), 'utf8') })),
    { plugins: null, excludedMutations: [], ignorers: [logTexts], noHeader: false },
  )
  return {
    sources: Object.fromEntries(mutants.map(({ id, fileName }) => [id, fileName])),
    mutants: mutants.filter((mutant) =>
      sample.has(keyOf({ ...mutant, fileName: relative(root, mutant.fileName) })),
    ) as unknown as Mutant[],
    instrumented: new Map(changed.map(({ name, content }) => [name, content])),
  }
}

function startVitest({ root, packageName, tests }: WarmOptions, instrumented: Map<string, string>): Promise<Vitest> {
  const source = join(root, 'packages', packageName, 'src')
  return createVitest(
    'test',
    {
      root,
      config: false,
      watch: false,
      include: [...tests],
      exclude: ['**/node_modules/**'],
      reporters: [{}],
      runner: join(root, 'scripts/mutants/warm-runner.mjs'),
      pool: 'forks',
      maxWorkers: 1,
      // As many tries as a test has mutants; the runner says when it is over.
      retry: Number.MAX_SAFE_INTEGER,
      testTimeout: testTimeoutMs,
      hookTimeout: hookTimeoutMs,
      expect: { poll: { timeout: testTimeoutMs / 3 } },
      onConsoleLog: () => false,
      // Other packages come as they were built and are loaded by Node itself, which is much quicker.
      server: { deps: { external: [/\/packages\/[^/]+\/dist\//] } },
    },
    {
      resolve: { alias: [{ find: new RegExp(`^@corral/${packageName}$`), replacement: join(source, 'index.ts') }] },
      plugins: [
        {
          name: 'mutants',
          enforce: 'pre',
          load: (id: string) => instrumented.get(id.split('?')[0] ?? ''),
        },
      ],
    },
  )
}

/** What a small test file sees is not tried again by the large ones, whose tests take longest. */
async function smallestFirst(vitest: Vitest): Promise<string[]> {
  const files = (await vitest.globTestSpecifications()).map(({ moduleId }) => moduleId)
  return files.sort((one, other) => statSync(one).size - statSync(other).size)
}

/** Runs one test file with every mutant it reaches. A mutant that hangs is seen by that, and the file is run again without it. */
async function tryFile(
  vitest: Vitest,
  file: string,
  { results, progress }: { results: string; progress: string },
): Promise<void> {
  for (;;) {
    const hung = await runUntilHung(vitest, [file], progress)
    if (hung === undefined) return
    if (hung.mutant === undefined) {
      process.stderr.write(`hangs without a mutant: ${file}\n`)
      return
    }
    appendFileSync(results, `${JSON.stringify({ seen: hung.mutant, by: 'Timeout', file })}\n`)
  }
}

function seenIn(all: readonly Told[]): Map<string, Status> {
  return new Map(all.flatMap(({ seen, by }) => (seen === undefined ? [] : [[seen, by ?? 'Killed']])))
}

/**
 * Adds the tests for mutants that want a process of their own. One of code that runs while modules are loaded is tried by the
 * tests that run code of its file, and by the test of that file.
 */
function collectApart(
  all: readonly Told[],
  sources: Readonly<Record<string, string>>,
  apart: Map<string, Map<string, string[]>>,
): void {
  const add = (mutant: string, { file, id }: Told): void => {
    const tests = apart.get(mutant) ?? new Map<string, string[]>()
    apart.set(mutant, tests.set(file, [...new Set([...(tests.get(file) ?? []), ...(id ? [id] : [])])]))
  }
  for (const told of all) for (const mutant of told.apart ?? []) add(mutant, told)
  for (const mutant of new Set(all.flatMap(({ loaded }) => loaded ?? []))) {
    const source = sources[mutant] ?? ''
    const isNear = ({ file }: Told): boolean => file.startsWith(source.replace(/\.ts$/, '.'))
    for (const told of all) if (told.sources?.includes(source) || (told.sources && isNear(told))) add(mutant, told)
  }
}

/** Runs tests; where a try hangs, its process is ended and the try returned. */
async function runUntilHung(
  vitest: Vitest,
  only: string[],
  progress: string,
): Promise<{ mutant?: string; file: string } | undefined> {
  let hung: { mutant?: string; file: string } | undefined
  const watch = setInterval(() => {
    const now = readProgress(progress)
    if (now.pid === undefined || now.at === undefined) return
    if (Date.now() - now.at < (now.mutant === undefined ? hangWithoutMutantMs : hangMs)) return
    hung = now
    writeFileSync(progress, '{}')
    try {
      process.kill(now.pid, 'SIGKILL')
    } catch {
      // It ended meanwhile.
    }
  }, 5_000)
  try {
    vitest.state.filesMap.clear()
    await vitest.start(only)
  } finally {
    clearInterval(watch)
    writeFileSync(progress, '{}')
  }
  return hung
}

/** Empty while it is being written. */
function readProgress(path: string): { pid?: number; at?: number; mutant?: string; file: string } {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as { file: string }
  } catch {
    return { file: '' }
  }
}

/** Runs the test files one after the other until one of them sees the mutant, which is on from the start. */
async function tryAlone(
  vitest: Vitest,
  places: readonly string[],
  progress: string,
  isSeen: () => boolean,
): Promise<Status | undefined> {
  for (const place of places) {
    vitest.state.errorsSet.clear()
    if (await runUntilHung(vitest, [place], progress)) return 'Timeout'
    const files = vitest.state.getFiles()
    if (vitest.state.errorsSet.size > 0 || files.some(({ result }) => result?.state === 'fail')) return 'Killed'
    if (isSeen()) return 'Killed'
  }
  return undefined
}

/** The test of the file itself sees most of its mutants. */
function nearestFirst(places: readonly string[], fileName: string): string[] {
  const isNear = (place: string): boolean => place.startsWith(fileName.replace(/\.ts$/, '.'))
  return [...places].sort((one, other) => Number(isNear(other)) - Number(isNear(one)))
}

function readTold(path: string): Told[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Told)
}

function scoreOf(
  packageName: string,
  root: string,
  mutants: readonly Mutant[],
  decided: ReadonlyMap<string, Status>,
): string {
  const counts = { Killed: 0, Timeout: 0, Survived: 0, NoCoverage: 0 }
  const unseen: string[] = []
  for (const { id, fileName, mutatorName, replacement, location } of mutants) {
    const status = decided.get(id) ?? 'NoCoverage'
    counts[status] += 1
    if (status === 'Killed' || status === 'Timeout') continue
    const { line, column } = location.start
    const original = readFileSync(fileName, 'utf8').split('\n')[line]?.trim() ?? ''
    unseen.push(
      `${status} ${relative(root, fileName)}:${line + 1}:${column + 1} ${mutatorName}\n  ${original}\n  ${replacement}`,
    )
  }
  const score = (100 * (counts.Killed + counts.Timeout)) / Math.max(1, mutants.length)
  const parts = `${counts.Killed} killed, ${counts.Timeout} timed out, ${counts.Survived} survived, ${counts.NoCoverage} not reached`
  return [...unseen, `${packageName}: ${score.toFixed(1)} % of ${mutants.length} (${parts})`, ''].join('\n')
}

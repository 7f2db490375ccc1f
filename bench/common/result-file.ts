import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BenchOptions, isPartial } from './bench-options.js'
import { commitUnderTest, type LoadReading, type MachineFacts, machineFacts, readLoad } from './machine.js'
import { keepSamples, rounded } from './samples.js'
import { textTable } from './text-table.js'

/** One line of a result: what was measured, for whom, and whether that is enough. */
export interface ResultRow {
  measure: string
  unit: string
  /** By subject: `embedded`, `real`, ... */
  values: Record<string, number>
  /** First subject against second, where that says something. */
  ratio?: number
  /** The requirement in words. */
  required?: string
  isMet?: boolean
}

export interface BenchResult {
  name: string
  date: string
  mode: 'short' | 'full'
  commit: string
  machine: MachineFacts
  load: { before: LoadReading; after: LoadReading }
  versions: Record<string, string>
  rows: ResultRow[]
  /** Raw measurements by name; at most 2,000 each, evenly picked. */
  samples: Record<string, number[]>
  notes: string[]
}

const results = join(dirname(fileURLToPath(import.meta.url)), '..', 'results')

/**
 * Collects rows and samples while a benchmark runs, then prints the table and writes the file. A run with parts left
 * out goes to `local-<name>.json`, which is not committed.
 */
export class Recorder {
  readonly #before = readLoad()
  readonly #rows: ResultRow[] = []
  readonly #samples: Record<string, number[]> = {}
  readonly #notes: string[] = []
  readonly versions: Record<string, string> = {}

  constructor(
    readonly name: string,
    readonly options: BenchOptions,
  ) {}

  samples(name: string, values: readonly number[]): void {
    this.#samples[name] = [...(this.#samples[name] ?? []), ...values]
  }

  row(row: ResultRow): void {
    const values = Object.fromEntries(Object.entries(row.values).map(([name, value]) => [name, rounded(value)]))
    this.#rows.push({ ...row, values, ...(row.ratio === undefined ? {} : { ratio: rounded(row.ratio) }) })
  }

  note(text: string): void {
    this.#notes.push(text)
  }

  finish(): BenchResult {
    const result: BenchResult = {
      name: this.name,
      date: new Date().toISOString(),
      mode: this.options.isFull ? 'full' : 'short',
      commit: commitUnderTest(),
      machine: machineFacts(),
      load: { before: this.#before, after: readLoad() },
      versions: this.versions,
      rows: this.#rows,
      samples: Object.fromEntries(Object.entries(this.#samples).map(([name, all]) => [name, keepSamples(all)])),
      notes: this.#notes,
    }
    mkdirSync(results, { recursive: true })
    writeFileSync(
      join(results, `${isPartial(this.options) ? 'local-' : ''}${this.name}.json`),
      `${compactJson(result)}\n`,
    )
    process.stdout.write(`\n${renderText(result)}\n`)
    return result
  }
}

export function readResult(name: string): BenchResult | undefined {
  try {
    return JSON.parse(readFileSync(join(results, `${name}.json`), 'utf8')) as BenchResult // written by `finish`
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Rows as cells, the same for the terminal and for the document. */
export function tableOf(result: BenchResult): { head: string[]; body: string[][] } {
  const subjects = [...new Set(result.rows.flatMap(({ values }) => Object.keys(values)))]
  const head = ['measure', 'unit', ...subjects, 'ratio', 'required', 'met']
  const body = result.rows.map((row) => [
    row.measure,
    row.unit,
    ...subjects.map((subject) => plain(row.values[subject])),
    row.ratio === undefined ? '' : `${plain(row.ratio)} ×`,
    row.required ?? '',
    row.isMet === undefined ? '' : row.isMet ? 'yes' : 'NO',
  ])
  return { head, body }
}

function renderText(result: BenchResult): string {
  const { head, body } = tableOf(result)
  const load = `load ${result.load.before.loadAverage[0]} before, ${result.load.after.loadAverage[0]} after`
  return [textTable(head, body), ...result.notes.map((note) => `- ${note}`), `${result.mode} run, ${load}`].join('\n')
}

function plain(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return ''
  return value.toLocaleString('en-US', { maximumFractionDigits: 3 })
}

/** Indented, but with each list of numbers on one line: thousands of samples stay reviewable. */
function compactJson(value: unknown): string {
  return JSON.stringify(value, undefined, 1).replace(/\[\s+(-?[\d.e+-]+(?:,\s+-?[\d.e+-]+)*)\s+\]/g, (list) =>
    list.replace(/\s+/g, ''),
  )
}

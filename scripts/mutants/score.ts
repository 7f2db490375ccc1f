import { readFileSync, writeFileSync } from 'node:fs'
import { keyOf } from './mutant-key.mjs'

interface ReportedMutant {
  id: string
  mutatorName: string
  replacement?: string
  status: string
  location: { start: Place; end: Place }
}
interface Place {
  line: number
  column: number
}
interface Report {
  files: Record<string, { source: string; mutants: ReportedMutant[] }>
}

const valid = ['Killed', 'Timeout', 'Survived', 'NoCoverage'] as const

/** The score of a report as a line to copy, and each mutant that no test saw. `sample`: only these mutants count. */
export function scoreOf(reportPath: string, sample: ReadonlySet<string> | undefined): string {
  const counts = { Killed: 0, Timeout: 0, Survived: 0, NoCoverage: 0 }
  const unseen: string[] = []
  for (const [path, { source, mutants }] of Object.entries(readReport(reportPath).files)) {
    const lines = source.split('\n')
    for (const mutant of mutants.filter((each) => isIn(sample, path, each))) {
      const status = valid.find((known) => known === mutant.status)
      if (!status) continue
      counts[status] += 1
      if (status === 'Killed' || status === 'Timeout') continue
      const { start } = mutant.location
      const original = lines[start.line - 1]?.trim() ?? ''
      unseen.push(
        `${status} ${path}:${start.line}:${start.column} ${mutant.mutatorName}\n  ${original}\n  ${mutant.replacement}`,
      )
    }
  }
  const all = counts.Killed + counts.Timeout + counts.Survived + counts.NoCoverage
  const score = all === 0 ? 0 : (100 * (counts.Killed + counts.Timeout)) / all
  const parts = `${counts.Killed} killed, ${counts.Timeout} timed out, ${counts.Survived} survived, ${counts.NoCoverage} not reached`
  return [...unseen, `${score.toFixed(1)} % of ${all} (${parts})`, ''].join('\n')
}

/** Takes what was not in the sample out of the file of the next incremental run, which would believe it refused for ever. */
export function keepOnlySample(incrementalPath: string, sample: ReadonlySet<string>): void {
  const report = readReport(incrementalPath)
  for (const [path, file] of Object.entries(report.files)) {
    file.mutants = file.mutants.filter((each) => isIn(sample, path, each))
  }
  writeFileSync(incrementalPath, JSON.stringify(report))
}

function isIn(sample: ReadonlySet<string> | undefined, path: string, mutant: ReportedMutant): boolean {
  const { start, end } = mutant.location
  const location = { start: fromZero(start), end: fromZero(end) }
  return sample?.has(keyOf({ ...mutant, fileName: path, location })) ?? true
}

/** A report counts lines and columns from 1. */
function fromZero({ line, column }: Place): Place {
  return { line: line - 1, column: column - 1 }
}

function readReport(path: string): Report {
  return JSON.parse(readFileSync(path, 'utf8')) as Report
}

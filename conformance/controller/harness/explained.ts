import type { ColumnId } from './column.js'

interface Explanation {
  readonly column?: ColumnId
  readonly number?: string
  readonly what: RegExp
  readonly reason: string
}

/** Differences that are meant, or that another part decides, each with its reason. */
const explanations: readonly Explanation[] = []

export function explanationOf(finding: { column: ColumnId; number: string; what: string }): string | undefined {
  return explanations.find(
    ({ column = finding.column, number = finding.number, what }) =>
      column === finding.column && number === finding.number && what.test(finding.what),
  )?.reason
}

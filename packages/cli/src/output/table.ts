import { terminalText } from './terminal-text.js'

/** Narrowest a column is cut to. */
const narrow = 6

/** Without line breaks and tabs: a name, label or message from a task must not move the cells after it. */
const cellText = (text: string): string => terminalText(text, false).replace(/[\n\t\u2028\u2029]+/g, ' ')

/** Columns side by side. On a terminal the widest are cut until a row fits; the first, which names the thing, never is. */
export function table(
  header: readonly string[],
  contents: readonly (readonly string[])[],
  columns: number | undefined = process.stdout.isTTY ? process.stdout.columns : undefined,
): string {
  const rows = contents.map((row) => row.map(cellText))
  const widths = header.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const total = (): number => widths.reduce((sum, width) => sum + width, 2 * (widths.length - 1))
  while (columns !== undefined && total() > columns) {
    const widest = Math.max(...widths.slice(1))
    if (widest <= narrow) break
    widths[widths.indexOf(widest, 1)] = widest - 1
  }
  const cut = (cell: string, width: number): string => (cell.length > width ? `${cell.slice(0, width - 1)}…` : cell)
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cut(cell, widths[column] ?? 0).padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  return [line(header), ...rows.map(line)].join('\n')
}

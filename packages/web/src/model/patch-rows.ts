import type { PatchLine } from './patch.js'
import { type Piece, wordChanges } from './word-changes.js'

/** A line of a change, in pieces where only some of its words differ. */
export interface Row {
  line: PatchLine
  pieces?: readonly Piece[] | undefined
}

/** What stands side by side; one of the two may be missing. */
export type Pair = readonly [Row | undefined, Row | undefined]

/** Removed and added lines that stand together, side by side; the words that differ are marked. */
export function pairs(lines: readonly PatchLine[]): Pair[] {
  const rows: Pair[] = []
  for (let at = 0; at < lines.length; ) {
    const line = lines[at]
    if (line?.kind === 'removed' || line?.kind === 'added') {
      const removed = run(lines, at, 'removed')
      const added = run(lines, at + removed.length, 'added')
      for (let index = 0; index < Math.max(removed.length, added.length); index += 1) {
        const [left, right] = [removed[index], added[index]]
        const words = left && right ? wordChanges(left.text, right.text) : undefined
        rows.push([left && { line: left, pieces: words?.before }, right && { line: right, pieces: words?.after }])
      }
      at += Math.max(1, removed.length + added.length)
    } else if (line) {
      rows.push([{ line }, { line }])
      at += 1
    } else at += 1
  }
  return rows
}

function run(lines: readonly PatchLine[], from: number, kind: PatchLine['kind']): PatchLine[] {
  let to = from
  while (lines[to]?.kind === kind) to += 1
  return lines.slice(from, to)
}

/** The same rows as one column: all that is removed before all that is added. */
export function unified(rows: readonly Pair[]): Row[] {
  const all: Row[] = []
  let added: Row[] = []
  for (const [left, right] of rows) {
    const isChange = left?.line.kind === 'removed' || right?.line.kind === 'added'
    if (!isChange) {
      all.push(...added)
      added = []
      if (left) all.push(left)
      continue
    }
    if (left) all.push(left)
    if (right) added.push(right)
  }
  return [...all, ...added]
}

/** In parts of at most so many, in order. */
export function blocksOf<T>(all: readonly T[], size: number): T[][] {
  const blocks: T[][] = []
  for (let at = 0; at < all.length; at += size) blocks.push(all.slice(at, at + size))
  return blocks
}

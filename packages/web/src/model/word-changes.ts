/** A piece of a line; changed pieces are marked inside a removed and an added line that belong together. */
export interface Piece {
  readonly text: string
  readonly isChanged: boolean
}

const maxWords = 400

/**
 * Which words differ between two lines. Lines that have little in common are not marked at all: a line full of marks
 * says less than none.
 */
export function wordChanges(before: string, after: string): { before: Piece[]; after: Piece[] } | undefined {
  const [old, next] = [words(before), words(after)]
  if (old.length > maxWords || next.length > maxWords) return undefined
  const common = longestCommon(old, next)
  const kept = common.reduce((sum, [index]) => sum + (old[index]?.trim().length ?? 0), 0)
  const total = Math.max(before.replace(/\s/g, '').length, after.replace(/\s/g, '').length)
  if (total === 0 || kept / total < 0.3) return undefined
  return {
    before: pieces(old, new Set(common.map(([index]) => index))),
    after: pieces(next, new Set(common.map(([, index]) => index))),
  }
}

const words = (line: string): string[] => line.match(/\w+|\s+|[^\w\s]/gu) ?? []

function pieces(all: readonly string[], same: ReadonlySet<number>): Piece[] {
  const joined: { text: string; isChanged: boolean }[] = []
  all.forEach((text, index) => {
    const isChanged = !same.has(index)
    const last = joined.at(-1)
    if (last && last.isChanged === isChanged) last.text += text
    else joined.push({ text, isChanged })
  })
  return joined
}

/** Pairs of indexes of the longest common subsequence. */
function longestCommon(one: readonly string[], other: readonly string[]): [number, number][] {
  const width = other.length + 1
  const lengths = new Uint16Array((one.length + 1) * width)
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = other.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        one[i] === other[j]
          ? (lengths[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(lengths[(i + 1) * width + j] ?? 0, lengths[i * width + j + 1] ?? 0)
    }
  }
  const pairs: [number, number][] = []
  let [i, j] = [0, 0]
  while (i < one.length && j < other.length) {
    if (one[i] === other[j]) pairs.push([i++, j++])
    else if ((lengths[(i + 1) * width + j] ?? 0) >= (lengths[i * width + j + 1] ?? 0)) i += 1
    else j += 1
  }
  return pairs
}

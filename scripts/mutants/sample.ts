const seed = 20261117
const windowLines = 8
export const defaultSampleLines = 400

/** Windows of lines chosen at random, the same ones each time, in the form Stryker takes (`file.ts:10-17`). */
export function sampleOfLines(
  files: readonly { path: string; lines: number }[],
  wantedLines = defaultSampleLines,
): string[] {
  const windows = files.flatMap(({ path, lines }) =>
    Array.from({ length: Math.ceil(lines / windowLines) }, (_, index) => ({
      path,
      from: index * windowLines + 1,
      to: Math.min(lines, (index + 1) * windowLines),
    })),
  )
  const random = generator(seed)
  const shuffled = windows
    .map((window) => ({ window, order: random() }))
    .sort((one, other) => one.order - other.order)
    .map(({ window }) => window)
  return shuffled
    .slice(0, Math.ceil(wantedLines / windowLines))
    .map(({ path, from, to }) => `${path}:${from}-${to}`)
    .sort()
}

/** Mulberry32: small, and the same on every machine. */
function generator(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

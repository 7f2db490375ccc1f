/** The numbers of a list of processors as the kernel writes it: `0-3,8`. */
export function parseProcessors(text: string): number[] {
  return text
    .trim()
    .split(',')
    .filter(Boolean)
    .flatMap((range) => {
      const [first = 0, last = first] = range.split('-').map(Number)
      return Array.from({ length: last - first + 1 }, (_, index) => first + index)
    })
}

/** What is left of the processors when a quarter of them, and one at least, is kept free; undefined where that is none. */
export function withoutReserved(all: readonly number[]): number[] | undefined {
  const left = all.slice(Math.max(1, Math.floor(all.length / 4)))
  return left.length > 0 ? left : undefined
}

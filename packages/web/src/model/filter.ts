/** Whether every word of `query` is in `text`, in any order and case. */
export function matches(text: string, query: string): boolean {
  const whole = text.toLowerCase()
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => whole.includes(word))
}

/** A word that a POSIX shell reads as it is, for commands in hints. */
export function shellQuote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`
}

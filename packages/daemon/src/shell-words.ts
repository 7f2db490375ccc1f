/** Splits a command line as a POSIX shell would quote it, without any expansion. Throws where a quote is left open. */
export function shellWords(line: string): string[] {
  const words: string[] = []
  let word: string | undefined
  for (let i = 0; i < line.length; i += 1) {
    const char = line[i]!
    if (char === "'") {
      const end = line.indexOf("'", i + 1)
      if (end < 0) throw new Error('No closing quotation')
      word = (word ?? '') + line.slice(i + 1, end)
      i = end
    } else if (char === '"') {
      word ??= ''
      for (i += 1; line[i] !== '"'; i += 1) {
        if (i >= line.length) throw new Error('No closing quotation')
        if (line[i] === '\\' && '"\\$`'.includes(line[i + 1] ?? ' ')) i += 1
        word += line[i]
      }
    } else if (char === '\\') {
      i += 1
      if (i >= line.length) throw new Error('No escaped character')
      word = (word ?? '') + line[i]
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? '') + char
  }
  if (word !== undefined) words.push(word)
  return words
}

import { lexer, type Token } from 'marked'

const mostLetters = 128 * 1024
/** The parser compares each mark that may begin an emphasis or a link with those after it. */
const mostMarks = 4_000
/** The parser fills each row of a table up to the width of the first: a few letters are a cell in every column. */
const mostCells = 50_000
/** Each level is a call inside a call, in the parser and when it is drawn. */
const mostLevels = 40

const marks = /[*_~`[\]<]/g
const deep = new RegExp(`^(?:[ \\t]*(?:>|[-+*](?=[ \\t])|\\d{1,9}[.)](?=[ \\t]))){${mostLevels}}`, 'm')

/** The parts of a text in Markdown; undefined for a text that would hold up the page or end it, which is shown as it is. */
export function markdownTokens(text: string): Token[] | undefined {
  if (text.length > mostLetters || (text.match(marks)?.length ?? 0) > mostMarks) return undefined
  if (deep.test(text) || cells(text) > mostCells) return undefined
  try {
    const tokens = lexer(text)
    return levels(tokens) > 3 * mostLevels ? undefined : tokens
  } catch {
    return undefined // Nested past the stack.
  }
}

/** As many as a table may have that begins with the line of the most columns. */
function cells(text: string): number {
  const lines = text.split('\n')
  return lines.length * lines.reduce((most, line) => Math.max(most, line.split('|').length - 1), 0)
}

function levels(tokens: readonly Token[]): number {
  return tokens.reduce((most, token) => {
    const { tokens: own = [], items = [] } = token as { tokens?: Token[]; items?: Token[] }
    return Math.max(most, 1 + levels(own), 1 + levels(items))
  }, 0)
}

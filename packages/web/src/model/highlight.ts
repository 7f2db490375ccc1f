/**
 * Colours for lines of code without a grammar: comments, strings, numbers and the words a language keeps for itself. A
 * patch shows pieces of files, so a line is read alone; what a line cannot tell (the inside of a long comment) stays plain.
 */
export interface Language {
  readonly keywords: ReadonlySet<string>
  /** What starts a comment that goes to the end of the line. */
  readonly comment: string
}

export interface Token {
  readonly kind: 'plain' | 'comment' | 'string' | 'number' | 'keyword' | 'type'
  readonly text: string
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '))
const script = words(
  'abstract any as async await boolean break case catch class const continue default delete do else enum export extends false finally for from function get if implements import in instanceof interface is keyof let new null number of private protected public readonly return satisfies set static string super switch this throw true try type typeof undefined unknown using var void while yield',
)
const python = words(
  'False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return self try while with yield',
)
const go = words(
  'any bool break byte case chan const continue default defer else error fallthrough false float64 for func go goto if import int int64 interface map nil package range return rune select string struct switch true type uint var',
)
const rust = words(
  'as async await bool break const continue crate dyn else enum extern false fn for i32 i64 if impl in let loop match mod move mut pub ref return self Self static str struct super trait true type u32 u64 u8 unsafe use usize where while',
)
const c = words(
  'auto bool break case char class const constexpr continue default delete do double else enum extern false final float for if import int interface long namespace new null nullptr package private protected public return short signed sizeof static struct switch template this throw true try typedef union unsigned using virtual void volatile while',
)
const ruby = words(
  'begin break case class def do else elsif end ensure false for if in module next nil not or redo rescue return self super then true unless until when while yield',
)
const shell = words('case do done elif else esac exit export fi for function if in local return set then trap while')
const sql = words(
  'ALTER AND AS BY CREATE DELETE DROP FROM GROUP INDEX INSERT INTO JOIN KEY LEFT NOT NULL ON OR ORDER PRIMARY REFERENCES SELECT SET TABLE UPDATE VALUES WHERE alter and as by create delete drop from group index insert into join key left not null on or order primary references select set table update values where',
)
const data = words('false null true yes no')
const none: ReadonlySet<string> = new Set()

const languages: readonly [extensions: string, language: Language][] = [
  ['ts tsx mts cts js jsx mjs cjs vue svelte', { keywords: script, comment: '//' }],
  ['py pyi', { keywords: python, comment: '#' }],
  ['go', { keywords: go, comment: '//' }],
  ['rs', { keywords: rust, comment: '//' }],
  ['c h cc cpp hpp cs java kt kts swift scala dart php proto', { keywords: c, comment: '//' }],
  ['rb rake', { keywords: ruby, comment: '#' }],
  ['sh bash zsh', { keywords: shell, comment: '#' }],
  ['sql', { keywords: sql, comment: '--' }],
  ['yaml yml toml ini conf', { keywords: data, comment: '#' }],
  ['json jsonc json5', { keywords: data, comment: '//' }],
  ['css scss less', { keywords: none, comment: '/*' }],
]

export function languageOf(path: string): Language | undefined {
  const name = path.slice(path.lastIndexOf('/') + 1)
  if (/^(Dockerfile|Makefile)/.test(name)) return { keywords: shell, comment: '#' }
  const extension = name.slice(name.lastIndexOf('.') + 1).toLowerCase()
  return languages.find(([extensions]) => extensions.split(' ').includes(extension))?.[1]
}

const longestLine = 2_000
const pattern = /("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)|(\b\d[\w.]*\b)|([A-Za-z_$][\w$]*)/g

export function highlight(line: string, language: Language): Token[] {
  if (line.length > longestLine) return [{ kind: 'plain', text: line }]
  const tokens: Token[] = []
  let at = 0
  const add = (kind: Token['kind'], text: string): void => {
    const last = tokens.at(-1)
    if (text === '') return
    if (last && last.kind === kind) tokens[tokens.length - 1] = { kind, text: last.text + text }
    else tokens.push({ kind, text })
  }
  const start = commentStart(line, language.comment)
  const code = start === -1 ? line : line.slice(0, start)
  for (const match of code.matchAll(pattern)) {
    add('plain', code.slice(at, match.index))
    at = match.index + match[0].length
    const [text, string, number, word] = match
    if (string !== undefined) add('string', text)
    else if (number !== undefined) add('number', text)
    else if (word !== undefined && language.keywords.has(word)) add('keyword', text)
    else if (word !== undefined && /^[A-Z][a-z]\w*$/.test(word) && language.keywords.size > 10) add('type', text)
    else add('plain', text)
  }
  add('plain', code.slice(at))
  if (start !== -1) add('comment', line.slice(start))
  return tokens
}

/** Where a comment begins that is not inside a string; -1 without one. A line of a block comment is one as a whole. */
function commentStart(line: string, mark: string): number {
  if (mark !== '#' && /^\s*(\/\*|\*[ /]|\*$)/.test(line)) return 0
  let quote = ''
  for (let at = 0; at < line.length; at += 1) {
    const letter = line[at] ?? ''
    if (quote) {
      if (letter === '\\') at += 1
      else if (letter === quote) quote = ''
    } else if (line.startsWith(mark, at) && (mark !== '#' || at === 0 || /\s/.test(line[at - 1] ?? ''))) return at
    else if (letter === '"' || letter === "'" || letter === '`') quote = letter
  }
  return -1
}

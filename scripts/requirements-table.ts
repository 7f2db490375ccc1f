/** A requirement of the documents the product was ordered from. */
export interface Requirement {
  readonly id: string
  readonly text: string
  readonly untestable?: string
}

export interface Section {
  readonly title: string
  readonly rows: readonly Requirement[]
}

/** A test that ran: in `npm test`, or in a suite whose report is committed. */
export interface RanTest {
  readonly file: string
  readonly name: string
  readonly status: string
  /** The suite outside `npm test` and when it ran. */
  readonly suite?: { readonly command: string; readonly commit: string; readonly date: string }
}

/** The report of a suite outside `npm test`, as `docs/reports` keeps it. */
export interface SuiteReport {
  readonly command: string
  readonly commit: string
  readonly date: string
  readonly tests: readonly { readonly name: string; readonly status: string }[]
}

/** Tests of one row that are named; more are counted. */
const mostNamed = 3

export function testsOfReport({ command, commit, date, tests }: SuiteReport): RanTest[] {
  return tests.map(({ name, status }) => ({ file: '', name, status, suite: { command, commit, date } }))
}

/** The page, with the test that asserts each id: the one that carries it in its name, has run and has passed. */
export function requirementsPage(sections: readonly Section[], tests: readonly RanTest[]): string {
  const lines = [
    '# Requirements and the tests that assert them',
    '',
    'Written by `npm run requirements` from the report of the last `npm test` and from the reports of longer suites in',
    '`docs/reports`, which say at which commit and when they ran. A row names the tests that carry the id, ran and passed, by file',
    'and title: they assert it, no other test does. "not yet" means there is none. Ids are those of the documents the product was',
    'ordered from.',
    '',
  ]
  for (const { title, rows } of sections) {
    lines.push(`## ${title}`, '', '| id | requirement | asserted by |', '|---|---|---|')
    for (const { id, text, untestable } of rows)
      lines.push(`| ${id} | ${text} | ${untestable ? `not testable: ${untestable}` : assertedBy(id, tests)} |`)
    lines.push('')
  }
  return lines.join('\n')
}

function assertedBy(id: string, tests: readonly RanTest[]): string {
  const pattern = new RegExp(`(^|[^A-Za-z0-9-])${id.replaceAll('.', '\\.')}($|[^0-9A-Za-z])`)
  const found = tests.filter(({ status, name }) => status === 'passed' && pattern.test(name)).map(told)
  const named = [...new Set(found)].sort()
  if (named.length === 0) return 'not yet'
  const more = named.length - mostNamed
  return [...named.slice(0, mostNamed), ...(more > 0 ? [`${more} more`] : [])].join('; ')
}

/** File and title, or suite, commit, day and title. A title stands without the ids it begins with. */
function told({ file, name, suite }: RanTest): string {
  const title = name
    .replace(/^(.*?\s)?(?:[A-Z]+\d*-[\w.]+[\s,]*)+:\s*/, '$1')
    .replaceAll('|', '\\|')
    .replaceAll(/\s+/g, ' ')
    .trim()
  if (suite) return `\`${suite.command}\` at ${suite.commit.slice(0, 7)} on ${suite.date.slice(0, 10)}: ${title}`
  return `\`${file}\`: ${title}`
}

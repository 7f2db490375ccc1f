import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { corralProgram } from '@corral/testing'

const web = join(corralProgram, '..', 'web')
const kilobyte = 1_000

export interface FileSize {
  readonly what: string
  /** Compressed with gzip, in thousands of bytes. */
  readonly kilobytes: number
  readonly budget: number
}

/** What a browser loads before the first page is there, and what it loads later, as built. Exact on any machine. */
export function fileSizes(): FileSize[] {
  const page = readFileSync(join(web, 'index.html'), 'utf8')
  const files = readdirSync(join(web, 'assets'))
  const gzip = (name: string): number => statSync(join(web, 'assets', `${name}.gz`)).size / kilobyte
  const named = (start: string, end: string): string =>
    files.find((name) => name.startsWith(start) && name.endsWith(end)) ?? ''
  const main = /assets\/(main-[A-Z0-9]+\.js)/.exec(page)?.[1] ?? ''
  const first = withImports(main)
  const sum = (names: Iterable<string>): number => [...names].reduce((total, name) => total + gzip(name), 0)
  const later = (start: string): number => sum([...withImports(named(start, '.js'))].filter((name) => !first.has(name)))
  return [
    { what: 'first JavaScript, gzip', kilobytes: sum(first), budget: 45 },
    { what: 'first CSS, gzip', kilobytes: gzip(named('main-', '.css')), budget: 10 },
    { what: 'page of a task, with its diff and highlighting, gzip', kilobytes: later('task-page-'), budget: 60 },
    { what: 'terminal, when it is opened, gzip', kilobytes: later('terminal-view-'), budget: 90 },
    { what: 'Markdown, with the first message, gzip', kilobytes: later('markdown-text-'), budget: 16 },
  ]
}

/** A file and what it imports before it runs. */
function withImports(name: string, found = new Set<string>()): Set<string> {
  if (name === '' || found.has(name)) return found
  found.add(name)
  const text = readFileSync(join(web, 'assets', name), 'utf8')
  for (const [, other = ''] of text.matchAll(/(?:from|import)\s*"\.\/([\w-]+\.js)"/g)) withImports(other, found)
  return found
}

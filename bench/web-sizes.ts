import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { bundle } from './common/corral-process.js'
import type { Recorder } from './common/result-file.js'

const web = join(bundle, '..', 'web')
const kilobyte = 1_000

/** What a browser loads before the first page is there, and what it loads later. Exact on any machine. */
export function fileSizes(recorder: Recorder): void {
  const page = readFileSync(join(web, 'index.html'), 'utf8')
  const files = readdirSync(join(web, 'assets'))
  const gzip = (name: string): number => statSync(join(web, 'assets', `${name}.gz`)).size / kilobyte
  const named = (start: string, end: string): string =>
    files.find((name) => name.startsWith(start) && name.endsWith(end)) ?? ''
  const main = /assets\/(main-[A-Z0-9]+\.js)/.exec(page)?.[1] ?? ''
  const first = withImports(main)
  const sum = (names: Iterable<string>): number => [...names].reduce((total, name) => total + gzip(name), 0)
  const row = (measure: string, size: number, budget: number): void =>
    recorder.row({
      measure,
      unit: 'KB',
      values: { corral: size },
      required: `<= ${budget} KB`,
      isMet: size <= budget,
    })
  row('first JavaScript, gzip', sum(first), 45)
  row('first CSS, gzip', gzip(named('main-', '.css')), 10)
  const later = (start: string): Set<string> =>
    new Set([...withImports(named(start, '.js'))].filter((name) => !first.has(name)))
  row('terminal, when it is opened, gzip', sum(later('terminal-view-')), 90)
  row('Markdown, with the first message, gzip', sum(later('markdown-text-')), 16)
}

/** A file and what it imports before it runs. */
function withImports(name: string, found = new Set<string>()): Set<string> {
  if (name === '' || found.has(name)) return found
  found.add(name)
  const text = readFileSync(join(web, 'assets', name), 'utf8')
  for (const [, other = ''] of text.matchAll(/(?:from|import)\s*"\.\/([\w-]+\.js)"/g)) withImports(other, found)
  return found
}

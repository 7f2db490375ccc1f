import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildProgram } from '../../packages/cli/src/program.js'
import { hintsOf } from './hints.js'

/** A command line as it is printed for people to paste. */
export interface PrintedCommand {
  /** The file and line, or the command whose help shows it. */
  readonly where: string
  /** `block`: a fenced `sh` block. `transcript`: after a `$`. `mention`: inside a sentence. `help`, `hint`: the program's own. */
  readonly kind: 'block' | 'transcript' | 'mention' | 'help' | 'hint'
  readonly text: string
}

/** Programs whose command lines are looked at where they stand inside a sentence. */
const programs = /^(?:[A-Z_]+=\S+ )*(?:\.\/corral|corral|npm|npx|kubectl|node_modules\/\.bin\/\w+)(?: |$)/

/** Every page of the repository, except what the release tool writes. */
export function pagesOf(root: string): string[] {
  const { stdout } = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '*.md'], {
    cwd: root,
    encoding: 'utf8',
  })
  return [...new Set(stdout.split('\0'))].filter((page) => page !== '' && page !== 'CLAUDE.md').sort()
}

/** The `sh` blocks of a page as the statements a person pastes one after the other. */
export function statementsOf(root: string, page: string): PrintedCommand[] {
  const found: PrintedCommand[] = []
  for (const { language, start, lines } of fencesOf(root, page)) {
    if (!/^(sh|bash|shell|console)$/.test(language)) continue
    let first = start
    let text = ''
    lines.forEach((line, index) => {
      if (text === '') first = start + index
      text += text === '' ? line : `\n${line}`
      if (/^\s*(#.*)?$/.test(text)) text = ''
      else if (isComplete(text)) {
        found.push({ where: `${page}:${first}`, kind: 'block', text })
        text = ''
      }
    })
    if (text !== '') throw new Error(`${page}:${first} is not a whole command: ${text}`)
  }
  return found
}

/** The pages that are pasted. A decision record shows how a thing is called and is not worked through. */
export function pagesToPaste(root: string): string[] {
  return pagesOf(root).filter((page) => !page.startsWith('docs/adr/') && statementsOf(root, page).length > 0)
}

/** Commands of a page outside its `sh` blocks: transcripts of sessions, and code inside sentences. */
export function mentionsOf(root: string, page: string): PrintedCommand[] {
  const fences = fencesOf(root, page)
  const transcripts = fences
    .filter(({ language }) => language === '')
    .flatMap(({ start, lines }) =>
      lines.flatMap((line, index) =>
        line.startsWith('$ ')
          ? [{ where: `${page}:${start + index}`, kind: 'transcript' as const, text: line.slice(2) }]
          : [],
      ),
    )
  const inside = new Set(fences.flatMap(({ start, lines }) => lines.map((_, index) => start + index)))
  const sentences = read(root, page)
    .split('\n')
    .map((line, index) => (inside.has(index + 1) ? '' : line))
    .join('\n')
  const mentions = [...sentences.matchAll(/(?<!`)`([^`]+)`(?!`)/g)]
    .map(({ 1: text = '', index }) => ({
      where: `${page}:${sentences.slice(0, index).split('\n').length}`,
      kind: 'mention' as const,
      text: text.replaceAll(/\s+/g, ' ').trim(),
    }))
    .filter(({ text }) => programs.test(text))
  return [...transcripts, ...mentions]
}

/** The lines of the program's help texts that are examples. */
export function helpExamples(): PrintedCommand[] {
  const found: PrintedCommand[] = []
  const visit = (command: ReturnType<typeof buildProgram>, name: string): void => {
    let text = ''
    command.configureOutput({
      writeOut: (part) => {
        text += part
      },
    })
    command.outputHelp()
    const after = text.split(/^(?=(?:Examples?|Start here)[^\n]*:$)/m)[1] ?? ''
    for (const [, line = ''] of after.matchAll(/^ {2}(\S.*)$/gm)) {
      // An explanation stands apart from the command by several spaces.
      const example = line.replace(/ {2,}\S.*$/, '').trim()
      if (/\b(corral|kubectl) /.test(example)) found.push({ where: `${name} --help`, kind: 'help', text: example })
    }
    for (const each of command.commands) visit(each, `${name} ${each.name()}`)
  }
  visit(buildProgram(), 'corral')
  return found
}

/** Commands that messages and hints in the code tell a person to run. */
export function printedHints(root: string): PrintedCommand[] {
  return hintsOf(root).map(({ where, text }) => ({ where, kind: 'hint', text }))
}

interface Fence {
  readonly language: string
  /** The line of its first command. */
  readonly start: number
  readonly lines: readonly string[]
}

function fencesOf(root: string, page: string): Fence[] {
  const fences: Fence[] = []
  let open: { language: string; start: number; lines: string[] } | undefined
  read(root, page)
    .split('\n')
    .forEach((line, index) => {
      const mark = /^\s*```\s*(\S*)/.exec(line)
      if (!mark) open?.lines.push(line)
      else if (open) {
        fences.push(open)
        open = undefined
      } else open = { language: mark[1] ?? '', start: index + 2, lines: [] }
    })
  return fences
}

const read = (root: string, page: string): string => readFileSync(join(root, page), 'utf8')

/** Whether bash would run this now instead of asking for another line. */
function isComplete(text: string): boolean {
  if (text.endsWith('\\')) return false
  const { status, stderr } = spawnSync('bash', ['-n'], { input: `${text}\n`, encoding: 'utf8' })
  return status === 0 && !stderr.includes('here-document')
}

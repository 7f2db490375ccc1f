import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { problemOf, scriptsOf, wordsOfMention } from './known-commands.js'
import {
  helpExamples,
  mentionsOf,
  type PrintedCommand,
  pagesOf,
  printedHints,
  statementsOf,
} from './printed-commands.js'
import { shellWords } from './shell-words.js'

const root = join(import.meta.dirname, '../..')
const pages = pagesOf(root)

/** Statements of blocks and help have every argument; code inside a sentence may name a command only. */
function problemsOf(commands: readonly PrintedCommand[]): string[] {
  const statements = commands.filter(({ kind }) => kind === 'block' || kind === 'help' || kind === 'transcript')
  const words = shellWords(statements.map(({ text }) => text))
  const tell = ({ where, text }: PrintedCommand, problem: string | undefined): string[] =>
    problem === undefined ? [] : [`${where}: \`${text}\` ${problem}`]
  return [
    ...statements.flatMap((each, index) =>
      (words[index] ?? []).flatMap((call) => tell(each, problemOf(call, root, { whole: true }))),
    ),
    // A program that bash was never seen to start was not tried.
    ...statements.flatMap((each, index) =>
      /^\W*(\.\/)?(corral|npm|npx|kubectl)\b/.test(each.text) && words[index]?.length === 0
        ? tell(each, 'is not understood')
        : [],
    ),
    ...commands
      .filter((each) => !statements.includes(each))
      .flatMap((each) =>
        wordsOfMention(each.text).flatMap((call) => tell(each, problemOf(call, root, { whole: false }))),
      ),
  ]
}

describe('commands that are printed for people exist, with their options and values', () => {
  it.each(pages)('%s', (page) => {
    expect(problemsOf([...statementsOf(root, page), ...mentionsOf(root, page)])).toEqual([])
  })

  it('examples of --help', () => {
    const examples = helpExamples()
    expect(examples.length).toBeGreaterThan(10)
    expect(problemsOf(examples)).toEqual([])
  })

  it('errors and hints', () => {
    const hints = printedHints(root)
    expect(hints.length).toBeGreaterThan(20)
    expect(problemsOf(hints)).toEqual([])
  })

  it('scripts of npm that any page, workflow or CI step names are in package.json', () => {
    const known = scriptsOf(root)
    const unknown = [...pages, '.ci/run', '.github/workflows/ci.yml'].flatMap((page) =>
      [...readFileSync(join(root, page), 'utf8').matchAll(/\bnpm run (?:--silent )?([\w:-]*\w)/g)]
        .map(([, name = '']) => name)
        .filter((name) => !known.has(name))
        .map((name) => `${page}: npm run ${name}`),
    )
    expect(unknown).toEqual([])
  })
})

describe('a printed command that is wrong is found', () => {
  it.each([
    { printed: './corral frobnicate', problem: 'there is no command "frobnicate"' },
    { printed: 'corral task list --colour', problem: 'there is no option --colour' },
    { printed: 'corral run "Say hello" --timeout soon', problem: /--timeout/ },
    { printed: 'corral task get', problem: 'needs <id>' },
    { printed: 'corral task list all', problem: 'takes no "all"' },
    { printed: 'corral task', problem: 'names no command' },
    { printed: 'npm run no-such-script', problem: 'package.json has no script "no-such-script"' },
    { printed: 'kubectl apply -f examples/nowhere', problem: 'examples/nowhere does not exist' },
    { printed: 'node_modules/.bin/vitest run packages/nowhere', problem: 'packages/nowhere does not exist' },
    { printed: 'export X="$(./corral kubeconfig --path)"', problem: 'there is no option --path' },
    { printed: 'corral run "Fix it" --repo ~/src/app | tee log # see', problem: undefined },
  ])('$printed', ({ printed, problem }) => {
    const found = shellWords([printed])[0]?.map((words) => problemOf(words, root, { whole: true }))[0]
    if (problem instanceof RegExp) expect(found).toMatch(problem)
    else expect(found).toBe(problem)
  })
})

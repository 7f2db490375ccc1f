import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import {
  findKubectl,
  type HostSnapshot,
  hostSnapshot,
  isFullSize,
  leftoversOf,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { problemOf, wordsOfMention } from './known-commands.js'
import { endBackground, failuresOf, type Pasted, paste, type Statement, type Workplace } from './pasted-session.js'
import { currentPerson, installCurl, sampleRepository } from './person.js'
import { helpExamples, type PrintedCommand, pagesToPaste, printedHints, statementsOf } from './printed-commands.js'
import { before, beforeHelp, missingFor, placeholders, standIns } from './stand-ins.js'

const root = join(import.meta.dirname, '../..')
const used = new Set<object>()
/** What a new user reads first; the rest in full size, as CI runs it. */
const pages = pagesToPaste(root)
  .filter((page) => isFullSize || page === 'README.md')
  .filter((page) => {
    const missing = missingFor(page)
    if (missing.length > 0) process.stderr.write(`${page} is left out: this machine has no ${missing.join(', ')}\n`)
    return missing.length === 0
  })

/** The documents as a person pastes them, in a copy of this tree, as the account that runs the tests. */
describe.skipIf(findKubectl() === undefined)('printed commands, pasted (needs kubectl)', () => {
  let scratch: TemporaryDirectory
  let workplace: Workplace
  let snapshot: HostSnapshot
  beforeAll(async () => {
    snapshot = hostSnapshot()
    scratch = temporaryDirectory('corral documents ')
    const person = currentPerson(join(scratch.path, 'home'))
    installCurl(person.home)
    symlinkSync(join(root, 'corral'), join(person.home, 'bin', 'corral'))
    workplace = { person, directory: copyOfTree(join(scratch.path, 'corral')), isClone: false }
    expect(await paste([{ where: 'sample', text: sampleRepository, isOwn: true }], workplace)).toMatchObject([
      { code: 0 },
    ])
  })
  afterAll(async () => {
    await scratch?.[Symbol.asyncDispose]()
  })

  async function run(statements: readonly Statement[], directory = workplace.directory): Promise<Pasted[]> {
    const all = await paste(statements, { ...workplace, directory })
    for (const { standIn } of all) if (standIn) used.add(standIn)
    await endBackground(workplace.person)
    expect(leftoversOf(workplace.person.home, snapshot)).toEqual([])
    for (const path of ['data', '.corral', 'own data', 'another data'])
      rmSync(join(workplace.person.home, path), { recursive: true, force: true })
    return all
  }

  it.each(pages)('%s', async (page) => {
    const needs = before[page] ? [{ where: `what ${page} takes for granted`, text: before[page], isOwn: true }] : []
    const pasted = await run([...needs, ...statementsOf(root, page)])
    expect(failuresOf(pasted)).toEqual([])
  })

  if (isFullSize) {
    it('examples of --help and what hints tell to do, in a repository, with a platform that runs', async () => {
      const groups = new Map<string, PrintedCommand[]>()
      for (const each of [...helpExamples(), ...pasteable(printedHints(root))]) {
        const group = each.kind === 'help' ? each.where : 'hints'
        groups.set(group, [...(groups.get(group) ?? []), each])
      }
      const statements = [...groups].flatMap(([where, group]) => [
        { where, text: 'corral status > /dev/null 2>&1 || corral up -d', isOwn: true },
        ...(beforeHelp[where] ? [{ where, text: beforeHelp[where], isOwn: true }] : []),
        ...unique(group),
      ])
      const pasted = await run(statements, join(workplace.person.home, 'src/app'))
      expect(failuresOf(pasted)).toEqual([])
    })

    it('no row of the table of stand-ins is left over', () => {
      expect(standIns.filter((row) => !used.has(row)).map(({ when }) => String(when))).toEqual([])
    })
  }
})

/**
 * Hints that are lines to paste, with values for what they leave open. Those that only name a command, or leave open what
 * only the case at hand knows, are checked and not run.
 */
function pasteable(hints: readonly PrintedCommand[]): PrintedCommand[] {
  return hints
    .map((hint) => ({ ...hint, text: hint.text.replaceAll(capitals, (word) => placeholders[word] ?? word) }))
    .filter(({ text }) => /^corral \w+ |^kubectl |^git config /.test(text) && text.search(capitals) < 0)
    .filter(({ text }) => problemOf(wordsOfMention(text)[0] ?? [], root, { whole: true }) === undefined)
}

const capitals = /\b[A-Z][A-Z_]+\b/g

function unique(statements: readonly Statement[]): Statement[] {
  return [...new Map(statements.map(({ where, text }) => [text, { where, text }])).values()]
}

/** The files git knows as they are now, as a repository of one commit whose `corral` is the one that is built here. */
function copyOfTree(directory: string): string {
  const git = (cwd: string, ...args: string[]): string => execFileSync('git', args, { cwd, encoding: 'utf8' })
  const files = git(root, 'ls-files', '-z', '--cached', '--others', '--exclude-standard').split('\0')
  mkdirSync(directory)
  for (const file of new Set(files.filter(Boolean)))
    cpSync(join(root, file), join(directory, file), { verbatimSymlinks: true })
  git(directory, 'init', '-q', '-b', 'main')
  git(directory, 'add', '-A')
  git(directory, '-c', 'user.name=Test', '-c', 'user.email=test@localhost', 'commit', '-qm', 'copy')
  git(directory, 'update-index', '--skip-worktree', 'corral')
  rmSync(join(directory, 'corral'))
  symlinkSync(join(root, 'corral'), join(directory, 'corral'))
  return directory
}

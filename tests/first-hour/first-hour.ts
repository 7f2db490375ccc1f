// The first hour of a new user, from a fresh clone in a path with spaces to nothing left running:
//   npm run first-hour                 as the account that runs it, and as a plain user where root may make one
//   npm run first-hour -- --as root    only one of them (root, user)
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { hostSnapshot, leftoversOf, temporaryDirectory } from '@corral/testing'
import { endBackground, failuresOf, paste, type Statement, type Workplace } from '../documents/pasted-session.js'
import { currentPerson, installCurl, type Person, sampleRepository } from '../documents/person.js'
import { pagesToPaste, statementsOf } from '../documents/printed-commands.js'
import { before } from '../documents/stand-ins.js'
import { makePlainUser } from './plain-user.js'
import { trials } from './tasks-to-try.js'

const root = join(import.meta.dirname, '../..')
const only = process.argv.includes('--as') ? process.argv[process.argv.indexOf('--as') + 1] : undefined
const say = (text: string): void => void process.stdout.write(`${text}\n`)
const problems: string[] = []

await using scratch = temporaryDirectory('corral first hour ')
if (only !== 'user') {
  const person = currentPerson(join(scratch.path, 'home of one'))
  installCurl(person.home)
  await firstHour(person)
}
if (only !== 'root' && process.getuid?.() === 0) {
  const made = makePlainUser(scratch.path)
  if ('reason' in made) say(`first hour: left out for a plain user: ${made.reason}`)
  else {
    await using user = made
    await firstHour(user.person)
  }
}
if (problems.length > 0) process.stderr.write(`first hour: ${problems.length} things did not work\n`)
process.exitCode = problems.length === 0 ? 0 : 1

async function firstHour(person: Person): Promise<void> {
  const began = Date.now()
  const snapshot = hostSnapshot()
  const clone = join(person.home, 'a clone')
  const bundle = join(scratch.path, 'corral.bundle')
  if (!existsSync(bundle)) runGit('bundle', 'create', '-q', bundle, 'HEAD')
  chmodSync(bundle, 0o644)
  const home: Workplace = { person, directory: person.home, isClone: true }
  const place: Workplace = { ...home, directory: clone }
  const note = (what: string, found: readonly string[]): void => {
    say(`${found.length === 0 ? '✓' : '✗'} ${person.name}: ${what} (${Math.round((Date.now() - began) / 1000)} s)`)
    for (const each of found) process.stderr.write(`${each}\n`)
    problems.push(...found.map((each) => `${person.name}: ${each}`))
  }
  const steps = async (what: string, statements: readonly Statement[], where: Workplace = place): Promise<void> =>
    note(what, failuresOf(await paste(statements, where)))

  try {
    await steps(
      'a clone',
      [own(`git clone -q ${quote(bundle)} ${quote(clone)} && ln -s ${quote(join(clone, 'corral'))} ~/bin/corral`)],
      home,
    )
    await steps(
      'README',
      [own('npm run setup'), ...statementsOf(root, 'README.md')].toSpliced(1, 0, own(`(${sampleRepository})`)),
    )
    await endBackground(person)
    for (const page of pagesToPaste(root).filter((each) => each !== 'README.md' && !each.startsWith('docs/guides/'))) {
      await steps(page, [...(before[page] ? [own(before[page])] : []), ...statementsOf(root, page)])
      await endBackground(person)
    }
    await tryTasks(place, note)
    await endPlatform(place, note)
  } finally {
    await endBackground(person).catch((error: unknown) => problems.push(String(error)))
    note('nothing is left running', leftoversOf(person.home, snapshot))
  }
}

/** Ten and more tasks of different kinds. */
async function tryTasks(place: Workplace, note: (what: string, found: readonly string[]) => void): Promise<void> {
  const pasted = await paste(
    trials.map(({ typed }) => own(typed)),
    place,
  )
  trials.forEach(({ what, code, says }, index) => {
    const result = pasted[index]
    const isRight = result?.code === code && says.test(result.output)
    const how = `${what}: ended with ${result?.code} instead of ${code}, or did not say ${says}`
    note(what, isRight ? [] : [`${how}:\n${result?.typed}\n${result?.output.slice(-1_500)}`])
  })
}

/** `corral down` ends what `corral run` has started, and leaves nothing behind. */
async function endPlatform(place: Workplace, note: (what: string, found: readonly string[]) => void): Promise<void> {
  note('corral down', failuresOf(await paste([own('./corral down')], place)))
  note('nothing runs after it', leftoversOf(place.person.dataDir, hostSnapshot()))
}

function own(text: string): Statement {
  return { where: 'the first hour', text, isOwn: true }
}

function runGit(...args: string[]): void {
  const { status, stderr } = spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`)
}

function quote(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`
}

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isFullSize } from '@corral/testing'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createGit } from '../git/git.js'
import { createRepository, type PreparedRepository } from '../repository/repository.js'
import { type CollectedScripts, openScriptedSandbox, type ScriptedSandbox } from './scripted-sandbox.test-suite.js'

/** The repository of every test here, which reads it alone. */
let shared: string
let source: string
let prepared: PreparedRepository
let directory: string
let box: ScriptedSandbox

beforeAll(async () => {
  shared = mkdtempSync(join(tmpdir(), 'corral-collected-'))
  source = join(shared, 'source')
  const env = { PATH: process.env.PATH, HOME: shared, GIT_CONFIG_NOSYSTEM: '1' }
  const git = (...args: string[]): void =>
    void execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@localhost', ...args], { cwd: source, env })
  mkdirSync(source)
  git('init', '-q', '-b', 'main')
  writeFileSync(join(source, 'a.txt'), 'one\n')
  git('add', '.')
  git('commit', '-qm', 'first')
  const repository = createRepository({
    git: createGit({ globalConfig: '/dev/null', env }),
    mirrorsDirectory: join(shared, 'mirrors'),
  })
  const taskDirectory = join(shared, 'task')
  mkdirSync(taskDirectory)
  prepared = await repository.prepare({ url: source, taskDirectory, signal: new AbortController().signal })
})
afterAll(() => rmSync(shared, { recursive: true, force: true }))
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-collect-'))
  box = openScriptedSandbox({ directory, prepared, branch: 'work' })
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** Every file of the agent's repository but its work tree, and when those that git replaces were written. */
function gitDirectoryState(): Record<string, string> {
  const top = join(box.repo, '.git')
  const state: Record<string, string> = {}
  const visit = (path: string): void => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const each = join(path, entry.name)
      if (entry.isDirectory()) visit(each)
      else {
        // git renews the time of an object that it is asked to write again.
        const time = each.includes('/objects/') ? '' : statSync(each).mtimeMs
        state[each] = `${createHash('sha256').update(readFileSync(each)).digest('hex')} ${time}`
      }
    }
  }
  visit(top)
  return state
}

describe('what set-up left, looked at in a snapshot', () => {
  it.each<{ when: string; setup: string; isMarked: boolean }>([
    { when: 'nothing', setup: 'true', isMarked: false },
    { when: 'ignored files', setup: 'echo deps > .git/info/exclude; mkdir deps; echo x > deps/x', isMarked: false },
    { when: 'a new file', setup: 'echo new > new.txt', isMarked: true },
    { when: 'a new directory', setup: 'mkdir -p new/deep; echo new > new/deep/file', isMarked: true },
    { when: 'a changed file', setup: 'echo two > a.txt', isMarked: true },
    {
      when: 'a file changed at the same size and time',
      setup: 'touch -r a.txt t; echo two > a.txt; touch -r t a.txt; rm t',
      isMarked: true,
    },
    { when: 'a changed file in the index', setup: 'echo two > a.txt; git add a.txt', isMarked: true },
    { when: 'a removed file', setup: 'rm a.txt', isMarked: true },
    {
      when: 'a removed file that git is told to skip',
      setup: 'git update-index --skip-worktree a.txt; rm a.txt',
      isMarked: true,
    },
    {
      when: 'a changed file that git is told to assume',
      setup: 'git update-index --assume-unchanged a.txt; echo two > a.txt',
      isMarked: true,
    },
    {
      when: 'a file that settings of git hide',
      setup: 'git config status.showUntrackedFiles no; echo new > new.txt',
      isMarked: true,
    },
    { when: 'a commit', setup: 'echo two > a.txt; git commit -qam two', isMarked: true },
  ])('$when: is marked as it is elsewhere', ({ setup, isMarked }) => {
    const mark = (fromSnapshot: boolean): string => {
      const own = openScriptedSandbox({ directory, prepared, branch: 'work' })
      own.setup(setup, { fromSnapshot })
      const tree = join(own.scratch, 'setup', 'tree')
      return existsSync(tree) ? readFileSync(tree, 'utf8') : 'none'
    }
    const marked = mark(true)
    expect(marked).toBe(mark(false))
    expect(marked !== 'none').toBe(isMarked)
  })

  it('is seen in one look where there is nothing: none of the objects are read that it would be compared with', () => {
    box.setup('true', { fromSnapshot: true })
    expect(existsSync(join(box.scratch, 'mark'))).toBe(false)
    box.setup('true')
    expect(existsSync(join(box.scratch, 'mark'))).toBe(true)
  })
})

describe('what set-up left, beside work of an earlier task', () => {
  const changesOf = ({ bundlePath, commit, changed }: CollectedScripts, base: string): string[] => {
    if (!changed) return []
    const clone = mkdtempSync(join(directory, 'clone-'))
    const git = (...args: string[]): string => execFileSync('git', args, { cwd: clone, encoding: 'utf8' })
    git('clone', '-q', '--bare', source, '.')
    if (base !== prepared.commit) git('fetch', '-q', join(directory, 'former.bundle'), base)
    git('fetch', '-q', bundlePath, commit)
    return git('diff-tree', '-r', '--name-status', '--no-renames', base, commit).trim().split('\n')
  }
  const former = (work: string, setup: string): CollectedScripts => {
    box.setup(setup)
    box.agent(work)
    const collected = box.collect()
    copyFileSync(collected.bundlePath, join(directory, 'former.bundle'))
    return { ...collected, bundlePath: join(directory, 'former.bundle') }
  }

  it.each<{ when: string; agent: string }>([
    { when: 'leaves it as it is', agent: 'true' },
    { when: 'takes its commit back and leaves the files', agent: 'git reset -q HEAD~1' },
    {
      when: 'takes its commit back and commits all again',
      agent: 'git reset -q HEAD~1; git add -A; git commit -qm again',
    },
  ])('a retry that goes on from the work and $when has it in its result', ({ agent }) => {
    const { bundlePath } = former('echo n > n.txt; echo two > a.txt', 'true')
    const own = openScriptedSandbox({ directory, prepared, branch: 'work', workBundle: bundlePath })
    own.setup('echo cache > made-by-setup')
    own.agent(agent)
    const collected = own.collect()
    expect(changesOf(collected, prepared.commit)).toEqual(['M\ta.txt', 'A\tn.txt'])
    expect(collected.warnings.map(({ code, path }) => [code, path])).toEqual([['SetupFileLeftOut', 'made-by-setup']])
  })

  it('a virtual environment that .gitignore forgets is named once, not file by file', () => {
    box.setup(
      'mkdir -p .venv/lib/x sub; for i in 1 2 3; do echo $i > .venv/lib/x/$i; done; echo 1 > .venv/pyvenv.cfg; echo 1 > one',
    )
    box.agent('echo mine > b.txt')
    const { warnings } = box.collect()
    expect(warnings.map(({ code, path }) => [code, path])).toEqual([
      ['SetupFileLeftOut', '.venv/'],
      ['SetupFileLeftOut', 'one'],
    ])
  })

  it.each<{ when: string; agent: string; changes: string[] }>([
    { when: 'changes nothing', agent: 'true', changes: [] },
    { when: 'removes a file the former task made', agent: 'rm n.txt', changes: ['D\tn.txt'] },
    { when: 'takes a change of the former task back', agent: 'echo one > a.txt', changes: ['M\ta.txt'] },
    { when: 'changes a file that set-up made', agent: 'echo mine > made-by-setup', changes: ['A\tmade-by-setup'] },
  ])('a follow-up in the same work tree that $when has that in its result', ({ agent, changes }) => {
    const result = former('echo n > n.txt; echo two > a.txt', 'echo cache > made-by-setup')
    box.followUp(result)
    box.agent(agent)
    expect(changesOf(box.collect(), result.commit)).toEqual(changes)
  })
})

describe('a sparse checkout', () => {
  it('whose configuration cannot be read has not deleted what it leaves out', () => {
    box.agent(`mkdir in out; echo 1 > in/1; echo 2 > out/2; git add .; git commit -qm both
      git sparse-checkout set in; rm a.txt; echo 3 > in/3; echo '[broken' >> .git/config`)
    const collected = box.collect()
    expect(collected.warnings.map(({ code }) => code)).toEqual(['RepositoryDamaged'])
    const clone = join(directory, 'clone')
    const git = (...args: string[]): string => execFileSync('git', args, { cwd: clone, encoding: 'utf8' })
    execFileSync('git', ['clone', '-q', '--bare', source, clone])
    git('fetch', '-q', collected.bundlePath, collected.commit)
    expect(git('ls-tree', '-r', '--name-only', collected.commit).trim().split('\n')).toEqual(['in/1', 'in/3', 'out/2'])
  })
})

describe('a disk with little room', () => {
  /** A sandbox whose disk has this many KiB left. */
  const boxWith = (freeKib: number): ScriptedSandbox => {
    const programs = join(directory, 'programs')
    mkdirSync(programs)
    writeFileSync(join(programs, 'df'), `#!/bin/sh\necho head\necho "disk 1 1 ${freeKib} 1% /"\n`, { mode: 0o755 })
    return openScriptedSandbox({ directory, prepared, branch: 'work', path: `${programs}:${process.env.PATH}` })
  }
  const filesOf = (collected: CollectedScripts): string[] => {
    const clone = join(directory, 'clone')
    const git = (...args: string[]): string => execFileSync('git', args, { cwd: clone, encoding: 'utf8' })
    execFileSync('git', ['clone', '-q', '--bare', source, clone])
    git('fetch', '-q', collected.bundlePath, collected.commit)
    return git('ls-tree', '-r', '-z', '--name-only', collected.commit).split('\0').filter(Boolean)
  }
  const work = `echo committed > c.txt; git add c.txt; git commit -qm one
    rm a.txt; echo s > small; ln -s small link; echo x > '[odd]*'; head -c 900000 /dev/urandom > large
    echo l > "$(printf 'two\nlines')"; echo closed > closed; chmod 000 closed; mkfifo pipe`

  it('what finds room is taken, the smallest first; the rest is named', () => {
    const own = boxWith(6_000)
    own.agent(work)
    const collected = own.collect({ isEvicted: true })
    expect(filesOf(collected)).toEqual(['[odd]*', 'c.txt', 'link', 'small'])
    expect(collected.warnings.map(({ code, path }) => [code, path]).sort()).toEqual([
      ['NoRoomLeft', 'large'],
      ['NoRoomLeft', 'two\nlines'],
      ['PathLeftOut', 'closed'],
    ])
  })

  it('nothing is left out where all of it finds room', () => {
    const own = boxWith(200_000)
    own.agent(work)
    const collected = own.collect()
    expect(filesOf(collected)).toEqual(['[odd]*', 'c.txt', 'large', 'link', 'small', 'two\nlines'])
    expect(collected.warnings.map(({ code, path }) => [code, path])).toEqual([['PathLeftOut', 'closed']])
  })

  it.each([
    {
      when: 'goes',
      isEvicted: true,
      codes: ['HistoryLost', 'NoRoomLeft', 'RepositoryDamaged'],
      files: ['a.txt', 'small'],
    },
    { when: 'stays', isEvicted: false, codes: ['LargeFile'], files: ['a.txt', 'large', 'small'] },
  ])('commits that find no room are given up only where the sandbox $when', ({ isEvicted, codes, files }) => {
    const own = boxWith(24_000)
    own.agent('head -c 11000000 /dev/urandom > large; echo s > small; git add .; git commit -qm all')
    const collected = own.collect({ isEvicted })
    expect(collected.warnings.map(({ code }) => code).sort()).toEqual(codes)
    expect(filesOf(collected)).toEqual(files)
  })
})

describe('a checkout that the agent moved away', () => {
  it.each(['/', ...(isFullSize ? ['..', '.corral/..'] : [])])(
    'the whole sandbox is not taken for it where a link to %s has its name',
    (to) => {
      box.agent(`cd ..; mv repo moved; ln -s ${to} repo`)
      expect(() => box.collect()).toThrow('nothing was collected')
    },
  )
})

describe('a pipe where git expects a file', () => {
  it.each([
    '.git/HEAD',
    '.git/objects/info/alternates',
    '.gitignore',
    ...(isFullSize ? ['.git/config', '.git/refs/heads/a/b', 'sub/.gitattributes'] : []),
  ])('%s: the work is taken out and nothing waits for it', (path) => {
    box.agent(`echo two >> a.txt && mkdir -p sub "$(dirname ${path})" && rm -f ${path} && mkfifo ${path}`)
    expect(box.collect()).toMatchObject({ changed: true })
  })

  it('any other pipe of the work tree stays with the agent', () => {
    box.agent('mkfifo answers && echo two >> a.txt')
    expect(box.checkpoint()).toMatchObject({ changed: true })
    expect(box.agent('test -p answers && echo there')).toContain('there')
  })
})

describe('hundreds of branches', () => {
  const many = process.env.CORRAL_TEST_SIZE === 'full' ? 300 : 30
  const branches = (first: number, last: number): string =>
    `for i in $(seq ${first} ${last}); do
       git checkout -q -b more/$i work && git commit -q --allow-empty -m $i && git branch same/$i
     done; git checkout -q work`

  it(`all ${many} with work of their own are kept and named, and git is asked as often as for ten`, () => {
    const counting = join(directory, 'counting')
    const calls = join(directory, 'calls')
    mkdirSync(counting)
    writeFileSync(calls, '', { mode: 0o666 })
    chmodSync(calls, 0o666)
    const git = execFileSync('which', ['git'], { encoding: 'utf8' }).trim()
    writeFileSync(join(counting, 'git'), `#!/bin/sh\necho >> ${calls}\nexec ${git} "$@"\n`, { mode: 0o755 })
    const callsOf = (work: () => void): number => {
      writeFileSync(calls, '')
      work()
      return readFileSync(calls).length
    }
    box = openScriptedSandbox({ directory, prepared, branch: 'work', path: `${counting}:${process.env.PATH}` })
    box.agent(`echo two >> a.txt && git commit -qam two && git branch done && ${branches(1, 10)}`)
    const few = callsOf(() => box.collect())
    box.agent(branches(11, many))
    let collected: CollectedScripts | undefined
    const lots = callsOf(() => {
      collected = box.collect()
    })
    const heads = execFileSync(git, ['bundle', 'list-heads', collected!.keptPath], { encoding: 'utf8' })
    const expected = Array.from({ length: many }, (_, index) => [`more/${index + 1}`, `same/${index + 1}`]).flat()
    expect([...heads.matchAll(/refs\/corral\/kept\/branches\/(.*)/g)].map(([, name]) => name).sort()).toEqual(
      expected.sort(),
    )
    expect(collected!.warnings.filter(({ code }) => code === 'BranchKept')).toHaveLength(expected.length)
    expect(lots).toBe(few)
  })
})

describe('a checkpoint', () => {
  const changes = [
    ['a new file', 'echo b > b.txt'],
    [
      'another branch',
      'git branch other && git -c user.name=x commit -q --allow-empty -m empty && git branch -f other',
    ],
    ['a stash', 'echo d >> a.txt && git stash -q'],
  ]
  const likeThem = [
    ['files', 'echo two >> a.txt'],
    ['a commit', 'echo c > c.txt && git add c.txt && git commit -qm c'],
  ]
  it.each(isFullSize ? [...changes, ...likeThem] : changes)(
    'is skipped while nothing changed, and taken when the agent changed %s',
    (_, change) => {
      expect(box.checkpoint()).toMatchObject({ changed: false })
      expect(box.checkpoint()).toBeUndefined()
      box.agent(change)
      expect(box.checkpoint()).toBeDefined()
      expect(box.checkpoint()).toBeUndefined()
    },
  )

  it('leaves index, refs and objects of the agent as they are', () => {
    box.agent('echo staged > staged.txt && git add staged.txt && echo two >> a.txt && echo loose > loose.txt')
    const before = gitDirectoryState()
    const status = box.agent('git --no-optional-locks status --porcelain')
    expect(box.checkpoint()).toMatchObject({ changed: true })
    expect(gitDirectoryState()).toEqual(before)
    expect(box.agent('git --no-optional-locks status --porcelain')).toBe(status)
  })
})

it('names what tools made, each directory once, and nothing the base has or the agent wrote', () => {
  box.agent(
    'mkdir -p node_modules/a/dist src/__pycache__ lib && touch node_modules/a/x.js node_modules/a/dist/y.js lib/build.ts',
  )
  box.agent('echo 1 > src/__pycache__/m.pyc && echo 1 > lib/Main.class && echo two >> a.txt && echo 1 > build.md')
  const named = box.collect().warnings.filter(({ code }) => code === 'GeneratedFile')
  expect(named.map(({ path }) => path)).toEqual(['lib/Main.class', 'node_modules', 'src/__pycache__'])
})

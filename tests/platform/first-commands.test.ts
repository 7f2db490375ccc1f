import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  corralProgram,
  type GitFixture,
  gitRepository,
  isFullSize,
  type ProgramResult,
  processesOf,
  runCorral,
  type TemporaryDirectory,
  temporaryDirectory,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

/** What a new user does in the first hour, on one platform in a path with spaces that `up -d` starts and `down` ends. */
let scratch: TemporaryDirectory
let repo: GitFixture
let dataDir: string
beforeAll(async () => {
  scratch = temporaryDirectory()
  dataDir = join(scratch.path, 'my data')
  repo = await gitRepository(join(scratch.path, 'my code'))
})
afterAll(async () => {
  await corral(['down', '--cancel'])
  await waitUntil('nothing is left', () => processesOf(dataDir).length === 0)
  await scratch[Symbol.asyncDispose]()
})

const environment = (): Record<string, string> => ({
  PATH: process.env.PATH ?? '',
  HOME: scratch.path,
  CORRAL_DATA_DIR: dataDir,
})
const corral = (args: readonly string[], more: { stdin?: string; cwd?: string } = {}): Promise<ProgramResult> =>
  runCorral(args, { env: environment(), cwd: repo.path, ...more })
const idOf = ({ stdout }: ProgramResult): string => /task-[a-z0-9]+/.exec(stdout)?.[0] ?? ''

it('`status` before anything says what to do; `up -d` starts a platform and shows its address', async () => {
  expect(await corral(['status'])).toMatchObject({ code: 3, stderr: expect.stringMatching(/hint: .*`corral up -d`/) })
  const { code, stdout } = await corral(['up', '-d', '--warm', '1'])
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^corral is up at http:\/\/127\.0\.0\.1:\d+\n/)])
  expect(await corral(['status'])).toMatchObject({ code: 0, stdout: expect.stringContaining('0 running, 0 queued') })
  expect((await corral(['up', '-d'])).stdout).toMatch(/^it runs already: corral is up at/)
})

describe('`corral run`', () => {
  it('takes the prompt from standard input, finds the top of the repository, and ends with commands that work', async () => {
    mkdirSync(join(repo.path, 'deep'))
    const result = await corral(['run', '-', '--command', 'cat "$CORRAL_PROMPT_FILE" > PROMPT.txt'], {
      stdin: 'from standard input',
      cwd: join(repo.path, 'deep'),
    })
    expect(result.code).toBe(0)
    expect(result.stderr).toMatch(/deep is inside the repository .*my code, which is used/)
    const next = result.stdout.split('next:\n')[1] ?? ''
    const [, checkout] = next.split('\n')
    execFileSync('/bin/sh', ['-c', next.split('\n').find((line) => line.includes(' checkout ')) ?? checkout ?? ''])
    expect(await repo.show('HEAD', 'PROMPT.txt')).toBe('from standard input')
    await repo.git('checkout', '--quiet', 'main')
  })

  it('counts what is not committed in one line, and takes it along when told to', async () => {
    writeFileSync(join(repo.path, 'un tracked.txt'), 'mine')
    const without = await corral(['run', 'x', '--command', 'ls > LIST.txt', '--branch', 'without'])
    expect(without.stderr).toMatch(/^corral: warning: 1 file not committed \(1 untracked\): .*--include-uncommitted\n$/)
    expect(await repo.show('without', 'LIST.txt')).not.toContain('un tracked')
    const taken = await corral(['run', 'x', '--command', 'ls > LIST.txt', '--branch', 'with', '--include-uncommitted'])
    expect(taken).toMatchObject({ code: 0 })
    expect(await repo.show('with', 'LIST.txt')).toContain('un tracked.txt')
    expect(await repo.git('status', '--porcelain')).toBe('?? "un tracked.txt"')
  })

  it('injects files, several of them', async () => {
    writeFileSync(join(scratch.path, 'a.txt'), 'A')
    writeFileSync(join(scratch.path, 'b.txt'), 'B')
    const files = ['--file', join(scratch.path, 'a.txt'), '--file', `${join(scratch.path, 'b.txt')}:conf/b.txt`]
    await corral(['run', 'x', ...files, '--command', 'cat a.txt conf/b.txt > SEEN.txt', '--branch', 'injected'])
    expect(await repo.show('injected', 'SEEN.txt')).toBe('AB')
  })

  it('tells what was refused with the flag that allows it, the failure once, and promises no branch', async () => {
    const command = 'getent hosts packages.example.com; exit 3'
    const result = await corral(['run', 'x', '--command', command, '--branch', 'nothing'])
    expect(result.code).toBe(1)
    expect(result.stdout).toContain('tried packages.example.com')
    expect(result.stdout).toContain('allow it with --allow packages.example.com:443')
    expect(result.stdout.match(/exit code 3/g)?.length).toBeLessThanOrEqual(2)
    expect(result.stdout.slice(result.stdout.indexOf('●'))).not.toContain('branch')
    const view = JSON.parse((await corral(['task', 'get', idOf(result), '--json'])).stdout) as Record<string, unknown>
    expect(view).toMatchObject({
      new_branch: 'nothing',
      refused: [{ host: 'packages.example.com', reason: 'NotAllowed', count: expect.any(Number) }],
    })
    expect(view).not.toHaveProperty('branch')
  })

  it.each([
    { what: 'an agent that is not installed', args: [], code: 'AgentNotInstalled', says: /corral agent install/ },
    { what: 'an unknown base', args: ['--command', 'true', '--base', 'nope'], code: 'BranchNotFound', says: /nope/ },
    {
      what: 'a branch that is checked out',
      args: ['--command', 'true', '--branch', 'main'],
      code: 'BranchCheckedOut',
      says: /another/,
    },
  ])('refuses $what before there is a task', async ({ args, code, says }) => {
    const count = async (): Promise<number> =>
      (JSON.parse((await corral(['task', 'list', '--json'])).stdout) as { tasks: unknown[] }).tasks.length
    const before = await count()
    const { code: exit, stderr } = await corral(['run', 'x', ...args])
    expect(exit).toBe(2)
    expect(stderr).toContain(`(${code})`)
    expect(stderr).toMatch(says)
    expect(await count()).toBe(before)
  })

  it('lets no colour of the agent into a pipe', async () => {
    const { stdout } = await corral(['run', 'x', '--command', "printf '\\033[31mred\\033[0m\\n'"])
    expect(stdout).toContain('│ red\n')
  })
})

it('`task logs` of an agent that writes JSON is readable, and raw when asked for', async () => {
  const line = '{"type":"hello","text":"from the agent"}'
  const id = idOf(await corral(['run', 'x', '--command', `echo '${line}'`]))
  expect((await corral(['task', 'logs', '--raw', id])).stdout).toBe(`${line}\n`)
  expect((await corral(['task', 'logs', id])).stdout).toContain('from the agent')
})

it('`task rm` refuses a task that runs, unless forced; its logs go with it', async () => {
  const id = idOf(await corral(['task', 'create', 'x', '--command', 'sleep 600']))
  expect(await corral(['task', 'rm', id])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('task rm --force'),
  })
  // An id that is not there keeps none of the others.
  expect(await corral(['task', 'rm', '--force', 'task-nosuch', id])).toMatchObject({
    code: 2,
    stdout: `removed ${id}\n`,
    stderr: expect.stringContaining('TaskNotFound'),
  })
  expect(await corral(['task', 'get', id])).toMatchObject({ code: 2, stderr: expect.stringContaining('TaskNotFound') })
})

it('`up` on a port that is taken says by what', async () => {
  const { url } = JSON.parse((await corral(['status', '--json'])).stdout) as { url: string }
  const { port } = new URL(url)
  const { code, stderr } = await corral(['up', '--data-dir', join(scratch.path, 'other'), '--port', port])
  expect([code, stderr]).toEqual([
    3,
    expect.stringMatching(new RegExp(`^corral: port ${port} is taken by process \\d+ .*\nhint: .*--port`)),
  ])
})

it('completes commands, options and their values in bash', () => {
  const script = spawnSync(process.execPath, [corralProgram, 'completion', 'bash'], { encoding: 'utf8' }).stdout
  const files = join(scratch.path, 'files')
  mkdirSync(files)
  for (const name of ['my prompt.txt', 'tasks.txt']) writeFileSync(join(files, name), '')
  const complete = (...words: string[]): string =>
    execFileSync('bash', [
      '-c',
      `cd "$0"; ${script}\nCOMP_WORDS=(corral "$@"); COMP_CWORD=$#; _corral; IFS='|'; echo "\${COMPREPLY[*]}"`,
      files,
      ...words,
    ])
      .toString()
      .trim()
  expect(complete('comp')).toBe('completion')
  expect(complete('task', 'ret')).toBe('retry')
  expect(complete('task', 'list', '--sta')).toBe('--status')
  expect(complete('completion', '')).toMatch(/^bash\|zsh\|fish\|/)
  expect(complete('run', '--prompt-file', 'm')).toBe('my prompt.txt')
  expect(complete('task', 'tas'), 'no file where a command is to follow').toBe('')
  expect(complete('up', '--isolation', 'b')).toBe('bubblewrap')
  expect(complete('up', '--log-level', 'nothing')).toBe('')
})

if (isFullSize)
  describe('`down` on a terminal', () => {
    /** Runs it on a terminal of its own (util-linux `script`), and answers its question with these keys. */
    const answered = async (
      keys: string,
      onWaiting = async (): Promise<void> => {},
    ): Promise<[string, number | null]> => {
      const words = [process.execPath, corralProgram, 'down'].map((word) => `'${word}'`).join(' ')
      const terminal = spawn('script', ['-qfec', words, '/dev/null'], { env: environment(), cwd: repo.path })
      let said = ''
      terminal.stdout.on('data', (chunk: Buffer) => {
        const before = said
        said += chunk.toString()
        const isNew = (text: string): boolean => said.includes(text) && !before.includes(text)
        if (isNew('[w/l/c/N] ')) terminal.stdin.write(keys)
        if (isNew('waiting for 1 task')) void onWaiting()
      })
      const code = await new Promise<number | null>((resolve) => terminal.once('close', resolve))
      return [said.replaceAll('\r', ''), code]
    }
    const isUp = async (): Promise<boolean> => (await corral(['status'])).code === 0

    it('offers to wait, leave or cancel, and does nothing without a choice', async () => {
      const id = idOf(await corral(['task', 'create', 'x', '--command', 'sleep 600']))
      for (const keys of ['\n', 'q\n', '\u0003', '\u0004']) {
        const [said, code] = await answered(keys)
        expect([said, code]).toEqual([expect.stringMatching(/\nnothing was ended\n$/), 0])
        expect(said).toContain(`1 task not ended:\n  ${id}`)
      }
      expect(await isUp()).toBe(true)

      expect((await answered('l\n'))[0]).toMatch(
        /the platform has ended; 1 task goes on, `corral up` continues with it\n$/,
      )
      expect(await isUp()).toBe(false)
      expect((await corral(['up', '-d', '--warm', '1'])).code).toBe(0)
      expect((await corral(['task', 'get', id, '--json'])).stdout).toMatch(/"status": ?"RUNNING"/)

      const endIt = async (): Promise<void> => void (await corral(['task', 'cancel', id]))
      expect((await answered('w\n', endIt))[0]).toMatch(/waiting for 1 task\nthe platform has ended\n$/)
      expect((await corral(['up', '-d', '--warm', '1'])).code).toBe(0)
      expect((await corral(['task', 'get', id, '--json'])).stdout).toMatch(/"status": ?"CANCELLED"/)

      const other = idOf(await corral(['task', 'create', 'x', '--command', 'sleep 600']))
      expect((await answered('c\n'))[0]).toMatch(/waiting for 1 task\nthe platform has ended\n$/)
      expect((await corral(['up', '-d', '--warm', '1'])).code).toBe(0)
      expect((await corral(['task', 'get', other, '--json'])).stdout).toMatch(/"status": ?"CANCELLED"/)
    })
  })

it('`down` says what runs and asks to be told what becomes of it', async () => {
  const id = idOf(await corral(['task', 'create', 'x', '--command', 'sleep 600']))
  const asked = await corral(['down'])
  expect(asked).toMatchObject({ code: 2, stderr: expect.stringMatching(new RegExp(`1 task not ended:\n  ${id}`)) })
  expect(asked.stderr).toMatch(/--wait.*--leave.*--cancel/)
  expect(await corral(['down', '--cancel'])).toMatchObject({ code: 0, stdout: 'the platform has ended\n' })
  await waitUntil('nothing of it is left', () => processesOf(dataDir).length === 0)
  expect(existsSync(join(dataDir, 'ready.json'))).toBe(false)
  expect(await corral(['down'])).toMatchObject({ code: 0, stdout: expect.stringContaining('is running') })
})

import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, it } from 'vitest'

const home = mkdtempSync(join(tmpdir(), 'corral-usage-'))
afterAll(() => rmSync(home, { recursive: true, force: true }))

// As set-up has built it: from its sources each start takes seconds.
const program = fileURLToPath(new URL('../dist/bundle/corral.js', import.meta.url))

it.each([
  {
    when: 'an argument is missing',
    args: ['run'],
    exitCode: 2,
    says: /what shall the agent do\?\nhint: .*--prompt-file/,
  },
  {
    when: 'an option is unknown',
    args: ['task', 'get', '--zz', 'x'],
    exitCode: 2,
    says: /--zz[\s\S]*`corral task get --help`/,
  },
  {
    when: 'an option has an empty value',
    args: ['run', 'hi', '--branch', ''],
    exitCode: 2,
    says: /--branch is empty\nhint: Give it a value/,
  },
  {
    when: 'one of several values is empty',
    args: ['run', 'hi', '--allow', 'a.example:443', '--allow', ''],
    exitCode: 2,
    says: /--allow is empty/,
  },
  {
    when: 'there is no time',
    args: ['run', 'hi', '--timeout', '0'],
    exitCode: 2,
    says: /--timeout[\s\S]*a duration above zero/,
  },
  {
    when: 'no tokens may be used',
    args: ['run', 'hi', '--max-tokens', '0'],
    exitCode: 2,
    says: /--max-tokens[\s\S]*a whole number above zero/,
  },
  {
    when: 'a prompt was not quoted',
    args: ['run', 'fix', 'the', 'test'],
    exitCode: 2,
    says: /too many arguments[^\n]*\nPut the prompt into quotes[^\n]*\n\(see `corral run --help`\)\n$/,
  },
  {
    when: 'a prompt begins with a dash',
    args: ['run', '- and / are swapped'],
    exitCode: 2,
    says: /unknown option[^\n]*\nA prompt that begins with a dash goes last, after `--`/,
  },
  {
    when: 'a message begins with a dash',
    args: ['task', 'send', 'task-x', '- and / are swapped'],
    exitCode: 2,
    says: /\nA message that begins with a dash goes last, after `--`: corral task send ID -- /,
  },
  {
    when: 'an option of a prompt is mistyped, without a word about prompts',
    args: ['run', 'hi', '--jsn'],
    exitCode: 2,
    says: /^error: unknown option '--jsn'\n\(Did you mean --json\?\)\n\(see `corral run --help`\)\n$/,
  },
  {
    when: 'a command that takes no prompt has too many arguments, without a word about prompts',
    args: ['project', 'create', 'a', 'b'],
    exitCode: 2,
    says: /^error: too many arguments for 'create'\. [^\n]*\n\(see `corral project create --help`\)\n$/,
  },
  {
    when: 'an option is unknown, and says nothing of prompts',
    args: ['sandbox', 'create', '--timeout', '3s'],
    exitCode: 2,
    says: /unknown option '--timeout'\n\(see `corral sandbox create --help`\)\n$/,
  },
  {
    when: 'the agent that is a command line gets none',
    args: ['run', 'hi', '--agent', 'command'],
    exitCode: 2,
    says: /^corral: --agent command needs the command line that it runs\nhint: Give it with --command/,
  },
  {
    when: 'the version of an agent is not exact, and takes it for that of corral itself no more',
    args: ['agent', 'install', 'claude', '--version', 'latest'],
    exitCode: 2,
    says: /^corral: "latest" is not an exact version\nhint: /,
  },
  { when: 'a command is unknown', args: ['frobnicate'], exitCode: 2, says: /frobnicate[\s\S]*`corral --help`/ },
  {
    when: 'there is no cluster',
    args: ['sandbox', 'list'],
    exitCode: 3,
    says: /kubeconfig[\s\S]*hint: .*corral up.*--kubeconfig/,
  },
  {
    when: 'no platform runs',
    args: ['task', 'list'],
    exitCode: 3,
    says: /no platform is running[\s\S]*hint: .*corral up/,
  },
])('names the thing and the next move when $when', ({ args, exitCode, says }) => {
  const env = { PATH: process.env.PATH, HOME: home, CORRAL_DATA_DIR: join(home, 'data'), NO_COLOR: '1' }
  const result = spawnSync(process.execPath, [program, ...args], { env, encoding: 'utf8', timeout: 240_000 })
  expect(result.stderr).toMatch(says)
  expect(result.status).toBe(exitCode)
})

it('wraps help at the width of the terminal alone', () => {
  const env = { PATH: process.env.PATH, HOME: home, NO_COLOR: '1' }
  const result = spawnSync(process.execPath, [program, 'up', '--help'], { env, encoding: 'utf8', timeout: 240_000 })
  const [, description = ''] = result.stdout.split('\n\n')
  const lines = description.split('\n')
  expect(lines.length).toBeGreaterThan(2)
  // Every line but the last is full: the next word did not fit.
  for (const [index, line] of lines.slice(0, -1).entries())
    expect(`${line} ${lines[index + 1]?.split(' ')[0]}`.length).toBeGreaterThan(80)
})

it('says in one line that what it prints goes to a full disk', () => {
  const full = openSync('/dev/full', 'w')
  const env = { PATH: process.env.PATH, HOME: home, NO_COLOR: '1' }
  const result = spawnSync(process.execPath, [program, 'completion', 'bash'], {
    env,
    encoding: 'utf8',
    timeout: 240_000,
    stdio: ['ignore', full, 'pipe'],
  })
  closeSync(full)
  expect(result.stderr).toMatch(/^corral: standard output: ENOSPC[^\n]*\n$/)
  expect(result.status).toBe(1)
})

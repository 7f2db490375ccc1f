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
    when: 'an id is empty',
    args: ['task', 'rm', ''],
    exitCode: 2,
    says: /the argument <id> is empty\nhint: .*variable of the shell/,
  },
  {
    when: 'one of several names is empty',
    args: ['sandbox', 'rm', 'a', ''],
    exitCode: 2,
    says: /the argument <name> is empty/,
  },
  {
    when: 'a grant is for a repository without a name, which would be the one we are in',
    args: ['env', 'grant', '', 'files.example.com:443'],
    exitCode: 2,
    says: /the argument <repo> is empty/,
  },
  {
    when: 'a sandbox is held too long',
    args: ['run', 'hi', '--hold', '100d'],
    exitCode: 2,
    says: /--hold[\s\S]*a duration of at most 24h/,
  },
  {
    when: 'checks have too much time',
    args: ['run', 'hi', '--check-timeout', '7h'],
    exitCode: 2,
    says: /--check-timeout[\s\S]*a duration of at most 6h/,
  },
  {
    when: 'help is asked for a command that is not there',
    args: ['help', 'nope'],
    exitCode: 2,
    says: /^error: unknown command 'nope'\n\(see `corral --help`\)\n$/,
  },
  {
    when: 'help is asked for a command that is not there, further down',
    args: ['help', 'task', 'nope'],
    exitCode: 2,
    says: /^error: unknown command 'nope'\n\(see `corral task --help`\)\n$/,
  },
  {
    when: 'a secret has a name that is none, before its value is asked for',
    args: ['secret', 'set', 'Bad Name'],
    exitCode: 1,
    says: /^corral: "Bad Name" is not a secret's name\nhint: Names are lower-case letters/,
  },
  {
    when: 'a secret has no value',
    args: ['secret', 'set', 'anthropic'],
    exitCode: 2,
    says: /no value was given\nhint: .*`< key.txt`/,
  },
  {
    when: 'a repository elsewhere has no environment file',
    args: ['env', 'show', home],
    exitCode: 1,
    says: new RegExp(`there is no ${home}/\\S+\nhint: Write one with \`corral env init ${home}\``),
  },
  {
    when: 'the environment file is to be shown of a repository on a server',
    args: ['env', 'show', 'https://git.example.com/team/app.git'],
    exitCode: 2,
    says: /^corral: https:\/\/\S+ is an address, not a directory\nhint: Name the directory of a clone/,
  },
  {
    when: 'the command of a sandbox has options and no `--` before it',
    args: ['sandbox', 'exec', 'box', 'ls', '-la'],
    exitCode: 2,
    says: /unknown option '-la'\nA command with options of its own goes after `--`: corral sandbox exec NAME -- ls -la\n/,
  },
  {
    when: 'an option of exec is mistyped, without a word about commands',
    args: ['sandbox', 'exec', '--jsn', 'box', 'ls'],
    exitCode: 2,
    says: /^error: unknown option '--jsn'\n\(Did you mean --json\?\)\n\(see `corral sandbox exec --help`\)\n$/,
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

it.each([
  { what: 'a key', args: ['secret', 'set', 'anthropic'] },
  { what: 'a prompt', args: ['run', '-', '--command', 'true'] },
])('refuses $what on standard input in another encoding instead of changing it', ({ args }) => {
  const env = { PATH: process.env.PATH, HOME: home, CORRAL_DATA_DIR: join(home, 'data'), NO_COLOR: '1' }
  const input = Buffer.from('caf\u00e9', 'latin1')
  const result = spawnSync(process.execPath, [program, ...args], { env, encoding: 'utf8', timeout: 240_000, input })
  expect(result.stderr).toMatch(/^corral: standard input is not UTF-8 text\nhint: .*iconv/)
  expect(result.status).toBe(2)
})

it.each([
  { args: ['help', 'task', 'ls'], usage: 'corral task list|ls [options]' },
  { args: ['task', 'help', 'get'], usage: 'corral task get|show [options] <id>' },
  { args: ['help', 'down'], usage: 'corral down [options]' },
])('$args shows the help of that command, not of the group it is in', ({ args, usage }) => {
  const env = { PATH: process.env.PATH, HOME: home, NO_COLOR: '1' }
  const result = spawnSync(process.execPath, [program, ...args], { env, encoding: 'utf8', timeout: 240_000 })
  expect(result.stdout.split('\n')[0]).toBe(`Usage: ${usage}`)
  expect(result.status).toBe(0)
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

import { spawnSync } from 'node:child_process'
import { homedir } from 'node:os'
import { join } from 'node:path'

/**
 * How printed commands are run here. The first row whose pattern matches a command counts; a command without a row is
 * typed as it is printed. Every row has the reason why it cannot be, and a row that no command needs any more fails the
 * test.
 */
export interface StandIn {
  readonly when: RegExp
  readonly reason: string
  /**
   * `leave out`: only its options are checked. `in a clone`: run where there is a clone of its own, as in the first
   * hour. `another terminal`: it stays in the foreground, so it is started apart and ended when it is ready. A function:
   * what is typed instead.
   */
  readonly as: 'leave out' | 'in a clone' | 'another terminal' | ((text: string) => string)
}

const withAgent = (text: string): string => `${text.replace(/ --agent \w+/, '')} --command 'sh fix.sh'`
const withId = (text: string): string => text.replace(/\bID\b/, '"$ID"')

export const standIns: readonly StandIn[] = [
  { when: /^npm test$/, reason: 'it is the run that this belongs to', as: 'leave out' },
  { when: /^npm run check$/, reason: 'CI has lint, types and dead code as steps of their own', as: 'leave out' },
  {
    when: /^npm run (conformance|bench|mutants)/,
    reason: 'needs Go and many minutes; CI has its own steps',
    as: 'leave out',
  },
  { when: /^npm run dev/, reason: 'stays in the foreground', as: 'another terminal' },
  { when: /^npm |^node_modules/, reason: 'works on the clone it is typed in', as: 'in a clone' },
  {
    when: /corral agent (install|remove)/,
    reason: 'an agent is a large download; `npm run test:agents` installs and runs them',
    as: 'leave out',
  },
  {
    when: /corral run .*--plan|corral task (plan|approve|revise|reject) /,
    reason: 'only an agent with a model plans; `npm run test:agents` does with each of them',
    as: 'leave out',
  },
  {
    when: /corral provider (add|check) |--sandbox-provider |corral up --provider /,
    reason: 'needs another cluster; tests/platform/provider-tasks has one',
    as: 'leave out',
  },
  {
    when: /corral (install|server (drain|restore))/,
    reason: 'needs a cluster; tests/install has the API of one',
    as: 'leave out',
  },
  {
    when: /corral image (import|build) /,
    reason: 'needs an archive, or minutes of mmdebstrap; tests/platform/environment-file imports one',
    as: 'leave out',
  },
  {
    when: /^corral env tools --add rust@1$/,
    reason: 'only the page that says so has a rustup to take it from',
    as: (text) => `[ -z "\${RUSTUP_HOME:-}" ] || ${text}`,
  },
  {
    when: /corral env tools (install|--add)/,
    reason: 'needs a toolchain on the machine or a registry; tests/platform/toolchains does it',
    as: 'leave out',
  },
  {
    when: /corral env (build|test|shell)/,
    reason: 'needs a repository with an environment file and minutes; tests/platform/environment-builds does them',
    as: 'leave out',
  },
  {
    when: /^corral env list$/,
    reason: 'an earlier hint may have ended the platform',
    as: (text) => `{ corral status > /dev/null 2>&1 || corral up -d; } && ${text}`,
  },
  {
    when: /corral env init$/,
    reason: 'another example has written the file already',
    as: (text) => `${text} --force`,
  },
  {
    when: /corral task (send|apply|checkout) /,
    reason: 'goes on after the example, or wants a clean work tree; tests/platform/follow-ups and task-take do them',
    as: 'leave out',
  },
  {
    when: /corral task (compare|pick|release) /,
    reason: 'is about attempts, or a sandbox that is held; tests/platform/attempts and held-sandboxes do them',
    as: 'leave out',
  },
  {
    when: /corral run .*--ask |corral task answer /,
    reason: 'only an agent that can ask does; tests/platform/questions has one',
    as: 'leave out',
  },
  {
    when: /corral run --hold \S+$/,
    reason: 'names an option, without a prompt; tests/platform/held-sandboxes uses it',
    as: 'leave out',
  },
  {
    when: /corral up(?!.*( -d| --detach|&$))/,
    reason: 'stays in the foreground',
    as: 'another terminal',
  },
  {
    when: /corral run (?!.*(--command|--project|--help))/,
    reason: 'no model key here: a script of the sample repository stands in for the agent',
    as: withAgent,
  },
  {
    when: /corral task rm /,
    reason: 'each takes a task of its own away',
    as: (text) => `finished_task && ${withId(text)}`,
  },
  {
    when: /corral task retry /,
    reason: 'only a failed task can be tried again, and it is to end before the next command',
    as: (text) => `failed_task && ${withId(text)} && { corral task watch "$ID" > /dev/null; [ $? = 1 ]; }`,
  },
  {
    when: /corral task shell /,
    reason: 'a task that has ended has a sandbox only where it failed and was kept',
    as: (text) => `failed_task --keep && ${withId(text)}`,
  },
  {
    when: /corral (task|open) .*\bID\b/,
    reason: 'ID is the id of a task',
    as: (text) => `finished_task && ${withId(text)}`,
  },
  {
    when: /corral sandbox forward/,
    reason: 'stays in the foreground; tests/platform forwards ports',
    as: 'leave out',
  },
  {
    when: /corral mcp --http/,
    reason: 'stays in the foreground; tests/platform talks to it with the official client',
    as: 'leave out',
  },
  {
    when: /\$URL\/tasks -d/,
    reason: 'the same, over HTTP; the id of the answer is what the next command calls $ID',
    as: (text) =>
      `ANSWER=$(${text
        .replace('"/src/app"', `"'"$HOME"'/src/app"`)
        .replace(
          /("task":"[^"]*")/,
          '$1,"agent":{"name":"command","command":"sh fix.sh"}',
        )}); STATUS=$?; echo "$ANSWER"; ` +
      `ID=$(printf '%s' "$ANSWER" | sed -n 's/.*"id":"\\([^"]*\\)".*/\\1/p'); (exit "$STATUS")`,
  },
  {
    when: /localhost:8888|8888:8888/,
    reason: 'the port may be taken on this machine: a free one stands in for it',
    as: (text) => text.replaceAll('8888:8888', '$PORT:8888').replaceAll('localhost:8888', 'localhost:$PORT'),
  },
]

/** Values of variables and placeholders that people fill in themselves. */
export const variables = `
PORT=$(node -e 'const s = require("node:net").createServer().listen(0, () => { console.log(s.address().port); s.close() })')
DIR="$HOME/own data"
`

/** What the examples of a command's help take for granted, beside a platform that runs. */
export const beforeHelp: Readonly<Record<string, string>> = {
  'corral sandbox --help': 'mkdir -p src',
  'corral sandbox cp --help':
    'mkdir -p src && corral sandbox create box && corral sandbox exec box -- touch /tmp/log.txt',
  'corral env init --help': 'cp -r . ../service',
  'corral template --help': 'corral template show default --json > template.json',
}

/** Values for capitals that stand for something in a hint. What has none here only the case at hand knows. */
export const placeholders: Readonly<Record<string, string>> = {
  PATH: '~/src/app',
  DATA_DIR: '~/data-of-a-hint',
}

/** Who works with git has told it who they are. */
const identity = 'git config --global user.name Test && git config --global user.email test@localhost'

/** A page that takes something for granted says so in words; this is what it means. */
export const before: Readonly<Record<string, string>> = {
  // "You need a running platform (`./corral up` in another terminal)"
  'examples/poc/README.md': 'terminal_two ./corral up',
  ...Object.fromEntries(
    ['node', 'python', 'go', 'java', 'cpp', 'monorepo'].map((name) => [`docs/guides/${name}.md`, identity]),
  ),
  // The toolchain of the account that runs this, whose home directory is another one here.
  'docs/guides/rust.md': `${identity}; export RUSTUP_HOME='${process.env.RUSTUP_HOME ?? join(homedir(), '.rustup')}'`,
}

/** Programs of the machine that a page works with. Where one is missing the page is left out, and that is said. */
const needs: Readonly<Record<string, readonly string[]>> = {
  'docs/guides/node.md': ['npm'],
  'docs/guides/python.md': ['python3'],
  'docs/guides/go.md': ['go'],
  'docs/guides/rust.md': ['cargo'],
  'docs/guides/java.md': ['mvn'],
  'docs/guides/cpp.md': ['cmake', 'cc'],
  'docs/guides/monorepo.md': ['npm', 'python3'],
}

export function missingFor(page: string): string[] {
  return (needs[page] ?? []).filter((program) => spawnSync(program, ['--version'], { stdio: 'ignore' }).error)
}

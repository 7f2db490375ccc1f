// Public projects with hundreds of tests or dependencies, from their registries: the environment file is written by
// `corral env init`, its set-up fetches through the package mirror, and a task's check runs the project's own tests with no
// network at all.
//   npm run test:projects                     all of them, minutes each
//   npm run test:projects -- express click    those whose name begins so
//   npm run test:projects -- --write          all of them, and where all pass, the table of docs/environments.md anew
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, homedir, loadavg } from 'node:os'
import { join } from 'node:path'
import type { TaskEvent } from '@corral/protocol'
import { type PlatformProcess, startPlatformProcess, temporaryDirectory } from '@corral/testing'
import { type Project, projects } from './projects.js'

interface Row {
  name: string
  clients: string
  tests: number
  without: string
  firstSetupMs: number
  secondSetupMs: number
  checkMs: number
  /** What else the machine did: the load average when the project's tests had run. */
  load: number
}

const heading =
  '| project | clients | its tests that pass | left out | set-up, first task | set-up, second task | the tests in the task |'
const page = join(import.meta.dirname, '../../docs/environments.md')
const words = process.argv.slice(2).filter((word) => !word.startsWith('--'))
const chosen = projects.filter(({ name }) => words.length === 0 || words.some((word) => name.startsWith(word)))
const writes = process.argv.includes('--write')
if (writes && words.length > 0) throw new Error('--write is for one run of all projects: leave the names away')
const say = (text: string): void => void process.stdout.write(`${text}\n`)
const has = (program: string): boolean => spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined

await using scratch = temporaryDirectory('corral-projects-')
const { HOME = homedir(), RUSTUP_HOME = join(HOME, '.rustup'), PYENV_ROOT = join(HOME, '.pyenv') } = process.env
// Who vouches for the registries is this machine's affair.
const { NODE_EXTRA_CA_CERTS } = process.env
const env = { RUSTUP_HOME, PYENV_ROOT, ...(NODE_EXTRA_CA_CERTS && { NODE_EXTRA_CA_CERTS }) }
await using platform = await startPlatformProcess({ env })
const rows: Row[] = []
let failed = 0
for (const project of chosen) {
  const missing = project.needs.filter((program) => !has(program))
  if (missing.length > 0) {
    say(`- ${project.name}: left out, this machine has no ${missing.join(', ')}`)
    continue
  }
  try {
    const row = await tryProject(project, platform)
    rows.push(row)
    say(
      `✓ ${project.name}: ${row.tests} tests in ${seconds(row.checkMs)}; set-up ${seconds(row.firstSetupMs)}, then ${seconds(row.secondSetupMs)}`,
    )
  } catch (error) {
    failed += 1
    say(`✗ ${project.name}: ${error instanceof Error ? error.message : String(error)}`)
  }
}
process.exitCode = failed > 0 ? 1 : 0
if (writes && rows.length === projects.length) writeTable(rows)
else if (writes) say('docs/environments.md stays as it is: its table is of one run in which every project passed')

async function tryProject(project: Project, on: PlatformProcess): Promise<Row> {
  const work = join(scratch.path, project.name.replace(/\W+/g, '-'))
  const fetched = join(work, 'fetched')
  const repo = join(work, 'repo')
  mkdirSync(fetched, { recursive: true })
  project.source(repo, fetched)
  const shell = (line: string): string =>
    execFileSync('bash', ['-euo', 'pipefail', '-c', line], {
      cwd: repo,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    })
  if (project.prepare) shell(project.prepare)
  for (const tool of project.tools ?? []) await corral(on, 'env', 'tools', '--add', tool)
  await corral(on, 'env', 'init', repo)
  const file = join(repo, '.corral/environment.yaml')
  const text = readFileSync(file, 'utf8')
  // A busy machine compiles for longer than the ten minutes a check has.
  writeFileSync(file, (project.change?.(text) ?? text).replaceAll(/^( *)- name: .*$/gm, '$&\n$1  timeout: 1h'))
  shell('git init -q -b main && git add -A -f && git -c user.name=Test -c user.email=test@localhost commit -qm import')
  const first = await task(on, repo)
  const second = await task(on, repo)
  const tests = project.tests(second.output)
  if (tests < project.atLeast)
    throw new Error(`${tests} tests ran, not ${project.atLeast}:\n${second.output.slice(-2_000)}`)
  return {
    name: project.name,
    clients: project.clients,
    tests,
    without: project.without ?? 'none',
    firstSetupMs: first.setupMs,
    secondSetupMs: second.setupMs,
    checkMs: second.checkMs,
    load: loadavg()[0] ?? 0,
  }
}

async function corral(on: PlatformProcess, ...args: string[]): Promise<void> {
  const { code, stdout, stderr } = await on.corral(args)
  if (code !== 0) throw new Error(`corral ${args.join(' ')}: ${stdout}${stderr}`)
}

/** A task that changes one file; its check is the environment file's, with no network. */
async function task(on: PlatformProcess, repo: string) {
  const view = await on.api.run(
    {
      repo,
      task: 'Leave a note',
      agent: { name: 'command', command: 'date +%N > NOTE.txt' },
      check_rounds: 0,
      setup_timeout_seconds: 3_600,
      timeout_seconds: 3_600,
    },
    { timeoutMs: 3_600_000 },
  )
  const check = view.checks?.rounds.at(-1)?.results[0]
  const logs = await on.api.allEvents(view.id)
  if (view.status !== 'SUCCEEDED' || check?.outcome !== 'passed') {
    const said = logs.flatMap((event) => (event.type === 'output' ? [event.text] : [])).join('\n')
    throw new Error(
      `${view.status} ${JSON.stringify(view.cause)}\n${said.slice(-3_000)}\n${check?.output?.slice(-3_000) ?? ''}`,
    )
  }
  return {
    setupMs: setUpMs(logs),
    checkMs: check.duration_ms ?? 0,
    output: check.output ?? '',
  }
}

/** The set-up phase, and before it the build that the task waited for. */
function setUpMs(events: readonly TaskEvent[]): number {
  const at = (is: (event: TaskEvent) => boolean): number => Date.parse(events.find(is)?.time ?? '')
  const stage = (name: string, state: string) =>
    at((each) => each.type === 'stage' && each.stage === name && each.state === state)
  const waited = at((each) => each.type === 'stage' && each.detail?.endsWith('is being built') === true)
  const build = Number.isNaN(waited) ? 0 : stage('repository', 'finished') - waited
  return stage('setup', 'finished') - stage('setup', 'started') + build
}

function writeTable(all: readonly Row[]): void {
  const text = readFileSync(page, 'utf8')
  const markers = /(<!-- projects: generated by npm run test:projects -->\n)[\s\S]*?(\n<!-- \/projects -->)/
  const table = [heading, `|${'---|'.repeat(heading.split(' | ').length)}`, ...all.map(lineOf)].join('\n')
  const loads = all.map(({ load }) => Math.round(load))
  const when = `One run on ${new Date().toISOString().slice(0, 10)}: ${availableParallelism()} cores, a load average of ${Math.min(...loads)} to ${Math.max(...loads)}.`
  writeFileSync(
    page,
    text.replace(markers, (_, start: string, end: string) => `${start}\n${table}\n\n${when}\n${end}`),
  )
}

function lineOf({ name, clients, tests, without, firstSetupMs, secondSetupMs, checkMs }: Row): string {
  return `| ${[name, clients, tests, without, ...[firstSetupMs, secondSetupMs, checkMs].map(seconds)].join(' | ')} |`
}

function seconds(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`
}

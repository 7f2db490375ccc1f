#!/usr/bin/env node
// The main job in a few seconds, without keys and without a network: a sample repository with a failing test, a
// platform in a temporary directory, a task over HTTP, and the branch that comes back. Everything is removed again.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { devNull, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const cli = join(root, 'packages/cli/dist/bundle/corral.js')
// The sample is no work of yours: your git configuration, which may sign commits and run hooks, does not hold for it.
const env = { ...process.env, GIT_CONFIG_GLOBAL: devNull, GIT_CONFIG_NOSYSTEM: '1', GIT_TEMPLATE_DIR: '' }
// When the demo itself runs under a test runner, the tests of the sample must not report to that one.
delete env.NODE_TEST_CONTEXT
const useClaude = process.argv.includes('--agent') && process.argv[process.argv.indexOf('--agent') + 1] === 'claude'
const bold = (text) => (process.stdout.isTTY ? `\u001b[1m${text}\u001b[0m` : text)
const say = (text) => process.stdout.write(`\n${bold(text)}\n`)

const scriptedAgent = `
echo "This is a scripted agent: it knows the answer, so no model and no key is needed."
echo "I was asked: $CORRAL_PROMPT"
echo "Running the tests first."
node --test --test-reporter=tap 2>&1 | grep -E "^# (pass|fail)" || true
echo "median() sorts numbers as text. A comparison function fixes that."
sed -i 's/\\[...numbers\\].sort()/[...numbers].sort((a, b) => a - b)/' median.js
echo "Running the tests again."
node --test --test-reporter=tap 2>&1 | grep -E "^# (pass|fail)"
`

const directory = mkdtempSync(join(tmpdir(), 'corral-demo-'))
chmodSync(directory, 0o711) // sandboxes run as other users and must get through
let platform
process.on('SIGINT', () => void cleanUp().then(() => process.exit(130)))
try {
  await main()
} catch (error) {
  process.exitCode = 1
  process.stderr.write(`\ndemo: ${error.message}\n`)
} finally {
  await cleanUp()
}

async function main() {
  const repository = makeRepository()
  say('1. A repository with a failing test')
  show(repository, ['node', '--test', '--test-reporter=tap'], /^# (pass|fail)/)

  say('2. A platform on this machine')
  const ready = await startPlatform()
  process.stdout.write(
    `HTTP API ${ready.url}, kubeconfig ${ready.kubeconfig}\nisolation: ${isolationText(ready.isolation)}\n`,
  )
  if (process.env.ANTHROPIC_API_KEY && !useClaude)
    process.stdout.write(
      'ANTHROPIC_API_KEY is set: `npm run demo -- --agent claude` lets Claude Code do the work instead of the script.\n',
    )

  say(`3. A task for ${useClaude ? 'Claude Code' : 'a scripted agent'}: POST /tasks`)
  const id = await submit(ready, repository)
  const watch = spawnSync(process.execPath, [cli, 'task', 'watch', id, '--url', ready.url, '--token', ready.token], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (watch.status !== 0) throw new Error(`the task ended with exit code ${watch.status}`)

  const task = await api(ready, `/tasks/${id}`).then((response) => response.json())
  say('4. The diff')
  process.stdout.write(await api(ready, `/tasks/${id}/diff`).then((response) => response.text()))
  say(`5. The branch ${task.branch}, in the repository, with a passing test`)
  execFileSync('git', ['-C', repository, 'checkout', '-q', task.branch], { env })
  show(repository, ['git', 'log', '--oneline', '-2'])
  show(repository, ['node', '--test', '--test-reporter=tap'], /^# (pass|fail)/)
  say('Done. Everything is removed again. Next: ./corral run "..." --repo PATH')
}

function makeRepository() {
  const path = join(directory, 'sample')
  mkdirSync(path)
  writeFileSync(join(path, 'package.json'), '{ "name": "sample", "type": "module" }\n')
  writeFileSync(
    join(path, 'median.js'),
    'export function median(numbers) {\n  const sorted = [...numbers].sort()\n  return sorted[Math.floor(sorted.length / 2)]\n}\n',
  )
  writeFileSync(
    join(path, 'median.test.js'),
    "import assert from 'node:assert'\nimport test from 'node:test'\nimport { median } from './median.js'\n\ntest('the median of 1, 9 and 10 is 9', () => assert.equal(median([10, 9, 1]), 9))\n",
  )
  const git = (...args) =>
    execFileSync('git', ['-c', 'user.name=Demo', '-c', 'user.email=demo@localhost', ...args], { cwd: path, env })
  git('init', '-q', '-b', 'main')
  git('add', '.')
  git('commit', '-q', '-m', 'A median that is not always one')
  return path
}

async function startPlatform() {
  const data = join(directory, 'data')
  const readyFile = join(directory, 'ready.json')
  if (useClaude)
    spawnSync(process.execPath, [cli, 'agent', 'install', 'claude', '--data-dir', data], { stdio: 'inherit' })
  platform = spawn(
    process.execPath,
    [cli, 'up', '--data-dir', data, '--ready-file', readyFile, '--allow-process', '--warm', '1'],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  )
  let exited = false
  platform.once('exit', () => {
    exited = true
  })
  for (let waited = 0; waited < 60_000; waited += 25) {
    if (existsSync(readyFile)) return JSON.parse(readFileSync(readyFile, 'utf8'))
    if (exited) throw new Error('the platform did not start; `./corral doctor` may tell why')
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new Error('the platform was not ready within a minute')
}

async function submit(ready, repository) {
  const body = {
    repo: repository,
    task: 'Make the failing test pass.',
    agent: useClaude ? { name: 'claude' } : { name: 'command', command: scriptedAgent },
  }
  const response = await api(ready, '/tasks', {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  })
  const created = await response.json()
  process.stdout.write(`${response.status} ${JSON.stringify(created)}\n`)
  return created.id
}

async function api(ready, path, init = {}) {
  const response = await fetch(`${ready.url}${path}`, {
    ...init,
    headers: { authorization: `Bearer ${ready.token}`, ...init.headers },
  })
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
  return response
}

function show(cwd, [program, ...args], only) {
  const { stdout } = spawnSync(program, args, { cwd, encoding: 'utf8', env })
  const lines = stdout
    .trimEnd()
    .split('\n')
    .filter((line) => !only || only.test(line))
  process.stdout.write(`$ ${[program, ...args].join(' ')}\n${lines.map((line) => `  ${line}`).join('\n')}\n`)
}

function isolationText(tier) {
  if (tier !== 'process') return `${tier} (each sandbox has its own namespaces, user and system-call filter)`
  return 'process, which is NOT a sandbox. On Debian or Ubuntu: sudo apt-get install bubblewrap'
}

async function cleanUp() {
  if (platform && platform.exitCode === null) {
    const ended = new Promise((resolve) => platform.once('exit', resolve))
    platform.kill('SIGTERM')
    await ended
  }
  rmSync(directory, { recursive: true, force: true })
}

import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { CreateTaskRequest, TaskView } from '@corral/protocol'
import {
  type GitFixture,
  gitRepository,
  isFullSize,
  type PlatformProcess,
  startPlatformProcess,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let scratch: TemporaryDirectory
let platform: PlatformProcess
beforeAll(async () => {
  scratch = temporaryDirectory()
  platform = await startPlatformProcess()
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await scratch?.[Symbol.asyncDispose]()
})

const corral = (words: string[], input?: string) =>
  platform.corral([...words, '--data-dir', platform.dataDir], input === undefined ? {} : { stdin: input })

let count = 0
const repository = (files: Record<string, string>): Promise<GitFixture> =>
  gitRepository(join(scratch.path, `repo-${++count}`), files)

const withFile = (text: string, more: Record<string, string> = {}): Promise<GitFixture> =>
  repository({ '.corral/environment.yaml': `version: 1\n${text}\n`, ...more })

async function run(repo: GitFixture, command: string, more: Partial<CreateTaskRequest> = {}) {
  const task: TaskView = await platform.api.run({
    repo: repo.path,
    task: 'Look',
    agent: { name: 'command', command },
    ...more,
  })
  const events = await platform.api.allEvents(task.id)
  const said = events.flatMap((event) => (event.type === 'output' ? [event.text] : [])).join('\n')
  return { task, events, said, all: JSON.stringify({ task, events }) }
}

const hasPostgres =
  existsSync('/usr/lib/postgresql') &&
  readdirSync('/usr/lib/postgresql').some((version) => existsSync(`/usr/lib/postgresql/${version}/bin/initdb`))

const listen = (port: number, say: string): string =>
  `node -e 'require("node:http").createServer((q, r) => r.end("${say}")).listen(${port}, "127.0.0.1")'`
const ask = (port: number): string =>
  `node -e 'fetch("http://127.0.0.1:${port}/").then((r) => r.text()).then(console.log)'`

describe('services and background commands', () => {
  it('PostgreSQL is there for set-up, agent and checks, with its database', async (context) => {
    if (!hasPostgres) return context.skip('this machine has no PostgreSQL server')
    const repo = await withFile(
      [
        'services: [{name: db, use: postgres, env: {POSTGRES_DB: app}}]',
        'setup: psql -c "create table t (n int)" && psql -c "insert into t values (42)"',
        'checks: [{name: rows, run: test "$(psql -Atc "select count(*) from t")" = 2}]',
      ].join('\n'),
    )
    const { task, said, all } = await run(
      repo,
      'psql -Atc "select current_database(), n from t"; psql -c "insert into t values (43)"',
    )
    expect(task, said).toMatchObject({ status: 'SUCCEEDED' })
    expect(said).toContain('app|42')
    expect(all).toContain('db is ready on port 5432')
  })

  it('a service runs before set-up, a background command before the agent, both beside it', async () => {
    const repo = await withFile(
      [
        `services: [{name: web, run: ${JSON.stringify(listen(7101, 'served'))}, ready: {port: 7101}}]`,
        `setup: ${ask(7101)} > ~/from-setup`,
        `start: [{run: ${JSON.stringify(`sleep 0.3; ${listen(7102, 'started')}`)}, ready: {port: 7102}, timeout: 2m}]`,
      ].join('\n'),
    )
    const { task, said } = await run(repo, `cat ~/from-setup; ${ask(7101)}; ${ask(7102)}`)
    expect(task, said).toMatchObject({ status: 'SUCCEEDED' })
    expect(said.match(/served/g)).toHaveLength(2)
    expect(said).toContain('started')
  })

  it.each([
    { when: 'ends', run: 'echo cannot start; exit 7', says: /bad ended with exit code 7: cannot start/ },
    { when: 'is not ready in time', run: 'echo waiting; sleep 600', says: /did not listen on port 7103 within 1 s/ },
  ])('a service that $when fails the task with its last output', async ({ run: command, says }) => {
    const repo = await withFile(
      `services: [{name: bad, run: ${JSON.stringify(command)}, ready: {port: 7103}, timeout: 1s}]\nsetup: echo never`,
    )
    const { task, said } = await run(repo, 'true')
    expect(task).toMatchObject({ status: 'FAILED', cause: { code: 'ServiceFailed' } })
    expect(task.cause?.message).toMatch(says)
    expect(said).not.toContain('never')
  })
})

describe('parts', () => {
  it('a task names one: its commands run in its directory, and one that is not there is refused', async () => {
    const repo = await withFile(
      [
        'setup: echo root > ~/by-setup',
        'env: {SHARED: 1, WHO: root}',
        'parts:',
        '  web: {path: web, setup: "pwd > ~/by-setup", env: {WHO: web}, checks: [{name: here, run: test -f page.html}]}',
      ].join('\n'),
      { 'web/page.html': 'x' },
    )
    const look = 'cat ~/by-setup; echo "$WHO $SHARED in $(basename "$PWD")"'
    const whole = await run(repo, look)
    expect(whole.said).toContain('root 1 in repo')
    const part = await run(repo, look, { part: 'web' })
    expect(part.task, part.said).toMatchObject({ status: 'SUCCEEDED', checks: { rounds: [{ passed: true }] } })
    expect(part.said).toMatch(/\/repo\/web\n/)
    expect(part.said).toContain('web 1 in repo')
    const wrong = await run(repo, look, { part: 'api' })
    expect(wrong.task).toMatchObject({
      cause: { code: 'EnvironmentInvalid', hint: expect.stringContaining('Its parts: web.') },
    })
  })
})

describe('secrets', () => {
  it('are refused with the command to run, then given to set-up alone, and kept out of everything', async () => {
    const value = 'hunter2-very-secret'
    const repo = await withFile(
      [
        'secrets: [{name: npm-private, for: setup, env: TOKEN}]',
        'setup: |',
        '  echo "token $TOKEN"',
        '  setsid sleep 600 > /dev/null 2>&1 < /dev/null &',
        '  printf %s "$TOKEN" | wc -c > ~/length',
      ].join('\n'),
    )
    const refused = await run(repo, 'true')
    expect(refused.task).toMatchObject({ cause: { code: 'EnvironmentNotGranted' } })
    const command = `env grant ${repo.path} --secret npm-private`
    expect(refused.task.cause?.hint).toContain(`corral ${command}`)
    expect(await corral(['env', 'grant', repo.path, '--secret', 'anthropic'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('is for the platform alone'),
    })
    expect(await corral(command.split(' '))).toMatchObject({ code: 0 })
    const unset = await run(repo, 'true')
    expect(unset.task).toMatchObject({
      cause: { code: 'SecretMissing', hint: expect.stringContaining('corral secret set npm-private') },
    })
    expect(await corral(['secret', 'set', 'npm-private'], value)).toMatchObject({ code: 0 })
    const given = await run(
      repo,
      'cat ~/length; echo "agent has [$TOKEN]"; cat /proc/[0-9]*/environ 2> /dev/null | tr "\\0" "\\n" | grep -c ^TOKEN= || true',
    )
    expect(given.task, given.said).toMatchObject({ status: 'SUCCEEDED' })
    expect(given.said).toContain('token ***')
    expect(given.said).toMatch(new RegExp(`^\\s*${value.length}\\b`, 'm'))
    expect(given.said).toContain('agent has []\n\n0')
    expect(given.all).not.toContain(value)
  })
})

describe('files of other tools', () => {
  it('are read where there is none of ours, and the events say which', async () => {
    const repo = await repository({
      '.devcontainer/devcontainer.json':
        '{\n  // prepared\n  "image": "x", "postCreateCommand": ["sh", "-c", "echo prepared > ~/p"],\n  "containerEnv": {"MODE": "dev"},\n  "initializeCommand": "touch /tmp/on-the-host",\n}\n',
    })
    const { task, said, all } = await run(repo, 'cat ~/p; echo "mode $MODE"')
    expect(task, said).toMatchObject({ status: 'SUCCEEDED' })
    expect(said).toContain('prepared')
    expect(said).toContain('mode dev')
    expect(all).toContain('environment from .devcontainer/devcontainer.json')
    expect(all).toContain('.devcontainer/devcontainer.json: image, initializeCommand')
    const shown = await corral(['env', 'show', repo.path])
    expect(shown.stdout).toContain('.devcontainer/devcontainer.json')
  })

  if (isFullSize)
    it('a step that cannot be done stops the task, unless it brings its own set-up', async () => {
      const repo = await repository({
        '.github/workflows/copilot-setup-steps.yml':
          'jobs:\n  copilot-setup-steps:\n    steps:\n      - uses: docker/login-action@v3\n',
      })
      const stopped = await run(repo, 'true')
      expect(stopped.task).toMatchObject({ cause: { code: 'EnvironmentInvalid' } })
      expect(stopped.task.cause?.message).toContain('steps[0] uses docker/login-action@v3, which is not supported')
      expect((await run(repo, 'true', { setup: 'true' })).task).toMatchObject({ status: 'SUCCEEDED' })
    })
})

import { mkdirSync, writeFileSync } from 'node:fs'
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
  tinyRoot,
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

/** What checking out, setting up and collecting call by name. */
const inTinyRoot = [
  ...['sh', 'bash', 'git', 'cat', 'mkdir', 'rm', 'mv', 'cp', 'ls', 'sed', 'grep', 'head', 'tail', 'tr', 'cut', 'sort'],
  ...['mktemp', 'chmod', 'env', 'uname', 'dirname', 'basename', 'date', 'touch', 'tar', 'id', 'sleep', 'wc', 'ln'],
  ...['readlink', 'find', 'xargs', 'stat', 'ps', 'true', 'false', 'awk', 'du', 'dd', 'cmp', 'nice', 'setsid', 'mkfifo'],
]

let count = 0
const repository = (files: Record<string, string>): Promise<GitFixture> =>
  gitRepository(join(scratch.path, `repo-${++count}`), files)

async function run(repo: string, command: string, more: Partial<CreateTaskRequest> = {}): Promise<TaskView> {
  return platform.api.run({ repo, task: 'Look', agent: { name: 'command', command }, ...more })
}

async function eventsOf(task: TaskView) {
  const events = await platform.api.allEvents(task.id)
  return { events, said: events.flatMap((event) => (event.type === 'output' ? [event.text] : [])).join('\n') }
}

describe('.corral/environment.yaml', () => {
  const file = [
    'version: 1',
    'setup:',
    '  - mkdir -p ~/made && echo "made with $GREETING" > ~/made/by-setup',
    '  - greet',
    'env: {GREETING: hello}',
    'path: [tools]',
    '',
  ].join('\n')
  const greet = '#!/bin/sh\necho "greeted $GREETING"\n'

  it('gives set-up and the agent its commands, variables and PATH', async () => {
    const repo = await repository({ '.corral/environment.yaml': file, 'tools/greet': greet })
    await repo.git('update-index', '--chmod=+x', 'tools/greet')
    await repo.git('commit', '-qm', 'make it a program')
    const task = await run(repo.path, 'cat ~/made/by-setup; greet')
    const { said } = await eventsOf(task)
    expect(task, said).toMatchObject({ status: 'SUCCEEDED' })
    expect(said).toContain('made with hello')
    expect(said.match(/greeted hello/g)).toHaveLength(2)
  })

  it('its checks judge the work and send the agent back, with the same variables and PATH', async () => {
    const checks = 'checks: [{name: greeting, run: greet && grep -q fixed answer.txt, timeout: 2m}]\n'
    const repo = await repository({ '.corral/environment.yaml': file + checks, 'tools/greet': greet })
    await repo.git('update-index', '--chmod=+x', 'tools/greet')
    await repo.git('commit', '-qm', 'make it a program')
    const task = await run(repo.path, 'greet; [ -f answer.txt ] && echo fixed > answer.txt || echo wrong > answer.txt')
    const { said } = await eventsOf(task)
    expect(task, said).toMatchObject({ status: 'SUCCEEDED' })
    expect(task.checks).toMatchObject({
      list: [{ name: 'greeting', timeout_seconds: 120 }],
      rounds: [{ passed: false }, { passed: true }],
    })
  })

  it('a failure in the middle of a pipe fails set-up', async () => {
    const repo = await repository({ '.corral/environment.yaml': 'version: 1\nsetup: "false | cat"\n' })
    expect(await run(repo.path, 'true')).toMatchObject({ status: 'FAILED', cause: { code: 'SetupFailed' } })
  })

  it('one that cannot be read ends the task with the field that is wrong', async () => {
    const repo = await repository({ '.corral/environment.yaml': 'version: 1\nsetpu: npm ci\n' })
    const task = await run(repo.path, 'true')
    expect(task).toMatchObject({ status: 'FAILED', cause: { code: 'EnvironmentInvalid' } })
    expect(task.cause?.message).toContain('setpu')
  })

  it('asks for network, is refused with the command to run, and gets it after that command', async () => {
    const asks = 'version: 1\nsetup: echo set up\negress: {setup: [packages, "files.example.com:443"]}\n'
    const repo = await repository({ '.corral/environment.yaml': asks })
    const refused = await run(repo.path, 'true')
    expect(refused).toMatchObject({ status: 'FAILED', cause: { code: 'EnvironmentNotGranted' } })
    const command = `env grant ${repo.path} files.example.com:443`
    expect(refused.cause?.hint).toContain(`corral ${command}`)
    const shown = await platform.corral(['env', 'show', repo.path, '--data-dir', platform.dataDir])
    expect(shown.stdout).toContain(command)
    await platform.corral([...command.split(' '), '--data-dir', platform.dataDir])
    expect(await run(repo.path, 'true')).toMatchObject({ status: 'SUCCEEDED' })
    await platform.corral(['env', 'revoke', repo.path, '--data-dir', platform.dataDir])
    expect(await run(repo.path, 'true')).toMatchObject({ cause: { code: 'EnvironmentNotGranted' } })
  })

  if (isFullSize)
    it('asks for more memory, is refused with the command to run, and is held to what it asked for', async () => {
      const asks = 'version: 1\nresources: {memory: 5Gi}\n'
      const repo = await repository({ '.corral/environment.yaml': asks })
      const refused = await run(repo.path, 'true')
      expect(refused).toMatchObject({ status: 'FAILED', cause: { code: 'EnvironmentNotGranted' } })
      const command = `env grant ${repo.path} --memory 5Gi`
      expect(refused.cause?.hint).toContain(`corral ${command}`)
      await platform.corral([...command.split(' '), '--data-dir', platform.dataDir])
      const granted = await run(repo.path, 'true')
      expect(granted).toMatchObject({ status: 'SUCCEEDED' })
      const { events } = await eventsOf(granted)
      expect(events).toContainEqual(expect.objectContaining({ detail: 'limits: memory=5Gi' }))
    })

  it.each([
    { of: 'memory', asks: 'memory: 256Mi', command: 'head -c 600M /dev/zero | tail -c 600M', code: 'OutOfMemory' },
    { of: 'disk', asks: 'disk: 64Mi', command: 'head -c 300M /dev/urandom > big; sleep 300', code: 'DiskLimit' },
  ])('a smaller limit of $of ends what exceeds it with $code', async ({ asks, command, code }) => {
    const repo = await repository({ '.corral/environment.yaml': `version: 1\nresources: {${asks}}\n` })
    const task = await run(repo.path, command)
    expect(task).toMatchObject({ status: 'FAILED', cause: { code } })
    expect(task.cause?.message).toContain(asks.split(': ')[1])
  })

  if (isFullSize)
    it('a build that takes more disk than it may ends as such, and leaves no snapshot', async () => {
      const greedy = 'version: 1\nsetup: head -c 300M /dev/urandom > big; sleep 300\nresources: {disk: 64Mi}\n'
      const repo = await repository({ '.corral/environment.yaml': greedy })
      const task = await run(repo.path, 'true')
      expect(task, JSON.stringify(task.cause)).toMatchObject({ status: 'FAILED', cause: { code: 'DiskLimit' } })
      const { stdout } = await platform.corral(['env', 'list', '--json', '--data-dir', platform.dataDir])
      const { environments } = JSON.parse(stdout) as { environments: { repo: string; snapshots: unknown[] }[] }
      expect(environments.find((each) => each.repo === repo.path)).toMatchObject({ snapshots: [] })
    })

  it('more than the machine has is told as such', async () => {
    const repo = await repository({ '.corral/environment.yaml': 'version: 1\nresources: {cpu: 900}\n' })
    const task = await run(repo.path, 'true')
    expect(task).toMatchObject({ status: 'FAILED', cause: { code: 'EnvironmentInvalid' } })
    expect(task.cause?.message).toContain('cpu 900 is more than the')
  })

  if (isFullSize)
    it('names an image: refused until it was granted, then told to import it, then the root of task and build', async () => {
      const image = 'version: 1\nimage: tiny:1\nsetup: cat /etc/marker > ~/seen\n'
      const repo = await repository({ '.corral/environment.yaml': image })
      const at = ['--data-dir', platform.dataDir]
      const refused = await run(repo.path, 'true')
      expect(refused).toMatchObject({ status: 'FAILED', cause: { code: 'EnvironmentNotGranted' } })
      expect(refused.cause?.hint).toContain(`corral env grant ${repo.path} --image tiny:1`)
      await platform.corral(['env', 'grant', repo.path, '--image', 'tiny:1', ...at])
      const missing = await run(repo.path, 'true')
      expect(missing).toMatchObject({ status: 'FAILED', cause: { code: 'ToolMissing' } })
      expect(missing.cause?.hint).toContain('corral image import tiny:1')
      const bare = tinyRoot(join(scratch.path, 'bare'), { programs: ['sh', 'mkdir'], marker: 'bare' })
      expect((await platform.corral(['image', 'import', 'tiny:1', bare, ...at])).stderr).toContain(
        'tasks need bash, git',
      )
      const unable = await run(repo.path, 'true')
      expect(unable).toMatchObject({ status: 'FAILED', cause: { code: 'ToolMissing' } })
      expect(unable.cause?.message).toContain('the image tiny:1 cannot run a task: it has no bash, no git')
      expect(unable.cause?.hint).toContain('corral image build tiny:1 --debian')
      const archive = tinyRoot(scratch.path, { programs: inTinyRoot, librariesOf: ['node'], marker: 'tiny root' })
      expect(await platform.corral(['image', 'import', 'tiny:1', archive, '--replace', ...at])).toMatchObject({
        code: 0,
      })
      expect((await platform.corral(['image', 'list', ...at])).stdout).toContain('tiny:1')
      const task = await run(repo.path, 'cat ~/seen /etc/marker; ls /usr/bin | wc -l; echo done > made.txt')
      const { events, said } = await eventsOf(task)
      expect(task, JSON.stringify([task.cause, said])).toMatchObject({ status: 'SUCCEEDED' })
      expect(said).toContain(`tiny roottiny root${inTinyRoot.length}`)
      const details = events.flatMap((event) => (event.type === 'stage' ? [event.detail ?? ''] : []))
      expect(details).toContainEqual(expect.stringMatching(/^set up already: snapshot/))
      expect(details).toContain('root file system: tiny:1')
      const shell = await platform.corral(['env', 'shell', repo.path, ...at], { stdin: 'cat /etc/marker ~/seen\n' })
      expect(shell, shell.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining('tiny roottiny root') })
      expect(await platform.corral(['image', 'rm', 'tiny:1', ...at])).toMatchObject({ code: 0 })
    })

  it('of an agent’s own commit counts for nobody: a follow-up has the one of the base', async () => {
    const repo = await repository({ '.corral/environment.yaml': 'version: 1\nenv: {FROM: base}\n' })
    const first = await run(
      repo.path,
      'printf "version: 1\\nenv: {FROM: agent}\\negress: {agent: [packages]}\\n" > .corral/environment.yaml; echo "first $FROM"',
    )
    expect(first).toMatchObject({ status: 'SUCCEEDED', pushed: true })
    const followUp = await platform.corral([
      ...['task', 'send', first.id, 'Again', '--watch', '--data-dir', platform.dataDir],
    ])
    expect(followUp.stdout).toContain('first base')
    expect(followUp.stdout).not.toContain('first agent')
  })

  it('a build that fails where a name was refused ends its task with the command that opens it', async () => {
    const ask = `node -e "fetch('https://npm.example.com/').catch(() => process.exit(1))"`
    const repo = await repository({ '.corral/environment.yaml': `version: 1\nsetup: |\n  ${ask}\n` })
    const task = await run(repo.path, 'true')
    expect(task).toMatchObject({ status: 'FAILED', cause: { code: 'SetupFailed' } })
    expect(task.cause?.hint).toContain(`corral env grant ${repo.path} npm.example.com:443`)
  })

  it('a refused name is told once, with the option that allows it', async () => {
    const repo = await repository({ 'a.txt': 'a' })
    const ask = `node -e "fetch('http://cdn.example.com/').catch(() => console.log('refused'))"`
    const task = await run(repo.path, ask, { setup: `${ask}; ${ask}` })
    const { events } = await eventsOf(task)
    const told = events.filter((event) => event.type === 'warning' && event.code === 'EgressRefused')
    expect(told).toHaveLength(1)
    expect(told[0]).toMatchObject({ message: expect.stringContaining('--allow cdn.example.com:443') })
  })
})

describe('corral env', () => {
  it('init takes lock files where a devcontainer names an image and nothing to run', async () => {
    const repo = await repository({
      'package.json': '{}',
      'package-lock.json': '{}',
      '.devcontainer/devcontainer.json': '{"image": "node:22", "features": {"git": {}}, "containerEnv": {"A": "b"}}',
    })
    const made = await platform.corral(['env', 'init', repo.path])
    expect(made.stdout).toMatch(/from package-lock\.json\nnot taken over: \.devcontainer\/devcontainer\.json\n/)
    const checked = await platform.corral(['env', 'validate', repo.path, '--json'])
    expect(JSON.parse(checked.stdout)).toMatchObject({ environment: { setup: 'npm ci' } })
  })

  it('init takes lock files where a devcontainer counts on the programs of its image, and that when it is asked for', async () => {
    const repo = await repository({
      'go.mod': 'module p\n',
      '.devcontainer/devcontainer.json': '{"image": "python:3", "onCreateCommand": ".devcontainer/install.sh"}',
    })
    const made = await platform.corral(['env', 'init', repo.path])
    expect(made.stdout).toContain('from go.mod\nnot taken over: .devcontainer/devcontainer.json\n')
    const [, command = ''] = /instead of lock files: corral (.*)/.exec(made.stdout) ?? []
    const again = await platform.corral(command.split(' '))
    expect(again.stdout).toContain('from .devcontainer/devcontainer.json\n')
    expect(await platform.corral(['env', 'init', repo.path, '--force', '--from', 'Makefile'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('One of .github/workflows/copilot-setup-steps.yml'),
    })
  })

  it('build says that the file is not committed, which is why there is nothing to build', async () => {
    const repo = await repository({ 'README.md': 'p' })
    mkdirSync(join(repo.path, '.corral'))
    writeFileSync(join(repo.path, '.corral/environment.yaml'), 'version: 1\nsetup: "true"\n')
    const { code, stderr } = await platform.corral(['env', 'build', repo.path])
    expect(code).toBe(1)
    expect(stderr).toContain('.corral/environment.yaml is not committed as it is here')
  })

  it('init of a repository with a Dockerfile alone says how its image is used', async () => {
    const repo = await repository({ Dockerfile: 'FROM node:22\n' })
    expect(await platform.corral(['env', 'init', repo.path])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('corral image import'),
    })
  })

  it('init writes a file from lock files that validate accepts, and does not replace one', async () => {
    const repo = await repository({ 'package.json': '{}', 'package-lock.json': '{}', 'go.mod': 'module p\n' })
    const made = await platform.corral(['env', 'init', repo.path])
    expect(made.stdout).toContain('package-lock.json, go.mod')
    const checked = await platform.corral(['env', 'validate', repo.path, '--json'])
    expect(JSON.parse(checked.stdout)).toMatchObject({
      valid: true,
      environment: { setup: expect.stringMatching(/^npm ci\ngo mod download\n/), path: ['node_modules/.bin'] },
    })
    const again = await platform.corral(['env', 'init', repo.path])
    expect(again.code).toBe(1)
    expect(again.stderr).toContain('is there already')
  })

  it('validate says where the mistake is, and does not send you to validate', async () => {
    const repo = await repository({
      '.corral/environment.yaml': 'version: 1\nsetup: make\nchecks: [{run: make test}]\n',
    })
    const { code, stderr } = await platform.corral(['env', 'validate', repo.path])
    expect(code).toBe(1)
    expect(stderr).toContain('line 3, column 10: checks[0].name: is required')
    expect(stderr).not.toContain('Check it with')
  })

  it('init names a project whose set-up it does not know, alone or beside another', async () => {
    const alone = await repository({ 'build.gradle': '' })
    const refused = await platform.corral(['env', 'init', alone.path])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('no set-up is known here for Gradle (build.gradle)')
    const beside = await repository({ 'build.gradle': '', 'package.json': '{}', 'package-lock.json': '{}' })
    const { stdout } = await platform.corral(['env', 'init', beside.path])
    expect(stdout).toMatch(/from package-lock\.json\nnot set up, .*: Gradle \(build\.gradle\)/)
  })
})

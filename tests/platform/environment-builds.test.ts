import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CreateTaskRequest, EnvironmentView, TaskView } from '@corral/protocol'
import { Environments } from '@corral/resources'
import {
  type GitFixture,
  gitRepository,
  isFullSize,
  type PlatformProcess,
  startPlatformProcess,
  type TemporaryDirectory,
  temporaryDirectory,
  waitUntil,
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

let count = 0
const repository = (files: Record<string, string>): Promise<GitFixture> =>
  gitRepository(join(scratch.path, `repo-${++count}`), files)

async function run(repo: GitFixture, command: string, more: Partial<CreateTaskRequest> = {}) {
  const task: TaskView = await platform.api.run({
    repo: repo.path,
    task: 'Look',
    agent: { name: 'command', command },
    ...more,
  })
  const events = await platform.api.allEvents(task.id)
  const said = events.flatMap((event) => (event.type === 'output' ? [event.text] : [])).join('\n')
  const setup = events.flatMap((event) => (event.type === 'output' && event.stage === 'setup' ? [event.text] : []))
  return { task, events, said, setup: setup.join(''), all: JSON.stringify(events) }
}

async function commit(repo: GitFixture, files: Record<string, string>): Promise<void> {
  for (const [path, text] of Object.entries(files)) writeFileSync(join(repo.path, path), text)
  await repo.git('add', '-A')
  await repo.git('commit', '-qm', 'change')
}

/** Programs below a home directory, which sandboxes do not see until they are added. */
function uvToolchain(): string {
  const directory = join(scratch.path, 'uv')
  mkdirSync(join(directory, 'bin'), { recursive: true })
  writeFileSync(join(directory, 'bin/uv'), '#!/bin/sh\necho uv 77.1.0\n', { mode: 0o755 })
  return directory
}

const corral = (words: string[]) => platform.corral([...words, '--data-dir', platform.dataDir])

async function environments(repo: GitFixture): Promise<EnvironmentView[]> {
  const { stdout } = await corral(['env', 'list', '--json'])
  return (JSON.parse(stdout) as { environments: EnvironmentView[] }).environments.filter(
    (each) => each.repo === repo.path,
  )
}

const file = (setup: string, more = ''): string => `version: 1\nsetup: |\n${setup.replace(/^/gm, '  ')}\n${more}`
const ignoring = { '.gitignore': 'deps/\n', 'package-lock.json': '{"n": 1}' }
/** Says that it runs, and leaves something that tells this run from another. */
const install = 'echo "installing"; mkdir -p deps; cat /proc/sys/kernel/random/uuid > deps/stamp; echo h > ~/in-home'
const look = 'echo "stamp $(cat deps/stamp) $(cat ~/in-home)"; git status --short'
const stampIn = (said: string): string | undefined => /stamp ([0-9a-f-]+) h/.exec(said)?.[1]

describe('an environment', () => {
  it('is built once, outside of any task, and every task on its branch finds it in place', async () => {
    const repo = await repository({ ...ignoring, '.corral/environment.yaml': file(install) })
    const [first, beside] = await Promise.all([run(repo, look), run(repo, look)])
    expect(first.task, first.said).toMatchObject({ status: 'SUCCEEDED', outcome: 'no_changes' })
    expect(stampIn(first.said)).toBe(stampIn(beside.said))
    // Both waited for the one build and were told what it said.
    expect([first.setup, beside.setup].join('')).toContain('installing')
    const later = await run(repo, look)
    expect(later.task, later.said).toMatchObject({ status: 'SUCCEEDED' })
    expect(stampIn(later.said)).toBe(stampIn(first.said))
    expect(later.setup).toBe('')
    expect(later.all).toContain('set up already: snapshot')
    expect(await environments(repo)).toMatchObject([
      {
        ref: 'main',
        built: true,
        build: { number: 1, state: 'Succeeded' },
        snapshots: [{ lockfiles: ['package-lock.json'] }],
      },
    ])
  })

  it('is found by a task on a later commit; with other lock files it is updated in the task and built anew', async () => {
    const update = 'update: echo updating > deps/updated; cat package-lock.json\n'
    const repo = await repository({ ...ignoring, 'a.txt': 'one', '.corral/environment.yaml': file(install, update) })
    const first = await run(repo, look)
    await commit(repo, { 'a.txt': 'two' })
    const later = await run(repo, `${look}; cat a.txt; git log --oneline | wc -l`)
    expect(stampIn(later.said)).toBe(stampIn(first.said))
    expect(later.said).toMatch(/two\n?2/)
    await commit(repo, { 'package-lock.json': '{"n": 2}' })
    const updated = await run(repo, `${look}; cat deps/updated`)
    expect(updated.task, updated.said).toMatchObject({ status: 'SUCCEEDED', outcome: 'no_changes' })
    expect(stampIn(updated.said)).toBe(stampIn(first.said))
    expect(updated.setup).toContain('{"n": 2}')
    expect(updated.said).toContain('updating')
    await waitUntil('the second snapshot', async () => (await environments(repo))[0]?.snapshots.length === 2)
    const fresh = await run(repo, `${look}; ls deps`)
    expect(fresh.setup).toBe('')
    expect(stampIn(fresh.said)).not.toBe(stampIn(first.said))
    expect(fresh.said).not.toContain('updated')
  })

  if (isFullSize)
    it('of a set-up that removes .git ends the task and says so', async () => {
      const repo = await repository({ '.corral/environment.yaml': file('rm -rf .git; mkdir deps') })
      const { task, all } = await run(repo, 'true')
      expect(task, all).toMatchObject({ status: 'FAILED', cause: { code: 'SetupFailed' } })
      expect(task.cause?.message).toBe('set-up removed .git of the repository')
    })

  if (isFullSize)
    it('belongs to its branch: what another branch built is not seen', async () => {
      const repo = await repository({ ...ignoring, '.corral/environment.yaml': file(install) })
      await repo.git('branch', 'other')
      const main = await run(repo, look)
      const other = await run(repo, look, { base_branch: 'other' })
      expect(stampIn(other.said)).toBeDefined()
      expect(stampIn(other.said)).not.toBe(stampIn(main.said))
    })

  if (isFullSize)
    it.each<{ how: string; request: Partial<CreateTaskRequest>; says: string }>([
      {
        how: 'brings its own set-up',
        request: { setup: 'echo mine; mkdir deps; echo mine > deps/stamp' },
        says: 'mine',
      },
      { how: 'says so', request: { use_snapshot: false }, says: 'installing' },
    ])('a task that $how is set up from nothing', async ({ request, says }) => {
      const repo = await repository({ ...ignoring, '.corral/environment.yaml': file(install) })
      const { task, setup } = await run(repo, 'cat deps/stamp', request)
      expect(task).toMatchObject({ status: 'SUCCEEDED' })
      expect(setup).toContain(says)
      expect(await environments(repo)).toEqual([])
    })

  it('whose set-up fails fails the task with its last lines, and can be looked at', async () => {
    const failing = 'version: 1\nenv: {GREETING: "good day"}\nsetup: echo some words; touch ~/left-behind; exit 7\n'
    const repo = await repository({ '.corral/environment.yaml': failing })
    const { task, setup } = await run(repo, 'true')
    expect(task).toMatchObject({ status: 'FAILED', cause: { code: 'SetupFailed' } })
    expect(task.cause?.message).toMatch(/exit code 7: some words/)
    expect(setup).toContain('some words')
    const [environment] = await environments(repo)
    expect(environment).toMatchObject({ built: false, build: { state: 'Failed', key: expect.any(String) } })
    const words = task.cause?.hint?.match(/corral (env shell \S+ --failed)/)?.[1]?.split(' ') ?? []
    const shell = await platform.corral([...words, '--data-dir', platform.dataDir], {
      stdin: 'ls ~; pwd; echo "$GREETING"\n',
    })
    expect(shell, shell.stderr).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/left-behind[\s\S]*\/workspace\/repo\ngood day\n/),
    })
    // Corrected, it is built again.
    await commit(repo, { '.corral/environment.yaml': 'version: 1\nsetup: echo fine\n' })
    expect((await run(repo, 'true')).task).toMatchObject({ status: 'SUCCEEDED' })
  })

  if (isFullSize)
    it('that leaves a secret or somebody else’s file is kept from nobody but not as a snapshot', async () => {
      const value = 'hunter2-very-secret'
      const repo = await repository({
        ...ignoring,
        '.corral/environment.yaml': file(
          'echo "$TOKEN" > ~/.npmrc; mkdir deps',
          'secrets: [{name: npm-left, env: TOKEN}]\n',
        ),
      })
      await platform.corral(['secret', 'set', 'npm-left', '--data-dir', platform.dataDir], { stdin: value })
      await corral(['env', 'grant', repo.path, '--secret', 'npm-left'])
      for (const round of [1, 2]) {
        const { task, all } = await run(repo, 'cat ~/.npmrc | wc -c; ls -d deps')
        expect(task, `round ${round}`).toMatchObject({ status: 'SUCCEEDED' })
        expect(JSON.stringify(task.warnings)).toContain('SecretFound: /home/agent/.npmrc')
        expect(all).not.toContain(value)
      }
      expect(await environments(repo)).toMatchObject([
        { built: false, build: { number: 1, cause: { code: 'SnapshotRefused' } } },
      ])
    })
})

describe('no task’s work reaches a snapshot', () => {
  it('whatever it writes into its tree, its home, its lock file, its environment file and its branch', async () => {
    const repo = await repository({
      ...ignoring,
      'run.sh': 'echo clean',
      '.corral/environment.yaml': file(
        `${install}; echo good > deps/program; mkdir -p ~/.cache && echo good > ~/.cache/c`,
      ),
    })
    const attack = [
      'echo evil > deps/program; rm -f deps/stamp; echo evil > ~/.cache/c; echo evil > ~/.bashrc; chmod 777 deps',
      'mv deps moved; mkdir deps; echo evil > deps/program; git config core.hooksPath /tmp/evil; echo evil > .git/hooks/post-checkout',
      'echo \'{"n": 666}\' > package-lock.json; echo evil > run.sh',
      'printf "version: 1\\nsetup: mkdir deps; echo evil > deps/program\\nenv: {EVIL: yes}\\n" > .corral/environment.yaml',
    ].join('\n')
    const evil = await run(repo, attack)
    expect(evil.task, evil.said).toMatchObject({ status: 'SUCCEEDED', pushed: true })
    const see =
      'cat deps/program ~/.cache/c run.sh; git config core.hooksPath; ls .git/hooks | grep -v sample; ls -a ~; echo "env [$EVIL]"; stat -c %a deps'
    const victim = await run(repo, see)
    expect(victim.task).toMatchObject({ status: 'SUCCEEDED' })
    expect(victim.said).not.toContain('evil')
    expect(victim.said).toContain('env []')
    expect(victim.said).not.toContain('777')
    expect(victim.all).toContain('set up already')
    // A task that starts from the agent's branch gets that branch's own environment, and main keeps its.
    const onBranch = await run(repo, 'cat deps/program', { base_branch: evil.task.branch! })
    expect(onBranch.task).toMatchObject({ status: 'SUCCEEDED' })
    const again = await run(repo, 'cat deps/program')
    expect(again.said).toContain('good')
    expect(again.setup).toBe('')
  })

  if (isFullSize)
    it('set-id bits, sockets and overlay marks that a build leaves are gone in tasks', async () => {
      const script = [
        'mkdir deps; cp /bin/true deps/tool; chmod 6755 deps/tool',
        'python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\'deps/socket\')"',
        "mkdir deps/hidden; touch deps/hidden/file; python3 -c \"import os; os.setxattr('deps/hidden', 'user.overlay.opaque', b'y')\" || true",
      ].join('\n')
      const repo = await repository({ ...ignoring, '.corral/environment.yaml': file(script) })
      await run(repo, 'true')
      const { task, said } = await run(
        repo,
        'stat -c %a deps/tool; ls deps deps/hidden; getfattr -d deps/hidden 2>/dev/null || true',
      )
      expect(task, said).toMatchObject({ status: 'SUCCEEDED' })
      expect(said).toMatch(/755[\s\S]*hidden[\s\S]*file/)
      expect(said).not.toMatch(/6755|socket|opaque/)
    })
})

describe('corral env', () => {
  it('builds, lists, shows, tests and prunes', async () => {
    const checks =
      'checks: [{name: there, run: test -f deps/stamp}, {name: offline, run: "! node -e \'fetch(`http://127.0.0.1:8788/npm/x`).catch(() => process.exit(1))\'"}]\n'
    const declared = `${checks}env: {GREETING: "good day"}\npath: [deps/bin, tools]\ntools: {uv: "77"}\n`
    const tool = { 'tools/hello': '#!/bin/sh\necho "$GREETING"\n' }
    const repo = await repository({ ...ignoring, ...tool, '.corral/environment.yaml': file(install, declared) })
    await corral(['env', 'tools', '--add', uvToolchain()])
    const built = await corral(['env', 'build', repo.path])
    expect(built, built.stderr).toMatchObject({ code: 0, stdout: expect.stringMatching(/snapshot \S+-1, \d+ files/) })
    expect(built.stderr).toContain('installing')
    const again = await corral(['env', 'build', repo.path, '--json'])
    expect(JSON.parse(again.stdout)).toMatchObject({ build: { number: 2, state: 'Succeeded' }, snapshots: [{}] })
    const [{ name } = { name: '' }] = await environments(repo)
    const anew = await corral(['env', 'build', name, '--no-cache', '--json'])
    expect(JSON.parse(anew.stdout)).toMatchObject({ build: { number: 3 }, snapshots: [{ name: `${name}-3` }, {}] })
    expect((await corral(['env', 'show', repo.path])).stdout).toMatch(/built: +built, \S+-3 of /)
    const tested = await corral(['env', 'test', repo.path])
    expect(tested, tested.stdout).toMatchObject({ code: 0, stdout: expect.stringContaining('✓ there') })
    const shell = await platform.corral(['env', 'shell', repo.path, '--data-dir', platform.dataDir], {
      stdin: 'cat deps/stamp; echo changed > deps/stamp; chmod +x tools/hello; hello; echo "$PATH"; uv --version\n',
    })
    expect(shell, shell.stderr).toMatchObject({ code: 0, stdout: expect.stringMatching(/^[0-9a-f-]{36}\ngood day\n/m) })
    expect(shell.stdout).toContain(
      '\n/workspace/repo/deps/bin:/workspace/repo/tools:/opt/corral/toolchains/uv/77.1.0/bin:/',
    )
    expect(shell.stdout).toContain('uv 77.1.0')
    expect(await corral(['env', 'prune', 'nonesuch'])).toMatchObject({ code: 1 })
    expect((await corral(['env', 'prune', name])).stdout).toContain(`removed ${name}`)
    const kube = await platform.kube()
    const gone = async () => (await kube.find(Environments, { namespace: 'corral', name })) === undefined
    await waitUntil('the environment to be gone', gone)
    expect((await run(repo, look)).setup).toContain('installing')
  })

  it('prune of an environment that a sandbox has: no later task gets it, and a build says why there is none yet', async () => {
    const repo = await repository({ ...ignoring, '.corral/environment.yaml': file(install) })
    const holding = await platform.api.create({
      repo: repo.path,
      task: 'Hold',
      agent: { name: 'command', command: 'cat deps/stamp; sleep 600' },
    })
    await waitUntil('the task to run', async () => (await platform.api.get(holding)).status === 'RUNNING')
    const [{ name } = { name: '' }] = await environments(repo)
    expect((await corral(['env', 'prune', name])).stdout).toContain('gone when no sandbox has it any more')
    const { task, setup, all } = await run(repo, look)
    expect(task, all).toMatchObject({ status: 'SUCCEEDED' })
    expect(setup).toContain('installing')
    expect(all).toContain('is being removed')
    const refused = await corral(['env', 'build', repo.path])
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('a sandbox still has what it built') })
    await platform.api.request('POST', `/tasks/${holding}/cancel`)
    const kube = await platform.kube()
    const gone = async () => (await kube.find(Environments, { namespace: 'corral', name })) === undefined
    await waitUntil('the environment to be gone', gone)
    expect(await corral(['env', 'build', repo.path])).toMatchObject({ code: 0 })
  })

  if (isFullSize)
    it('builds nothing where there is no set-up, names the part to build, and offers no shell', async () => {
      const parts = 'version: 1\nparts: {web: {path: web, setup: mkdir deps}}\n'
      const repo = await repository({ 'web/a.txt': '', '.corral/environment.yaml': parts })
      const built = await corral(['env', 'build', repo.path])
      expect(built).toMatchObject({ code: 1, stderr: expect.stringContaining('corral env build . --part web') })
      expect(built.stderr).not.toContain('env shell')
    })
})

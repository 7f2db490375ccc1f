import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { ensureCertificates } from '@corral/apiserver'
import type { CreateTaskRequest, EnvironmentView } from '@corral/protocol'
import {
  corralProgram,
  type GitFixture,
  gitRepository,
  isFullSize,
  type TaskApi,
  type TemporaryDirectory,
  taskApi,
  temporaryDirectory,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

/** A server that has nothing of its nodes but the Kubernetes API, as in a cluster. */
describe('an environment of a server whose nodes keep no snapshots', () => {
  let scratch: TemporaryDirectory
  let kubeconfig: string
  let api: TaskApi
  let server: { child: ChildProcess; ended: Promise<unknown> }
  const children: { child: ChildProcess; ended: Promise<unknown> }[] = []
  const at = (...names: string[]): string => join(scratch.path, ...names)

  async function start(name: string, args: readonly string[], isAnnounced = true): Promise<Record<string, string>> {
    const readyFile = at(`${name}.json`)
    rmSync(readyFile, { force: true })
    const child = spawn(
      process.execPath,
      [corralProgram, ...args, ...(isAnnounced ? ['--ready-file', readyFile] : [])],
      {
        env: { PATH: process.env.PATH, HOME: scratch.path },
        cwd: scratch.path,
        stdio: ['ignore', 'ignore', 'inherit'],
      },
    )
    server = { child, ended: new Promise((resolve) => child.once('exit', resolve)) }
    children.push(server)
    if (!isAnnounced) return {}
    await waitUntil(`${name} is ready`, () => existsSync(readyFile))
    return JSON.parse(readFileSync(readyFile, 'utf8')) as Record<string, string>
  }

  async function startServer(...more: string[]): Promise<void> {
    const place = ['--kubeconfig', kubeconfig, '--data-dir', at('server'), '--broker-port', '0', '--log-level', 'error']
    const given = await start('server', ['server', ...place, '--local-repositories', '--warm', '1', ...more])
    api = taskApi(() => ({ url: given.url ?? '', token: given.token ?? '' }))
  }

  beforeAll(async () => {
    scratch = temporaryDirectory()
    const quiet = ['--log-level', 'error']
    await ensureCertificates(at('node', 'tls'), ['127.0.0.1'])
    const trust = ['--kubelet-certificate-authority', at('node', 'tls', 'ca.crt')]
    const started = await start('api', ['apiserver', '--data-dir', at('api'), '--memory', ...trust, ...quiet])
    kubeconfig = started.kubeconfig ?? ''
    const controller = ['controller', '--kubeconfig', kubeconfig, '--extensions', '--leader-elect=false']
    const silent = ['--metrics-bind-address=0', '--health-probe-bind-address=0', '--zap-log-level=error']
    await start('controller', [...controller, ...silent], false)
    const place = ['--data-dir', at('node'), '--name', 'alone', '--kubelet-port', String(await freePort())]
    await start('node', ['node', '--kubeconfig', kubeconfig, ...place, ...quiet])
    await startServer()
  })
  afterAll(async () => {
    for (const { child } of children) child.kill('SIGTERM')
    await Promise.all(children.map(({ ended }) => ended))
    await scratch?.[Symbol.asyncDispose]()
  })

  async function run(repo: GitFixture, command: string, more: Partial<CreateTaskRequest> = {}) {
    const task = await api.run({ repo: repo.path, task: 'Look', agent: { name: 'command', command }, ...more })
    const events = await api.allEvents(task.id)
    const said = events.flatMap((event) => (event.type === 'output' ? [event.text] : [])).join('\n')
    const setup = events.flatMap((event) => (event.type === 'output' && event.stage === 'setup' ? [event.text] : []))
    return { task, said, setup: setup.join(''), all: JSON.stringify(events) }
  }

  const environments = async (): Promise<EnvironmentView[]> =>
    ((await api.request('GET', '/environments')).json as { environments: EnvironmentView[] }).environments

  const environmentFile = (setup: string, more = ''): string =>
    `version: 1\nsetup: |\n${setup.replace(/^/gm, '  ')}\n${more}`
  /** As package managers do it: a read-only cache in the home directory, links and programs in the repository. */
  const install = `echo installing; mkdir -p deps/bin ~/cache/module
cat /proc/sys/kernel/random/uuid > deps/stamp
printf '#!/bin/sh\\necho runs\\n' > deps/bin/tool; chmod 755 deps/bin/tool; ln -s bin/tool deps/tool
echo cached > ~/cache/module/file; chmod 444 ~/cache/module/file; chmod 555 ~/cache/module`
  const look = 'echo "stamp $(cat deps/stamp) $(deps/tool) $(cat ~/cache/module/file)"; git status --short'
  const stampIn = (said: string): string | undefined => /stamp ([0-9a-f-]+) runs cached/.exec(said)?.[1]
  const ignoring = { '.gitignore': 'deps/\n', 'package-lock.json': '{"n": 1}' }
  let repo: GitFixture
  let first: Awaited<ReturnType<typeof run>>

  it('is built once and copied into the sandbox of every later task', async () => {
    const update = 'update: cat package-lock.json; echo updated > deps/updated\n'
    repo = await gitRepository(at('repo'), {
      ...ignoring,
      '.corral/environment.yaml': environmentFile(install, update),
    })
    first = await run(repo, look)
    expect(first.task, first.all).toMatchObject({ status: 'SUCCEEDED', outcome: 'no_changes' })
    expect(first.setup).toContain('installing')
    const later = await run(repo, look)
    expect(later.task, later.all).toMatchObject({ status: 'SUCCEEDED', outcome: 'no_changes' })
    expect([stampIn(later.said), later.setup]).toEqual([stampIn(first.said), ''])
    expect(stampIn(first.said)).toBeDefined()
    expect(later.all).toContain('set up already: snapshot')
    const [shown] = await environments()
    expect(shown).toMatchObject({ built: true, build: { number: 1, state: 'Succeeded' }, ref: 'main' })
    expect(readdirSync(at('server', 'environments'))).toEqual([shown?.snapshots[0]?.name])
  })

  it('has nothing of what a task wrote into its copy', async () => {
    const spoiled = await run(
      repo,
      'echo spoiled > deps/stamp; echo spoiled > ~/cache/new; chmod -R u+w ~/cache; rm -r ~/cache',
    )
    expect(spoiled.task).toMatchObject({ status: 'SUCCEEDED' })
    const later = await run(repo, `${look}; ls ~/cache`)
    expect(stampIn(later.said), later.said).toBe(stampIn(first.said))
    expect(later.said).not.toContain('new')
  })

  if (isFullSize)
    it('is found again by a server that was killed and started anew', async () => {
      server.child.kill('SIGKILL')
      await server.ended
      await startServer()
      const later = await run(repo, look)
      expect([stampIn(later.said), later.setup], later.all).toEqual([stampIn(first.said), ''])
    })

  if (isFullSize)
    it('is brought up to date in the task where lock files differ, and built anew', async () => {
      writeFileSync(join(repo.path, 'package-lock.json'), '{"n": 2}')
      await repo.git('commit', '-qam', 'another lock file')
      const updated = await run(repo, `${look}; cat deps/updated`)
      expect(updated.setup).toContain('{"n": 2}')
      expect(stampIn(updated.said)).toBe(stampIn(first.said))
      await waitUntil('the second snapshot', async () => (await environments())[0]?.snapshots.length === 2)
      const fresh = await run(repo, `${look}; ls deps`)
      expect(fresh.setup).toBe('')
      expect([stampIn(fresh.said) === stampIn(first.said), fresh.said.includes('updated')]).toEqual([false, false])
    })

  if (isFullSize)
    it('with a directory that cannot be read is set up in every task, which names it', async () => {
      const closed = `${install}; mkdir deps/closed; chmod 000 deps/closed`
      const other = await gitRepository(at('closed'), {
        ...ignoring,
        '.corral/environment.yaml': environmentFile(closed),
      })
      const { task, setup, all } = await run(other, look)
      expect(task, all).toMatchObject({ status: 'SUCCEEDED', outcome: 'no_changes' })
      expect(setup).toContain('installing')
      expect(task.warnings).toContainEqual(
        expect.objectContaining({ code: 'SnapshotNotUsed', message: expect.stringContaining('/repo/deps/closed') }),
      )
    })

  it('whose set-up fails says what it can reach here', async () => {
    const broken = await gitRepository(at('broken'), { '.corral/environment.yaml': environmentFile('exit 7') })
    const { task } = await run(broken, 'true')
    expect(task).toMatchObject({ status: 'FAILED', cause: { code: 'SetupFailed' } })
    expect(task.cause?.hint).toContain('this cluster has no package mirror')
  })

  if (isFullSize)
    it('that cannot be kept is set up in every task, which says why', async () => {
      server.child.kill('SIGTERM')
      await server.ended
      await startServer('--snapshot-budget', '1K')
      const other = await gitRepository(at('other'), {
        ...ignoring,
        '.corral/environment.yaml': environmentFile(install),
      })
      for (const round of [1, 2]) {
        const task = await run(other, look)
        expect(task.task, task.all).toMatchObject({ status: 'SUCCEEDED', outcome: 'no_changes' })
        expect(task.setup, `round ${round}`).toContain('installing')
        expect(task.task.warnings).toContainEqual(
          expect.objectContaining({ code: 'SnapshotNotUsed', message: expect.stringContaining('--snapshot-budget') }),
        )
      }
    })

  if (isFullSize)
    it('is not built at all where nothing may be kept', async () => {
      server.child.kill('SIGTERM')
      await server.ended
      await startServer('--snapshot-budget', '0')
      const other = await gitRepository(at('none'), {
        ...ignoring,
        '.corral/environment.yaml': environmentFile(install),
      })
      const task = await run(other, look)
      expect([task.task.status, task.task.warnings ?? []], task.all).toEqual(['SUCCEEDED', []])
      expect(task.setup).toContain('installing')
      expect((await environments()).filter((each) => each.repo === other.path)).toEqual([])
    })
})

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}

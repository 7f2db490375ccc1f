import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AgentTasks, Events } from '@corral/resources'
import {
  gitRepository,
  isFullSize,
  type PlatformProcess,
  startPlatformProcess,
  type TemporaryDirectory,
  temporaryDirectory,
  waitUntil,
} from '@corral/testing'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 90_000 })

const mayMount = process.getuid?.() === 0 && process.platform === 'linux'

/** A part of the data directory on a disk of its own that is nearly full from the start. */
describe.skipIf(!mayMount)(`a full disk${mayMount ? '' : ' (only root may mount one)'}`, () => {
  let scratch: TemporaryDirectory
  let platform: PlatformProcess
  let mounted: string | undefined

  beforeEach(() => {
    scratch = temporaryDirectory()
  })
  afterEach(async () => {
    await platform?.stop()
    if (mounted) execFileSync('umount', ['-l', mounted])
    mounted = undefined
    await platform?.[Symbol.asyncDispose]()
    await scratch[Symbol.asyncDispose]()
  })

  async function startOn(part: string, size: string, mode: string): Promise<void> {
    const dataDir = join(scratch.path, 'data')
    mounted = join(dataDir, part)
    mkdirSync(mounted, { recursive: true, mode: 0o711 })
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=${mode}`, 'corral-test', mounted])
    platform = await startPlatformProcess({ dataDir, args: ['--warm', '0'] })
  }

  let count = 0
  const create = async (command: string): Promise<string> => {
    const repo = await gitRepository(join(scratch.path, `repo-${++count}`))
    return platform.api.create({ repo: repo.path, task: 'Fill', agent: { name: 'command', command } })
  }
  const run = async (command: string): ReturnType<PlatformProcess['api']['run']> =>
    platform.api.untilEnded(await create(command))

  const ready = async (): Promise<string> => {
    const answer = await platform.api.request('GET', '/readyz')
    return `${answer.status} ${answer.text}`
  }
  const isRoomy = (): Promise<boolean> => waitUntil('there is room again', async () => (await ready()) === '200 ok')

  it('of the whole platform: the agent that fills it is ended, its work is kept, and everything goes on', async () => {
    await startOn('.', '220m', '0711')
    await waitUntil('the reserve is there', () => existsSync(join(platform.dataDir, 'reserve')))
    const repo = await gitRepository(join(scratch.path, 'kept'))
    const command = 'echo kept > kept.txt; head -c 400000000 /dev/zero > $HOME/big; sleep 600'
    const id = await platform.api.create({ repo: repo.path, task: 'Fill', agent: { name: 'command', command } })
    const said = await waitUntil('/readyz says so', async () => (await ready()).startsWith('503') && ready())
    expect(said).toContain('DiskFull: the disk of')
    expect((await platform.api.request('GET', '/tasks')).status).toBe(200)
    const refused = await platform.api.request('POST', '/tasks', { body: { repo: repo.path, task: 'More' } })
    // Unless there is room again already.
    if (refused.status !== 201) expect(refused).toMatchObject({ status: 507, json: { error: { code: 'DiskFull' } } })

    const full = await platform.api.untilEnded(id)
    expect(full).toMatchObject({ status: 'FAILED', cause: { code: 'DiskFull' }, pushed: true })
    expect(full.cause?.message).toContain('The node was low on resource: ephemeral-storage.')
    expect(await repo.git('show', `${full.branch}:kept.txt`)).toBe('kept')
    await isRoomy()
    expect(await run('echo small > small.txt')).toMatchObject({ status: 'SUCCEEDED' })
    await waitUntil('the reserve is back', () => existsSync(join(platform.dataDir, 'reserve')))
  })

  it('of the whole platform, filled by files of the work tree: commits and small files are kept, the large one is named', async () => {
    await startOn('.', '220m', '0711')
    await waitUntil('the reserve is there', () => existsSync(join(platform.dataDir, 'reserve')))
    const repo = await gitRepository(join(scratch.path, 'kept'), { 'gone.txt': 'gone\n', 'edited.txt': 'before\n' })
    const command = [
      'echo committed > committed.txt; git add -A; git commit -qm "The first half"',
      'echo after > edited.txt; rm gone.txt; mkdir -p "a b"; echo loose > "a b/loose.txt"',
      'head -c 400000000 /dev/urandom > big.bin; sleep 600',
    ].join('\n')
    const full = await platform.api.run({ repo: repo.path, task: 'Fill', agent: { name: 'command', command } })
    expect(full, JSON.stringify(full)).toMatchObject({ status: 'FAILED', cause: { code: 'DiskFull' }, pushed: true })
    expect(full.warnings).toMatchObject([
      {
        code: 'NoRoomLeft',
        path: 'big.bin',
        message: expect.stringContaining('it is gone with its sandbox') as string,
      },
    ])
    const branch = full.branch ?? ''
    expect(await repo.git('log', '--format=%s', `main..${branch}`)).toMatch(/\nThe first half$/)
    expect((await repo.git('ls-tree', '-r', '-z', '--name-only', branch)).split('\0').filter(Boolean).sort()).toEqual(
      [
        'a b/loose.txt',
        'committed.txt',
        'edited.txt',
        ...(await repo.git('ls-tree', '--name-only', 'main')).split('\n'),
      ]
        .filter((name, index, all) => name !== 'gone.txt' && all.indexOf(name) === index)
        .sort(),
    )
    expect(await repo.git('show', `${branch}:edited.txt`)).toBe('after')
    await isRoomy()
    expect(await run('echo small > small.txt')).toMatchObject({ status: 'SUCCEEDED' })
  })

  it('of the whole platform, whose inodes are used up by many small files: commits and some of the files are kept', async () => {
    await startOn('.', '220m,nr_inodes=9000', '0711')
    await waitUntil('the reserve is there', () => existsSync(join(platform.dataDir, 'reserve-inodes')))
    const repo = await gitRepository(join(scratch.path, 'kept'))
    const command = [
      'echo committed > committed.txt; git add -A; git commit -qm "The first half"; echo loose > a.txt; mkdir many',
      'i=0; while [ $i -lt 20000 ]; do echo $i > many/$i; i=$((i+1)); done 2> /dev/null; sleep 600',
    ].join('\n')
    const full = await platform.api.run({ repo: repo.path, task: 'Fill', agent: { name: 'command', command } })
    expect(full, JSON.stringify(full)).toMatchObject({ status: 'FAILED', cause: { code: 'DiskFull' }, pushed: true })
    expect(full.cause?.message).toContain('The node was low on resource: inodes.')
    const branch = full.branch ?? ''
    expect(await repo.git('log', '--format=%s', `main..${branch}`)).toMatch(/\nThe first half$/)
    expect(await repo.git('show', `${branch}:committed.txt`)).toBe('committed')
    expect(full.warnings?.map(({ code }) => code)).toContain('NoRoomLeft')
    await isRoomy()
    expect(await run('echo small > small.txt')).toMatchObject({ status: 'SUCCEEDED' })
    await waitUntil('the reserve is back', () => existsSync(join(platform.dataDir, 'reserve-inodes')))
  })

  it('of the whole platform, met by a start after kill -9: it starts, ends who fills the disk, and goes on', async () => {
    await startOn('.', '220m', '0711')
    await waitUntil('the reserve is there', () => existsSync(join(platform.dataDir, 'reserve')))
    const id = await create('echo go > $HOME/go; while :; do cat /dev/zero >> $HOME/big; done')
    await waitUntil('the agent runs', () =>
      readdirSync(join(platform.dataDir, 'pods')).some((uid) =>
        existsSync(join(platform.dataDir, 'pods', uid, 'home/go')),
      ),
    )
    await platform.kill9()
    await waitUntil('the disk is full', () => statfsSync(platform.dataDir).bavail === 0)
    await platform.restart()
    expect(await platform.api.untilEnded(id)).toMatchObject({ status: 'FAILED', cause: { code: 'DiskFull' } })
    await isRoomy()
    expect(await run('echo small > small.txt')).toMatchObject({ status: 'SUCCEEDED' })
  })

  if (isFullSize)
    it('of the whole platform by other files: a start says how much is missing and what takes the space', async () => {
      await startOn('.', '64m', '0711')
      expect(await platform.stop()).toBe(0)
      const filler = join(platform.dataDir, 'mirrors', 'filler')
      expect(() => writeFileSync(filler, Buffer.alloc(70 * 2 ** 20))).toThrow('ENOSPC')
      rmSync(join(platform.dataDir, 'reserve'), { force: true })
      expect(() => writeFileSync(`${filler}-2`, Buffer.alloc(10 * 2 ** 20))).toThrow('ENOSPC')
      await expect(platform.restart()).rejects.toThrow(/the disk of .* is full: 0\.\d MiB free, a start needs/)
      expect(platform.output()).toMatch(/Free space on that disk; the data directory holds mirrors \d+ MiB/)
      rmSync(filler)
      rmSync(`${filler}-2`)
      await platform.restart()
      expect(await run('echo small > small.txt')).toMatchObject({ status: 'SUCCEEDED' })
    })

  if (isFullSize)
    it('of the sandboxes ends the task as DiskFull; the platform goes on', async () => {
      await startOn('pods', '24m', '0711')
      const full = await run('head -c 60000000 /dev/urandom > big.bin')
      expect({ ...full.cause, status: full.status }).toMatchObject({ status: 'FAILED', code: 'DiskFull' })
      expect((await platform.api.request('GET', '/readyz')).status).toBe(200)
      expect(await run('echo small > small.txt')).toMatchObject({ status: 'SUCCEEDED' })
    })

  const onlySandboxes = { of: 'the sandboxes', part: 'pods', size: '24m', fills: 'head -c 60000000 /dev/urandom > big' }
  it.each([
    { of: 'the whole platform', part: '.', size: '220m', fills: 'head -c 400000000 /dev/zero > big; sleep 600' },
    ...(isFullSize ? [onlySandboxes] : []),
  ])('of $of, met by an environment’s build: DiskFull, nothing is left of it, the next build works', async (disk) => {
    await startOn(disk.part, disk.size, '0711')
    const repo = await gitRepository(join(scratch.path, 'built'), {
      'setup.sh': disk.fills,
      '.gitignore': 'big\n',
      '.corral/environment.yaml': 'version: 1\nsetup: sh setup.sh\n',
    })
    const task = { repo: repo.path, task: 'Look', agent: { name: 'command', command: 'cat big' } }
    const full = await platform.api.run(task)
    expect(full, JSON.stringify(full.cause)).toMatchObject({ status: 'FAILED', cause: { code: 'DiskFull' } })
    await isRoomy()
    const left = (directory: string) => readdirSync(join(platform.dataDir, directory), { recursive: true }).map(String)
    expect(left('snapshots').filter((path) => path.endsWith('big'))).toEqual([])
    await waitUntil('the build’s own files are gone', () => !left('pods').some((path) => path.endsWith('repo/big')))
    writeFileSync(join(repo.path, 'setup.sh'), 'echo small > big')
    await repo.git('commit', '--quiet', '--all', '-m', 'smaller')
    const next = await platform.api.run(task)
    expect(next, JSON.stringify(next.cause)).toMatchObject({ status: 'SUCCEEDED' })
    // Sandboxes on a disk of their own cannot be moved to where snapshots are kept: such a task sets itself up.
    const events = JSON.stringify(await platform.api.allEvents(next.id))
    expect(events).toContain(disk.part === '.' ? 'set up already: snapshot' : 'cross-device link')
  })

  if (isFullSize)
    it('of the sandboxes is said of the pod that waits for room, which starts once there is some', async () => {
      await startOn('pods', '24m', '0711')
      const filler = join(mounted!, 'filler')
      const fill = (): void => expect(() => writeFileSync(filler, Buffer.alloc(25 * 2 ** 20))).toThrow('ENOSPC')
      fill()
      const id = await create('echo small > small.txt')
      const kube = await platform.kube()
      await waitUntil('an event says it', async () => {
        const { items } = await kube.list(Events, { namespace: 'corral' })
        return items.some(
          ({ reason, message }) => reason === 'FailedCreatePodSandBox' && /disk.*full/.test(message ?? ''),
        )
      })
      rmSync(filler)
      expect(await platform.api.untilEnded(id)).toMatchObject({ status: 'SUCCEEDED' })
      fill()
      await create('sleep 60')
      expect(await platform.stop()).toBe(0)
    })

  if (isFullSize)
    it('of the task records ends the task as DiskFull, with its record; the platform goes on', async () => {
      await startOn('tasks', '2m', '0700')
      const full = await run('head -c 8000000 /dev/urandom | base64; echo done > done.txt')
      expect(full).toMatchObject({ status: 'FAILED', cause: { code: 'DiskFull' } })
      expect((await platform.api.request('GET', '/readyz')).status).toBe(200)
      const { metadata } = await (await platform.kube()).get(AgentTasks, { namespace: 'corral', name: full.id })
      const directory = join(platform.dataDir, 'tasks', metadata.uid)
      // Where not even the last event found room, who follows is let go all the same.
      truncateSync(join(directory, 'events.ndjson'))
      expect(await platform.api.allEvents(full.id, { follow: true })).toEqual([])
      rmSync(directory, { recursive: true })
      expect(await run('echo small > small.txt')).toMatchObject({ status: 'SUCCEEDED' })
    })
})

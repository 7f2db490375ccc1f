import { execFileSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskView } from '@corral/protocol'
import { AgentTasks, SandboxClaims } from '@corral/resources'
import {
  type GitFixture,
  gitRepository,
  hangMs,
  isFullSize,
  type PlatformProcess,
  startPlatformProcess,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let platform: PlatformProcess
let repo: GitFixture
beforeAll(async () => {
  platform = await startPlatformProcess()
  repo = await gitRepository(join(platform.directory, 'repo'))
})
afterAll(() => platform?.[Symbol.asyncDispose]())

const run = (command: string, more: object = {}, timeoutMs = hangMs): Promise<TaskView> =>
  platform.api.run({ repo: repo.path, task: 'Work', agent: { name: 'command', command }, ...more }, { timeoutMs })
const claimOf = async ({ id }: TaskView): Promise<boolean> =>
  (await (await platform.kube()).find(SandboxClaims, { namespace: 'corral', name: id })) !== undefined

/** The artifact as a file. */
async function artifact({ id }: TaskView, name: string): Promise<string> {
  const { url, token } = platform
  const answer = await fetch(`${url}/tasks/${id}/artifacts/${name}`, { headers: { authorization: `Bearer ${token}` } })
  expect(answer.status).toBe(200)
  const path = join(platform.directory, `${id}-${name}`)
  writeFileSync(path, Buffer.from(await answer.arrayBuffer()))
  return path
}

describe('work that cannot become a branch', () => {
  it('is kept as an archive of the files, .git included, and the sandbox may go', async () => {
    const deep = 'p=.; i=0; while [ $i -lt 210 ]; do p=$p/d; i=$((i+1)); done; mkdir -p $p; echo deep > $p/x'
    const task = await run(`echo mine > mine.txt; git add mine.txt; git commit -qm mine; ${deep}`)
    expect(task).toMatchObject({ status: 'FAILED', cause: { code: 'ResultTooLarge' }, artifacts: ['work-tree.tar'] })
    expect(task.cause?.message).toContain('its files are kept as the artifact work-tree.tar')
    const tree = join(platform.directory, 'unpacked')
    execFileSync('sh', ['-c', 'mkdir "$1" && tar -xf "$2" -C "$1"', 'sh', tree, await artifact(task, 'work-tree.tar')])
    expect(
      execFileSync('git', ['-c', 'safe.directory=*', '-C', tree, 'log', '-1', '--format=%s'], { encoding: 'utf8' }),
    ).toBe('mine\n')
    expect(execFileSync('find', [tree, '-name', 'x', '-size', '5c'], { encoding: 'utf8' })).toContain('/d/x')
    await waitUntil('the sandbox is given back', async () => !(await claimOf(task)))
  })

  it('is its files in one commit where its commits are refused, which stay as they are in a bundle', async () => {
    const bad = String.raw`c=$(printf 'tree %s\nparent %s\nauthor A <a@b 1 +0000\ncommitter A <a@b> 1 +0000\n\nbad\n' "$(git write-tree)" "$(git rev-parse HEAD)" | git hash-object --literally -t commit -w --stdin); git reset -q --hard $c`
    const task = await run(
      `${bad}; echo mine > mine.txt; git add mine.txt; git commit -qm after; echo loose > loose.txt`,
    )
    expect(task, JSON.stringify(task.cause)).toMatchObject({ status: 'SUCCEEDED', outcome: 'changes', pushed: true })
    expect(task.warnings?.map(({ code }) => code)).toEqual(['CommitsNotAccepted'])
    expect(task.warnings?.[0]?.message).toContain('badEmail')
    expect(await repo.git('rev-parse', `${task.branch}^`)).toBe(task.base_commit)
    expect(await repo.git('ls-tree', '--name-only', task.branch!)).toBe('README.md\nloose.txt\nmine.txt')
    const heads = await repo.git('bundle', 'list-heads', await artifact(task, 'rejected.bundle'))
    expect(heads).toContain('refs/heads/corral-result')
  })

  it('is pushed without a file that no result can hold, and the sandbox is kept with it', async () => {
    const task = await run('truncate -s 3G disk.img; echo mine > mine.txt')
    expect(task, JSON.stringify(task.cause)).toMatchObject({ status: 'SUCCEEDED', outcome: 'changes', pushed: true })
    expect(task.warnings).toMatchObject([{ code: 'FileTooLarge', path: 'disk.img' }])
    expect(await repo.git('ls-tree', '--name-only', task.branch!)).toBe('README.md\nmine.txt')
    const found = await platform.corral([
      'task',
      'shell',
      task.id,
      '--',
      'stat',
      '-c',
      '%s',
      '/workspace/repo/disk.img',
    ])
    expect(found).toMatchObject({ code: 0, stdout: `${3 * 2 ** 30}\n` })
    expect((await platform.api.request('DELETE', `/tasks/${task.id}`)).status).toBeLessThan(300)
    await waitUntil('the sandbox is given back', async () => !(await claimOf(task)))
  })

  if (isFullSize)
    it('is pushed without a file that made its history too large, which is in an archive with the commits', async () => {
      const large = 'head -c 540M /dev/urandom > disk.img'
      const task = await run(
        `git config core.compression 0; ${large}; echo mine > mine.txt; git add .; git commit -qm all; echo more > more.txt`,
        {},
        5 * hangMs,
      )
      expect(task, JSON.stringify(task.cause)).toMatchObject({ status: 'SUCCEEDED', outcome: 'changes', pushed: true })
      expect(task.warnings?.map(({ code }) => code).sort()).toEqual(['CommitsNotAccepted', 'FileTooLarge'])
      expect(await repo.git('ls-tree', '--name-only', task.branch!)).toBe('README.md\nmine.txt\nmore.txt')
      expect(task.artifacts).toEqual(['work-tree.tar'])
      await waitUntil('the sandbox is given back', async () => !(await claimOf(task)))
    })

  it('stays in its sandbox where not even an archive can be made, until the task is deleted', async () => {
    const task = await run('echo mine > ../aside.txt; cd ..; rm -rf repo')
    expect(task).toMatchObject({ status: 'FAILED', cause: { code: 'ResultFailed' } })
    expect(task.cause?.message).toMatch(/its files are in the sandbox .*, which is kept until the task is deleted/)
    const found = await platform.corral(['task', 'shell', task.id, '--', 'cat', '/workspace/aside.txt'])
    expect(found).toMatchObject({ code: 0, stdout: 'mine\n' })
    expect(await claimOf(task)).toBe(true)
    expect((await platform.api.request('DELETE', `/tasks/${task.id}`)).status).toBeLessThan(300)
    await waitUntil('the sandbox is given back', async () => !(await claimOf(task)))
  })

  it('is the last checkpoint where the agent deleted the work tree after it', async () => {
    const wait = 'while [ ! -f ../go ]; do sleep 0.2; done'
    const agent = { name: 'command', command: `echo mine > mine.txt; ${wait}; cd ..; rm -rf repo` } as const
    const id = await platform.api.create({ repo: repo.path, task: 'Work', agent, checkpoint_seconds: 1 })
    const { metadata } = await (await platform.kube()).get(AgentTasks, { namespace: 'corral', name: id })
    const checkpoint = join(platform.dataDir, 'tasks', metadata.uid, 'checkpoints', 'result.bundle')
    await waitUntil('a checkpoint', () => existsSync(checkpoint))
    expect((await platform.corral(['task', 'shell', id, '--', 'touch', '/workspace/go'])).code).toBe(0)
    const task = await platform.api.untilEnded(id)
    expect(task, JSON.stringify(task.cause)).toMatchObject({ status: 'FAILED', outcome: 'partial', pushed: true })
    expect(task.cause?.code).toBe('ResultFailed')
    expect(await repo.show(task.branch!, 'mine.txt')).toBe('mine')
  })
})

import { join } from 'node:path'
import type { CreateTaskRequest, TaskEvent, TaskView } from '@corral/protocol'
import { AgentTasks, Pods, SandboxClaims } from '@corral/resources'
import {
  cradlePid,
  type GitFixture,
  gitRepository,
  isFullSize,
  type PlatformProcess,
  startPlatformProcess,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let platform: PlatformProcess
let count = 0
beforeAll(async () => {
  platform = await startPlatformProcess({ args: ['--max-held', '2', '--max-tasks', '2'] })
})
afterAll(() => platform?.[Symbol.asyncDispose]())

const namespace = 'corral'
const repository = (): Promise<GitFixture> =>
  gitRepository(join(platform.directory, `repo-${++count}`), { '.gitignore': 'cache.txt\n', 'base.txt': 'base\n' })

/** Says what it finds, leaves its prompt in a file, without a commit of its own, and what git ignores in another. */
const addsLine =
  'cat cache.txt 2> /dev/null; git status --short; echo "$CORRAL_PROMPT" >> said.txt; echo "cached by $CORRAL_PROMPT" >> cache.txt'
const held = (repo: GitFixture, more: Partial<CreateTaskRequest> = {}): Promise<TaskView> =>
  platform.api.run({
    ...{ repo: repo.path, task: 'one', agent: { name: 'command', command: addsLine }, hold_sandbox_seconds: 600 },
    ...more,
  })
async function post(id: string, task: string): Promise<string> {
  const answer = await platform.api.request('POST', `/tasks/${id}/messages`, { body: { task } })
  expect(answer).toMatchObject({ status: 201 })
  return (answer.json as { id: string }).id
}
const send = async (id: string, task: string): Promise<TaskView> => platform.api.untilEnded(await post(id, task))
const claimOf = async (name: string) => (await platform.kube()).find(SandboxClaims, { namespace, name })
const untilGone = (id: string): Promise<unknown> =>
  waitUntil(`the claim ${id} is gone`, async () => (await claimOf(id)) === undefined)
const release = (id: string) => platform.api.request('POST', `/tasks/${id}/release`)
/** Lets everything go that a task of the thread holds. */
const tidy = async (...ids: string[]): Promise<void> => {
  for (const id of ids) await release(id)
}
const logsOf = async (id: string): Promise<string> => (await platform.api.request('GET', `/tasks/${id}/logs`)).text
const stagesOf = async (id: string): Promise<string[]> => {
  const all: TaskEvent[] = []
  for await (const event of platform.api.events(id)) all.push(event)
  return all.flatMap((event) =>
    event.type === 'stage' ? [`${event.stage} ${event.state}: ${event.detail ?? ''}`] : [],
  )
}

describe('a sandbox that is held after its task', () => {
  it('is taken over by the follow-up: same pod, work tree and processes in place, nothing cloned or set up', async () => {
    const repo = await repository()
    const setup = 'echo set-up >> cache.txt; (sleep 1000 & echo $! > ../server.pid)'
    const one = await held(repo, { setup })
    expect(one).toMatchObject({ status: 'SUCCEEDED', sandbox: { held_until: expect.any(String) } })
    const leftMs = Date.parse(one.sandbox!.held_until!) - Date.parse(one.times!.finished_at!)
    expect(leftMs).toBe(600_000)
    const text = await platform.corral(['task', 'get', one.id])
    expect(text.stdout).toContain(`held until ${one.sandbox!.held_until}`)

    const two = await send(one.id, 'two')
    expect(two, JSON.stringify(two.cause)).toMatchObject({
      ...{ status: 'SUCCEEDED', continues: one.id, branch: one.branch, base_commit: one.commit },
      sandbox: { pod: one.sandbox!.pod, claim: one.id, taken_from: one.id, held_until: expect.any(String) },
    })
    // What git ignores is still there, and the work of the first is committed, not lying about.
    expect(await logsOf(two.id)).toBe('set-up\ncached by one\n')
    expect(await repo.show(one.branch!, 'said.txt')).toBe('one\ntwo')
    expect(await repo.git('log', '--format=%s', `main..${one.branch}`)).toBe('two\none')
    const stages = await stagesOf(two.id)
    expect(stages).toContain(`claim started: sandbox held by ${one.id}`)
    expect(stages.join('\n')).toContain(`repository finished: the work tree of ${one.id} at`)
    expect(stages.join('\n')).not.toMatch(/setup (started|finished)/)
    const alive = await platform.corral(['task', 'shell', two.id, '--', 'sh', '-c', 'kill -0 $(cat ../server.pid)'])
    expect(alive).toMatchObject({ code: 0 })

    const three = await send(two.id, 'three')
    expect(three).toMatchObject({ status: 'SUCCEEDED', sandbox: { pod: one.sandbox!.pod, claim: one.id } })
    expect(await repo.show(one.branch!, 'said.txt')).toBe('one\ntwo\nthree')
    // The former ones are as they were, but for the sandbox they no longer hold.
    const { sandbox, ...rest } = one
    const { held_until: _, ...sandboxThen } = sandbox!
    expect(await platform.api.get(one.id)).toEqual({ ...rest, sandbox: sandboxThen })
    await tidy(three.id)
    await untilGone(one.id)
  })

  it('goes to one of two follow-ups; the other gets a sandbox and a branch of its own', async () => {
    const repo = await repository()
    const one = await held(repo)
    const [left, right] = await Promise.all([send(one.id, 'left'), send(one.id, 'right')])
    expect([left.status, right.status], JSON.stringify([left.cause, right.cause])).toEqual(['SUCCEEDED', 'SUCCEEDED'])
    expect([left.sandbox!.taken_from, right.sandbox!.taken_from].filter(Boolean)).toEqual([one.id])
    expect(left.sandbox!.pod).not.toBe(right.sandbox!.pod)
    expect(left.branch).not.toBe(right.branch)
    expect(await repo.show(left.branch!, 'said.txt')).toBe('one\nleft')
    expect(await repo.show(right.branch!, 'said.txt')).toBe('one\nright')
    await tidy(left.id, right.id)
  })

  it('is let go with `corral task release`, and a follow-up begins in another one', async () => {
    const repo = await repository()
    const one = await held(repo)
    expect(await platform.corral(['task', 'release', one.id])).toMatchObject({ code: 0 })
    expect((await platform.api.get(one.id)).sandbox).not.toHaveProperty('held_until')
    await untilGone(one.id)
    expect(await release(one.id)).toMatchObject({ status: 202 })
    const two = await send(one.id, 'two')
    expect(two).toMatchObject({ status: 'SUCCEEDED', branch: one.branch, sandbox: { claim: two.id } })
    expect(await repo.show(one.branch!, 'said.txt')).toBe('one\ntwo')
    await tidy(two.id)
    const never = await held(repo, { hold_sandbox_seconds: 0, new_branch: 'never' })
    expect(never.sandbox).not.toHaveProperty('held_until')
    expect(await release(never.id)).toMatchObject({ status: 409, json: { error: { code: 'SandboxNotHeld' } } })
  })

  if (isFullSize)
    it('holds no place, and the oldest goes when more are held than may be', async () => {
      const repo = await repository()
      const ids: string[] = []
      for (const branch of ['a', 'b', 'c']) ids.push((await held(repo, { new_branch: branch })).id)
      await untilGone(ids[0]!)
      expect((await platform.api.get(ids[0]!)).sandbox).not.toHaveProperty('held_until')
      for (const id of ids.slice(1)) expect((await platform.api.get(id)).sandbox).toHaveProperty('held_until')
      // With as many held as may run, others still run.
      expect(await held(repo, { new_branch: 'd', hold_sandbox_seconds: 0 })).toMatchObject({ status: 'SUCCEEDED' })
      await tidy(...ids.slice(1))
    })

  if (isFullSize)
    it('goes when its time is over, when its task is deleted, and not with a cancelled task', async () => {
      const repo = await repository()
      const short = await held(repo, { hold_sandbox_seconds: 1, new_branch: 'short' })
      await untilGone(short.id)
      expect((await platform.api.get(short.id)).sandbox).not.toHaveProperty('held_until')
      const deleted = await held(repo, { new_branch: 'deleted' })
      expect(await platform.corral(['task', 'rm', deleted.id])).toMatchObject({ code: 0 })
      expect(await claimOf(deleted.id)).toBeUndefined()
      const endless = { name: 'command', command: 'sleep 1000' }
      const id = await platform.api.create({ repo: repo.path, task: 'x', agent: endless, hold_sandbox_seconds: 600 })
      await waitUntil('the agent', async () => (await platform.api.get(id)).status === 'RUNNING')
      await platform.api.request('POST', `/tasks/${id}/cancel`)
      await platform.api.untilEnded(id)
      await untilGone(id)
    })

  if (isFullSize)
    it('that was lost costs nothing but time', async () => {
      const repo = await repository()
      const one = await held(repo)
      const kube = await platform.kube()
      await kube.delete(SandboxClaims, { namespace, name: one.id })
      const two = await send(one.id, 'two')
      expect(two).toMatchObject({ status: 'SUCCEEDED', branch: one.branch, sandbox: { claim: two.id } })
      // A pod that was replaced has nothing in it: the repository is brought in anew.
      await kube.delete(Pods, { namespace, name: two.sandbox!.pod! })
      const three = await send(two.id, 'three')
      expect(three, JSON.stringify(three.cause)).toMatchObject({ status: 'SUCCEEDED', branch: one.branch })
      expect(await repo.show(one.branch!, 'said.txt')).toBe('one\ntwo\nthree')
      await tidy(three.id)
    })

  const changes: {
    when: string
    command?: string
    change?(repo: GitFixture, one: TaskView): Promise<unknown>
    said: string
  }[] = [
    {
      when: 'somebody added a commit to the branch',
      change: async (repo, one) => {
        const tree = join(platform.directory, `tree-${++count}`)
        await repo.git('worktree', 'add', '-q', tree, one.branch!)
        await repo.git('-C', tree, 'commit', '-q', '--allow-empty', '-m', 'mine')
        await repo.git('worktree', 'remove', tree)
      },
      said: 'one\ntwo',
    },
    {
      when: 'the branch was deleted',
      change: (repo, one) => repo.git('branch', '-D', one.branch!),
      said: 'one\ntwo',
    },
    {
      when: 'the agent ended on another branch than its work',
      command: `${addsLine}; git add said.txt; git commit -qm own; git checkout -q main || true`,
      said: 'one\ntwo',
    },
    {
      when: 'the agent left other branches, which are not work of the follow-up',
      command: `${addsLine}; git add said.txt; git commit -qm own; git checkout -qb side; git commit -q --allow-empty -m side; git checkout -q -`,
      said: 'one\ntwo',
    },
  ]
  it.each(changes.filter(({ when }) => isFullSize || when === 'the branch was deleted'))(
    '$when',
    async ({ command = addsLine, change, said }) => {
      const repo = await repository()
      const one = await held(repo, { agent: { name: 'command', command } })
      await change?.(repo, one)
      const tip = await repo.git('rev-parse', '--verify', '--quiet', one.branch!).catch(() => one.commit)
      const two = await send(one.id, 'two')
      expect(two, JSON.stringify(two.cause)).toMatchObject({
        status: 'SUCCEEDED',
        branch: one.branch,
        base_commit: tip,
      })
      expect(await repo.show(one.branch!, 'said.txt')).toBe(said)
      await tidy(two.id)
    },
  )

  it('survives kill -9 while it is held and while it changes hands; after a polite stop it is gone', async () => {
    const repo = await repository()
    const one = await held(repo)
    await platform.kill9()
    await platform.restart()
    const id = await post(one.id, 'two')
    const kube = await platform.kube()
    const { metadata } = await kube.get(AgentTasks, { namespace, name: id })
    await waitUntil(
      'the follow-up has the claim',
      async () => (await claimOf(one.id))?.metadata.ownerReferences?.[0]?.uid === metadata.uid,
      { intervalMs: 2 },
    )
    await platform.kill9()
    await platform.restart()
    const two = await platform.api.untilEnded(id)
    expect(two, JSON.stringify(two.cause)).toMatchObject({
      ...{ status: 'SUCCEEDED', branch: one.branch },
      sandbox: { pod: one.sandbox!.pod, taken_from: one.id, held_until: expect.any(String) },
    })
    // The former may go: what it gave away is not its own any more.
    expect(await platform.corral(['task', 'rm', one.id])).toMatchObject({ code: 0 })
    expect(await claimOf(one.id)).toBeDefined()
    expect(await platform.corral(['down'])).toMatchObject({ code: 0 })
    await platform.stop()
    await waitUntil('the sandboxes have ended', () => cradlePid(platform.dataDir) === undefined)
    await platform.restart()
    const three = await send(two.id, 'three')
    expect(three, JSON.stringify(three.cause)).toMatchObject({ status: 'SUCCEEDED', branch: one.branch })
    expect(await repo.show(one.branch!, 'said.txt')).toBe('one\ntwo\nthree')
    await tidy(two.id, three.id)
    await waitUntil('every claim is gone', async () => {
      const { items } = await (await platform.kube()).list(SandboxClaims, { namespace })
      return items.length === 0
    })
  })
})

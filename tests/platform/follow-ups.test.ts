import { join } from 'node:path'
import type { CreateTaskRequest, TaskMessageRequest, TaskView } from '@corral/protocol'
import {
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
  platform = await startPlatformProcess()
})
afterAll(() => platform?.[Symbol.asyncDispose]())

const repository = (): Promise<GitFixture> => gitRepository(join(platform.directory, `repo-${++count}`))

/** Adds a line with its prompt and says what it found. */
const addsLine =
  'cat said.txt 2> /dev/null; echo "$CORRAL_PROMPT" >> said.txt; git add said.txt; git commit -qm "$CORRAL_PROMPT"'
const first = (repo: GitFixture, more: Partial<CreateTaskRequest> = {}): Promise<TaskView> =>
  platform.api.run({ repo: repo.path, task: 'one', agent: { name: 'command', command: addsLine }, ...more })

async function send(id: string, message: TaskMessageRequest): Promise<TaskView> {
  const answer = await platform.api.request('POST', `/tasks/${id}/messages`, { body: message })
  expect(answer).toMatchObject({ status: 201 })
  return platform.api.untilEnded((answer.json as { id: string }).id)
}
const diffOf = async (id: string): Promise<string> => (await platform.api.request('GET', `/tasks/${id}/diff`)).text

describe('a message to an ended task', () => {
  it('becomes a task of its own on the same branch, from the commit of the former', async () => {
    const repo = await repository()
    const one = await first(repo, { labels: { team: 'a' }, files: [{ path: 'hint.txt', content: 'hint' }] })
    const two = await send(one.id, { task: 'two' })
    expect(two).toMatchObject({
      status: 'SUCCEEDED',
      outcome: 'changes',
      continues: one.id,
      thread: one.id,
      branch: one.branch,
      base_branch: one.base_branch,
      base_commit: one.commit,
      labels: { team: 'a' },
    })
    expect(await repo.show(one.branch!, 'said.txt')).toBe('one\ntwo')
    expect(await diffOf(two.id)).toContain('+two')
    expect(await diffOf(two.id)).not.toContain('+one')
    const three = await send(two.id, { task: 'three', comments: [{ path: 'said.txt', line: 1, text: 'why?' }] })
    expect(three).toMatchObject({ continues: two.id, thread: one.id, base_commit: two.commit, branch: one.branch })
    expect(await repo.show(one.branch!, 'said.txt')).toContain('- said.txt:1\n  why?')
    expect(await platform.api.get(one.id)).toEqual(one)
  })

  if (isFullSize)
    it('a second one to the same task gets a branch of its own, from the same commit', async () => {
      const repo = await repository()
      const one = await first(repo)
      const [left, right] = await Promise.all([send(one.id, { task: 'left' }), send(one.id, { task: 'right' })])
      expect([left.status, right.status]).toEqual(['SUCCEEDED', 'SUCCEEDED'])
      const branches = [left.branch, right.branch].sort()
      expect(branches).toContain(one.branch)
      expect(new Set(branches).size).toBe(2)
      expect(await repo.show(left.branch!, 'said.txt')).toBe('one\nleft')
      expect(await repo.show(right.branch!, 'said.txt')).toBe('one\nright')
    })

  if (isFullSize)
    it('goes on after a task that changed nothing, from where the thread stands', async () => {
      const quiet = { name: 'command', command: `if [ "$CORRAL_PROMPT" = quiet ]; then exit 0; fi; ${addsLine}` }
      const repo = await repository()
      const begun = await platform.api.run({ repo: repo.path, task: 'quiet', agent: quiet })
      expect(begun.outcome).toBe('no_changes')
      const went = await send(begun.id, { task: 'loud' })
      expect(went).toMatchObject({ outcome: 'changes', branch: `corral/${begun.id}`, base_commit: begun.base_commit })
      const silent = await send(went.id, { task: 'quiet' })
      expect(silent).toMatchObject({ outcome: 'no_changes', base_commit: went.commit })
      const again = await send(silent.id, { task: 'louder' })
      expect(again).toMatchObject({ outcome: 'changes', branch: went.branch, base_commit: went.commit })
      expect(await repo.show(went.branch!, 'said.txt')).toBe('loud\nlouder')
    })

  const changes: { when: string; change(repo: GitFixture, one: TaskView): Promise<unknown>; holds: string }[] = [
    {
      when: 'the base branch moved',
      change: (repo) => repo.git('commit', '-q', '--allow-empty', '-m', 'moved'),
      holds: 'one\ntwo',
    },
    {
      when: 'its branch was deleted',
      change: (repo, one) => repo.git('branch', '-D', one.branch!),
      holds: 'one\ntwo',
    },
    {
      when: 'somebody added a commit to its branch',
      change: async (repo, one) => {
        const tree = join(platform.directory, `tree-${++count}`)
        await repo.git('worktree', 'add', '-q', tree, one.branch!)
        await repo.git('-C', tree, 'commit', '-q', '--allow-empty', '-m', 'mine')
        await repo.git('worktree', 'remove', tree)
      },
      holds: 'one\ntwo',
    },
  ]
  it.each(changes.slice(isFullSize ? 0 : -1))('works when $when', async ({ change, holds }) => {
    const repo = await repository()
    const one = await first(repo)
    await change(repo, one)
    const tip = await repo.git('rev-parse', '--verify', '--quiet', one.branch!).catch(() => one.commit)
    const two = await send(one.id, { task: 'two' })
    expect(two, JSON.stringify(two.cause)).toMatchObject({ status: 'SUCCEEDED', branch: one.branch, base_commit: tip })
    expect(await repo.show(one.branch!, 'said.txt')).toBe(holds)
  })

  if (isFullSize)
    it('is refused before the agent runs where its branch was replaced by other work', async () => {
      const repo = await repository()
      const one = await first(repo)
      await repo.git('commit', '-q', '--allow-empty', '-m', 'elsewhere')
      await repo.git('branch', '-f', one.branch!, 'HEAD')
      const two = await send(one.id, { task: 'two' })
      expect(two).toMatchObject({ status: 'FAILED', cause: { code: 'BranchExists' } })
      expect(two.times?.running_at).toBeUndefined()
      const own = await send(one.id, { task: 'two', new_branch: 'mine' })
      expect(own).toMatchObject({ status: 'SUCCEEDED', branch: 'mine', base_commit: one.commit })
    })

  it('can be retried, and the same key answers the same task', async () => {
    const repo = await repository()
    const one = await first(repo)
    const headers = { 'idempotency-key': `again-${one.id}` }
    const body = { task: 'two' }
    const sent = await platform.api.request('POST', `/tasks/${one.id}/messages`, { body, headers })
    const repeated = await platform.api.request('POST', `/tasks/${one.id}/messages`, { body, headers })
    expect(repeated.json).toMatchObject({ id: (sent.json as { id: string }).id })
    const two = await platform.api.untilEnded((sent.json as { id: string }).id)
    const retried = await platform.corral(['task', 'retry', two.id, '--from', 'start', '--branch', 'again', '--json'])
    const three = await platform.api.untilEnded((JSON.parse(retried.stdout) as { id: string }).id)
    expect(three).toMatchObject({ status: 'SUCCEEDED', continues: one.id, retry_of: two.id, branch: 'again' })
    expect(await repo.show('again', 'said.txt')).toBe('one\ntwo')
  })

  it('is sent with `corral task send`, which can follow it', async () => {
    const repo = await repository()
    const one = await first(repo)
    const { code, stdout } = await platform.corral(['task', 'send', one.id, 'two', '--watch'])
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining(`branch ${one.branch}`) })
    const unknown = await platform.corral(['task', 'send', 'task-nothere', 'two'])
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('there is no task "task-nothere"') })
  })

  it('that has not ended is queued, and becomes its follow-up with what else was said', async () => {
    const repo = await repository()
    const waits = 'while [ ! -e ../go ]; do sleep 0.1; done; '
    const command = `if [ "$CORRAL_PROMPT" = one ]; then ${waits}fi; ${addsLine}`
    const id = await platform.api.create({ repo: repo.path, task: 'one', agent: { name: 'command', command } })
    for (const task of ['two', 'three'])
      expect(await platform.api.request('POST', `/tasks/${id}/messages`, { body: { task } })).toMatchObject({
        status: 202,
        json: { delivery: 'queued' },
      })
    await waitUntil('the agent', async () => (await platform.api.get(id)).status === 'RUNNING')
    expect(await platform.corral(['task', 'shell', id, '--', 'touch', '/workspace/go'])).toMatchObject({ code: 0 })
    const one = await platform.api.untilEnded(id)
    expect(one.status).toBe('SUCCEEDED')
    const next = await waitUntil('the follow-up', async () => {
      const { json } = await platform.api.request('GET', '/tasks?limit=20')
      return (json as { tasks: TaskView[] }).tasks.find(({ continues }) => continues === id)
    })
    expect(await platform.api.untilEnded(next.id)).toMatchObject({ status: 'SUCCEEDED', branch: one.branch })
    expect(await repo.show(one.branch!, 'said.txt')).toBe('one\ntwo\n\nthree')
  })

  const length = isFullSize ? 30 : 3
  it(`a thread of ${length} follow-ups keeps its branch`, async () => {
    const repo = await repository()
    let last = await first(repo)
    const { branch } = last
    for (let turn = 2; turn <= length + 1; turn++) last = await send(last.id, { task: `turn ${turn}` })
    expect(last).toMatchObject({ status: 'SUCCEEDED', branch })
    expect((await repo.show(branch!, 'said.txt')).split('\n')).toHaveLength(length + 1)
  })
})

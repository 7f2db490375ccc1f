import { join } from 'node:path'
import type { GroupView, TaskView } from '@corral/protocol'
import { AgentTasks } from '@corral/resources'
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

interface Created {
  id: string
  group: string
  tasks: string[]
}

const namespace = 'corral'
const repository = (): Promise<GitFixture> => gitRepository(join(platform.directory, `repo-${++count}`))
const writes = (text: string) => ({ agent: { name: 'command', command: `echo ${text} > try.txt` } })
const request = (repo: GitFixture, more: object = {}) => ({
  ...{ repo: repo.path, task: 'Try it', new_branch: 'wanted', checks: [{ name: 'short', command: 'test -s try.txt' }] },
  attempts: [writes('left'), writes('right'), { agent: { name: 'command', command: 'true' } }],
  ...more,
})
const create = (body: object, key?: string) =>
  platform.api.request('POST', '/tasks', { body, ...(key ? { headers: { 'idempotency-key': key } } : {}) })
const compare = async (name: string): Promise<GroupView> =>
  (await platform.api.request('GET', `/groups/${name}`)).json as GroupView
const pick = (id: string, body?: object) => platform.api.request('POST', `/tasks/${id}/pick`, body ? { body } : {})
async function ended(body: object): Promise<{ group: string; tasks: TaskView[] }> {
  const answer = (await create(body)).json as Created
  const tasks = await Promise.all(answer.tasks.map((id) => platform.api.untilEnded(id)))
  return { group: answer.group, tasks }
}
const allTasks = async () => (await (await platform.kube()).list(AgentTasks, { namespace })).items

describe('several attempts', () => {
  it('work on branches of their own, are compared, and one is picked', async () => {
    const repo = await repository()
    const { group, tasks } = await ended(request(repo))
    const [left, right, none] = tasks
    expect(tasks.map(({ branch }) => branch)).toEqual(['wanted-1', 'wanted-2', undefined])
    expect(left).toMatchObject({
      group: { name: group, number: 1, size: 3, branch: 'wanted' },
      labels: { 'corral.dev/group': group },
    })
    const listed = await platform.api.request('GET', `/tasks?group=${group}`)
    expect((listed.json as { tasks: TaskView[] }).tasks.map(({ id }) => id).sort()).toEqual(
      tasks.map(({ id }) => id).sort(),
    )
    expect(await compare(group)).toMatchObject({
      ...{ name: group, branch: 'wanted' },
      tasks: [{ id: left!.id, diff_stat: { insertions: 1 } }, { id: right!.id }, { outcome: 'no_changes' }],
    })
    const table = await platform.corral(['task', 'compare', group])
    expect(table).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/1 file \+1 -0[\s\S]*to give one the branch wanted: /),
    })
    const json = await platform.corral(['task', 'compare', right!.id, '--json'])
    expect(JSON.parse(json.stdout)).toMatchObject({ name: group, tasks: [{}, {}, {}] })

    expect(await pick(none!.id)).toMatchObject({ status: 409, json: { error: { code: 'PickNotPossible' } } })
    const picked = await platform.corral(['task', 'pick', right!.id])
    expect(picked).toMatchObject({ code: 0, stdout: `wanted is at ${right!.commit!.slice(0, 12)} (${right!.id})\n` })
    expect(await repo.git('rev-parse', 'wanted')).toBe(right!.commit)
    expect(await repo.git('rev-parse', 'wanted-2')).toBe(right!.commit)
    const before = (await allTasks()).length
    expect(await pick(right!.id)).toMatchObject({ status: 201 })
    expect(await pick(left!.id)).toMatchObject({ status: 409, json: { error: { code: 'AlreadyPicked' } } })
    expect((await allTasks()).length).toBe(before)
    expect((await compare(group)).picked).toMatchObject({ task: right!.id, status: 'SUCCEEDED' })
    expect((await platform.corral(['task', 'compare', group])).stdout).toContain('* is on wanted')

    expect(await platform.corral(['task', 'pick', left!.id, '--force'])).toMatchObject({ code: 0 })
    expect(await repo.git('rev-parse', 'wanted')).toBe(left!.commit)
    expect((await compare(group)).picked).toMatchObject({ task: left!.id })
    expect((await compare(group)).tasks).toHaveLength(3)
  })

  if (isFullSize)
    it('are picked by two at once: one of them is it', async () => {
      const repo = await repository()
      const { group, tasks } = await ended(request(repo, { new_branch: undefined }))
      const answers = await Promise.all(tasks.slice(0, 2).map(({ id }) => pick(id)))
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409])
      const winner = answers.findIndex(({ status }) => status === 201)
      expect(answers[1 - winner]!.json).toMatchObject({ error: { code: 'AlreadyPicked' } })
      await platform.api.untilEnded((answers[winner]!.json as { id: string }).id)
      expect(await repo.git('rev-parse', `corral/${group}`)).toBe(tasks[winner]!.commit)
    })

  if (isFullSize)
    it('a branch that somebody else wrote to is not moved, and can be picked again once it is out of the way', async () => {
      const repo = await repository()
      const { tasks } = await ended(request(repo))
      await repo.git('branch', 'wanted', 'HEAD')
      await repo.git('commit', '-q', '--allow-empty', '-m', 'mine')
      await repo.git('branch', '-f', 'wanted', 'HEAD')
      const refused = await platform.corral(['task', 'pick', tasks[0]!.id])
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('could not be picked') })
      expect(await repo.git('rev-parse', 'wanted')).toBe(await repo.git('rev-parse', 'HEAD'))
      await repo.git('branch', '-D', 'wanted')
      expect(await platform.corral(['task', 'pick', tasks[1]!.id])).toMatchObject({ code: 0 })
      expect(await repo.git('rev-parse', 'wanted')).toBe(tasks[1]!.commit)
    })

  it.each<{ when: string; body: object; code: string }>([
    {
      when: 'an agent of theirs is unknown',
      body: { attempts: [writes('a'), { agent: { name: 'nobody' } }] },
      code: 'UnknownAgent',
    },
    { when: 'there is only one', body: { attempts: [writes('a')] }, code: 'Invalid' },
    { when: 'a branch of theirs cannot be', body: { new_branch: 'x'.repeat(195) }, code: 'Invalid' },
  ])('none is made when $when', async ({ body, code }) => {
    const repo = await repository()
    const before = (await allTasks()).length
    expect((await create(request(repo, body))).json).toMatchObject({ error: { code } })
    expect((await allTasks()).length).toBe(before)
  })

  it('the same key answers the same ones, and what a crash left unmade is made', async () => {
    const repo = await repository()
    const key = `attempts-${repo.path}`
    const first = (await create(request(repo), key)).json as Created
    const again = await create(request(repo), key)
    expect(again).toMatchObject({ status: 201, json: { id: first.id, group: first.group, tasks: first.tasks } })
    expect((await create(request(repo, { task: 'Other' }), key)).json).toMatchObject({
      error: { code: 'IdempotencyKeyReused' },
    })
    await Promise.all(first.tasks.map((id) => platform.api.untilEnded(id)))
    // As a process leaves it that is killed behind the first write: one attempt, and not the note that all are there.
    const kube = await platform.kube()
    const { metadata, spec } = await kube.get(AgentTasks, { namespace, name: first.tasks[0]! })
    for (const id of first.tasks) expect(await platform.corral(['task', 'rm', id])).toMatchObject({ code: 0 })
    const { name, labels, finalizers } = metadata
    await kube.create(AgentTasks, { metadata: { name, namespace, labels: labels!, finalizers: finalizers! }, spec })
    const made = await waitUntil('all attempts', async () => {
      const { tasks } = await compare(first.group)
      return tasks.length === 3 && tasks
    })
    expect(made.map(({ id }) => id)).toEqual(first.tasks)
    await Promise.all(first.tasks.map((id) => platform.api.untilEnded(id)))
    // One that was taken away stays away.
    expect(await platform.corral(['task', 'rm', first.tasks[1]!])).toMatchObject({ code: 0 })
    await platform.kill9()
    await platform.restart()
    expect((await compare(first.group)).tasks.map(({ id }) => id)).toEqual([first.tasks[0], first.tasks[2]])
    expect(await platform.api.request('GET', '/groups/group-nothere')).toMatchObject({
      status: 404,
      json: { error: { code: 'GroupNotFound' } },
    })
  })

  it('are made with `corral run --attempts`, which waits for all of them', async () => {
    const repo = await repository()
    const args = ['--attempts', '2', '--branch', 'run', '--command', 'echo x > x.txt', '--repo', repo.path]
    const { code, stdout } = await platform.corral(['run', 'Try', ...args])
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('run-2') })
    const tooFew = await platform.corral(['run', 'x', '--agent', 'claude', '--agent', 'codex', '--attempts', '1'])
    expect(tooFew).toMatchObject({ code: 2, stderr: expect.stringContaining('--attempts 1: 2 agents are named') })
  })
})

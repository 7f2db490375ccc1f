import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { CreateTaskRequest, RetryTaskRequest, TaskView } from '@corral/protocol'
import { AgentTasks, Sandboxes } from '@corral/resources'
import {
  bareRemote,
  type GitFixture,
  type GitServer,
  gitRepository,
  isFullSize,
  type PlatformProcess,
  startGitServer,
  startPlatformProcess,
  type TemporaryDirectory,
  temporaryDirectory,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let scratch: TemporaryDirectory
let server: GitServer
let platform: PlatformProcess
beforeAll(async () => {
  scratch = temporaryDirectory()
  server = await startGitServer(join(scratch.path, 'served'), join(scratch.path, 'server'))
  platform = await startPlatformProcess({ env: server.environment })
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await server?.[Symbol.asyncDispose]()
  await scratch?.[Symbol.asyncDispose]()
})

let count = 0
const remote = (): Promise<GitFixture> => bareRemote(join(scratch.path, 'served', `remote-${++count}.git`))
const urlOf = (fixture: GitFixture): string => `${server.url}/${basename(fixture.path)}`
const hookOf = (fixture: GitFixture): string => join(fixture.path, 'hooks', 'pre-receive')
function setHook(fixture: GitFixture, isRefusing: boolean): void {
  writeFileSync(hookOf(fixture), `#!/bin/sh\necho "closed for today" >&2\nexit ${isRefusing ? 1 : 0}\n`)
  chmodSync(hookOf(fixture), 0o755)
}
const request = (repo: string, command: string, more: Partial<CreateTaskRequest> = {}): CreateTaskRequest => ({
  repo,
  task: 'Work',
  agent: { name: 'command', command },
  ...more,
})
async function retry(id: string, body?: RetryTaskRequest): Promise<TaskView> {
  const answer = await platform.api.request('POST', `/tasks/${id}/retry`, body ? { body } : {})
  expect(answer).toMatchObject({ status: 201 })
  return platform.api.untilEnded((answer.json as { id: string }).id)
}
const stagesOf = async (id: string): Promise<string[]> =>
  (await platform.api.allEvents(id)).flatMap((event) =>
    event.type === 'stage' ? [`${event.stage} ${event.state}`] : [],
  )

describe('retry', () => {
  it('of a refused push pushes the kept commits to the same branch, and no agent runs again', async () => {
    const fixture = await remote()
    setHook(fixture, true)
    const first = await platform.api.run(
      request(
        urlOf(fixture),
        'echo put aside >> README.md; git stash -q; date +%N > made.txt; git add .; git commit -qm mine',
      ),
    )
    expect(first).toMatchObject({ status: 'FAILED', cause: { code: 'PushRefused' }, artifacts: ['kept.bundle'] })
    expect(first.warnings).toMatchObject([{ code: 'StashKept' }])
    expect(first.cause?.hint).toContain('corral task retry')
    expect(first.pushed).toBeUndefined()
    setHook(fixture, false)
    const second = await retry(first.id)
    expect(second).toMatchObject({
      status: 'SUCCEEDED',
      outcome: 'changes',
      retry_of: first.id,
      retry_from: 'push',
      branch: first.new_branch ?? `corral/${first.id}`,
      commit: first.commit,
      base_commit: first.base_commit,
      pushed: true,
      diff_stat: first.diff_stat,
      artifacts: first.artifacts,
      warnings: first.warnings,
    })
    expect(await fixture.git('rev-parse', second.branch!)).toBe(first.commit)
    expect(await stagesOf(second.id)).toEqual(['result started', 'result finished', 'push started', 'push finished'])
    expect((await platform.api.request('GET', `/tasks/${second.id}/diff`)).text).toContain('made.txt')
    expect(await platform.api.get(first.id)).toEqual(first)
  })

  if (isFullSize)
    it('of a push to a branch that was taken meanwhile goes to another one', async () => {
      const repo = await gitRepository(join(scratch.path, `repo-${++count}`))
      const taken = 'echo x > x.txt; until [ -e go ]; do sleep 0.1; done; rm go'
      const id = await platform.api.create(request(repo.path, taken, { new_branch: 'wanted', files: [] }))
      const { sandbox } = await platform.api.untilPhase(id, 'RUNNING')
      await repo.git('checkout', '-q', '-b', 'wanted')
      await repo.git('commit', '-q', '--allow-empty', '-m', 'somebody else')
      await repo.git('checkout', '-q', 'main')
      await platform.corral(['sandbox', 'exec', sandbox?.name ?? '', '--', 'touch', '/workspace/repo/go'])
      const first = await platform.api.untilEnded(id)
      expect(first).toMatchObject({ status: 'FAILED', cause: { code: 'BranchExists' } })
      const again = await retry(id)
      expect(again).toMatchObject({ status: 'FAILED', cause: { code: 'BranchExists' }, retry_from: 'push' })
      const { code, stdout } = await platform.corral(['task', 'retry', id, '--branch', 'mine', '--json'])
      expect(code).toBe(0)
      const second = await platform.api.untilEnded((JSON.parse(stdout) as { id: string }).id)
      expect(second).toMatchObject({ status: 'SUCCEEDED', branch: 'mine', commit: first.commit })
      expect(await repo.show('mine', 'x.txt')).toBe('x')
    })

  it.each(isFullSize ? ['local', 'https'] : ['local'])(
    'of a failed agent replaces what it had pushed to its branch (%s)',
    async (kind) => {
      const fixture = kind === 'local' ? await gitRepository(join(scratch.path, `repo-${++count}`)) : await remote()
      const url = kind === 'local' ? fixture.path : urlOf(fixture)
      const command = 'date +%N > made.txt; exit 1'
      const first = await platform.api.run(request(url, command, { new_branch: 'feature' }))
      expect(first).toMatchObject({ status: 'FAILED', cause: { code: 'AgentFailed' }, pushed: true })
      const second = await retry(first.id)
      expect(second).toMatchObject({ cause: { code: 'AgentFailed' }, pushed: true, retry_from: 'agent' })
      expect(second.base_commit).toBe(first.base_commit)
      expect(second.commit).not.toBe(first.commit)
      expect(await fixture.git('rev-parse', 'feature')).toBe(second.commit)
      const third = await retry(second.id, { from: 'agent', keep_work: true })
      expect(await fixture.git('rev-parse', 'feature')).toBe(third.commit)
      expect(await fixture.git('rev-parse', 'feature~1')).toBe(second.commit)
    },
  )

  it('from the start takes the base as it is now, from the agent as it was', async () => {
    const repo = await gitRepository(join(scratch.path, `repo-${++count}`))
    const first = await platform.api.run(request(repo.path, 'exit 1'))
    await repo.git('commit', '-q', '--allow-empty', '-m', 'moved on')
    const moved = await repo.git('rev-parse', 'HEAD')
    expect((await retry(first.id)).base_commit).toBe(first.base_commit)
    expect((await retry(first.id, { from: 'start' })).base_commit).toBe(moved)
  })

  it('is one task however often the same key asks for it', async () => {
    const repo = await gitRepository(join(scratch.path, `repo-${++count}`))
    const first = await platform.api.run(request(repo.path, 'true'))
    const ask = () =>
      platform.api.request('POST', `/tasks/${first.id}/retry`, { headers: { 'idempotency-key': `again-${first.id}` } })
    const [one, two] = [await ask(), await ask()]
    expect(two.json).toMatchObject({ id: (one.json as { id: string }).id })
    expect(two.headers.get('idempotent-replay')).toBe('true')
  })

  it('refuses what it cannot do and says why', async () => {
    const repo = await gitRepository(join(scratch.path, `repo-${++count}`))
    const { id } = await platform.api.run(request(repo.path, 'true'))
    for (const { body, status, code, says } of [
      { body: { from: 'yesterday' }, status: 422, code: 'Invalid', says: /from/ },
      { body: { form: 'push' }, status: 422, code: 'Invalid', says: /form/ },
      { body: { from: 'push' }, status: 409, code: 'RetryNotPossible', says: /no commit that could be pushed/ },
    ]) {
      const answer = await platform.api.request('POST', `/tasks/${id}/retry`, { body })
      expect(answer).toMatchObject({
        status,
        json: { error: { code, message: expect.stringMatching(says) as string } },
      })
    }
  })
})

describe('a sandbox that is lost with its disk', () => {
  it('costs what came after the last checkpoint, and a retry goes on from there', async () => {
    const fixture = await remote()
    const command =
      'if [ -e first.txt ]; then echo second > second.txt; exit 0; fi; echo first > first.txt; git status > /dev/null; sleep 600'
    const id = await platform.api.create(request(urlOf(fixture), command, { checkpoint_seconds: 1 }))
    await platform.api.untilPhase(id, 'RUNNING')
    const kube = await platform.kube()
    const { metadata } = await kube.get(AgentTasks, { namespace: 'corral', name: id })
    await waitUntil('a checkpoint is in the record', async () => existsSync(checkpointOf(metadata.uid)))
    const { sandbox } = await platform.api.get(id)
    await kube.delete(Sandboxes, { namespace: 'corral', name: sandbox?.name ?? '' })
    const first = await platform.api.untilEnded(id)
    expect(first).toMatchObject({ status: 'FAILED', cause: { code: 'SandboxLost' }, outcome: 'partial', pushed: true })
    expect(first.warnings).toMatchObject([{ code: 'FromCheckpoint' }])
    expect(await fixture.show(first.branch!, 'first.txt')).toBe('first')

    const second = await retry(id)
    expect(second).toMatchObject({ status: 'SUCCEEDED', outcome: 'changes', retry_from: 'agent' })
    expect(await fixture.show(second.branch!, 'first.txt')).toBe('first')
    expect(await fixture.show(second.branch!, 'second.txt')).toBe('second')
    expect(await fixture.git('rev-parse', `${second.branch}~1`)).toBe(first.commit)
  })

  if (isFullSize)
    it('of a task without checkpoints costs its work, and says so', async () => {
      const fixture = await remote()
      const id = await platform.api.create(request(urlOf(fixture), 'echo x > x; sleep 600', { checkpoint_seconds: 0 }))
      const { sandbox } = await platform.api.untilPhase(id, 'RUNNING')
      const kube = await platform.kube()
      await kube.delete(Sandboxes, { namespace: 'corral', name: sandbox?.name ?? '' })
      const task = await platform.api.untilEnded(id)
      expect(task).toMatchObject({ status: 'FAILED', cause: { code: 'SandboxLost' } })
      expect(task.outcome).toBeUndefined()
    })

  const checkpointOf = (uid: string): string => join(platform.dataDir, 'tasks', uid, 'checkpoints', 'result.bundle')
})

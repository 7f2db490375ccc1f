import { join } from 'node:path'
import type { CreateTaskRequest, TaskEvent } from '@corral/protocol'
import { AgentTasks, SandboxClaims } from '@corral/resources'
import { type GitFixture, gitRepository, type PlatformProcess, startPlatformProcess, waitUntil } from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let platform: PlatformProcess
let count = 0
beforeAll(async () => {
  platform = await startPlatformProcess()
})
afterAll(() => platform?.[Symbol.asyncDispose]())

const repository = (): Promise<GitFixture> => gitRepository(join(platform.directory, `repo-${++count}`))
const request = (repo: GitFixture, command: string, more: Partial<CreateTaskRequest> = {}): CreateTaskRequest => ({
  repo: repo.path,
  task: 'Work',
  agent: { name: 'command', command },
  ...more,
})
const waiting = 'echo half > work.txt; echo waiting; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo whole > work.txt'

/** Waits until the agent says it waits. */
async function untilWaiting(id: string): Promise<TaskEvent> {
  for await (const event of platform.api.events(id))
    if (event.type === 'output' && event.text.includes('waiting')) return event
  throw new Error(`task ${id} ended before its agent waited`)
}

/** Lets a waiting agent go on. */
async function letGo(id: string): Promise<void> {
  const { sandbox } = await platform.api.get(id)
  const { code, stderr } = await platform.kubectl(['exec', sandbox!.pod!, '--', 'touch', '/tmp/go'])
  if (code !== 0) throw new Error(`kubectl exec: ${stderr}`)
}

describe('cancel', () => {
  it('ends a running task with its work saved', async () => {
    const repo = await repository()
    const id = await platform.api.create(request(repo, waiting))
    await untilWaiting(id)
    expect((await platform.corral(['task', 'cancel', id])).code).toBe(0)
    const task = await platform.api.untilEnded(id)
    expect(task).toMatchObject({ status: 'CANCELLED', cause: { code: 'Cancelled' }, pushed: true })
    expect(await repo.show(task.branch!, 'work.txt')).toBe('half')
  })

  it('ends a task that is being provisioned', async () => {
    const repo = await repository()
    const id = await platform.api.create(request(repo, 'true', { setup: 'sleep 600' }))
    await platform.api.until(id, 'its set-up runs', ({ times }) => times?.repository_ready_at !== undefined)
    await platform.api.request('POST', `/tasks/${id}/cancel`)
    expect(await platform.api.untilEnded(id)).toMatchObject({ status: 'CANCELLED' })
    expect(await repo.branches()).toEqual(['main'])
  })

  it('by kubectl delete ends the task, saves its work and takes the object away last', async () => {
    const repo = await repository()
    const id = await platform.api.create(request(repo, waiting))
    await untilWaiting(id)
    const kube = await platform.kube()
    let last: string | undefined
    const watched = (async () => {
      for await (const { type, object } of kube.watch(AgentTasks, { namespace: 'corral' })) {
        if (object.metadata.name !== id) continue
        if (type === 'DELETED') return
        last = object.status?.phase
      }
    })()
    expect((await platform.kubectl(['delete', 'agenttask', id, '--timeout=30s'])).code).toBe(0)
    await watched
    expect(last).toBe('CANCELLED')
    expect(await repo.show(`corral/${id}`, 'work.txt')).toBe('half')
    expect((await platform.api.request('GET', `/tasks/${id}`)).status).toBe(404)
    await waitUntil(
      'its claim is gone',
      async () => !(await kube.find(SandboxClaims, { namespace: 'corral', name: id })),
    )
  })
})

describe('a person at a running task', () => {
  it('S4-A6: `corral task shell` runs a command in the repository of the sandbox', async () => {
    const repo = await repository()
    const id = await platform.api.create(request(repo, waiting))
    await untilWaiting(id)
    const shell = await platform.corral(['task', 'shell', id, '--', 'sh', '-c', 'pwd; cat work.txt; cat; exit 4'])
    expect(shell).toMatchObject({ code: 4, stdout: '/workspace/repo\nhalf\n' })
    await letGo(id)
    const task = await platform.api.untilEnded(id)
    expect(await repo.show(task.branch!, 'work.txt')).toBe('whole')
    expect(await platform.corral(['task', 'shell', id, 'true'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/the sandbox of task \S+ went when it ended \(SUCCEEDED\)\nhint: .*task checkout/),
    })
  })

  it('`--keep` holds the sandbox of a failed task until the task is deleted', async () => {
    const repo = await repository()
    const run = await platform.corral([
      ...['run', 'Break', '--repo', repo.path, '--command', 'echo evidence > left.txt; exit 5', '--keep', '--json'],
    ])
    expect(run.code).toBe(1)
    const task = JSON.parse(run.stdout.trim().split('\n').at(-1) ?? '') as { id: string; exit_code: number }
    expect(task.exit_code).toBe(5)
    expect(await platform.corral(['task', 'shell', task.id, 'cat', 'left.txt'])).toMatchObject({
      code: 0,
      stdout: 'evidence\n',
    })
    await platform.kubectl(['delete', 'agenttask', task.id, '--timeout=30s'])
    const kube = await platform.kube()
    await waitUntil('the sandbox is gone', async () => {
      return !(await kube.find(SandboxClaims, { namespace: 'corral', name: task.id }))
    })
  })

  it('`corral run` shows the way of a task and ends with its branch and exit code', async () => {
    const repo = await repository()
    const { code, stdout } = await platform.corral([
      ...['run', 'Say hello', '--repo', repo.path, '--branch', 'hello', '--command', 'echo hello | tee hello.txt'],
    ])
    expect(code).toBe(0)
    for (const part of ['claiming a sandbox', 'agent started', '│ hello', 'branch hello', '1 file changed'])
      expect(stdout).toContain(part)
    expect(await repo.show('hello', 'hello.txt')).toBe('hello')
    const timedOut = await platform.corral([
      ...['run', 'Wait', '--repo', repo.path, '--timeout', '1s', '--command', 'sleep 60'],
    ])
    expect(timedOut.code).toBe(4)
  })

  it('retry runs an ended task again as a new one that names the first', async () => {
    const repo = await repository()
    const first = await platform.api.run(request(repo, 'echo again > again.txt; exit 1', { labels: { team: 'red' } }))
    const answer = await platform.api.request('POST', `/tasks/${first.id}/retry`)
    expect(answer.status).toBe(201)
    const second = await platform.api.untilEnded((answer.json as { id: string }).id)
    expect(second).toMatchObject({ retry_of: first.id, status: 'FAILED', labels: { team: 'red' }, task: 'Work' })
    expect(second.id).not.toBe(first.id)
    expect(second.branch).not.toBe(first.branch)
  })
})

describe('the event stream', () => {
  it.each(['ndjson', 'sse'] as const)(
    'S4-P2.4: goes on after the last seen sequence across a kill -9, without a gap or a repeat (%s)',
    async (format) => {
      const repo = await repository()
      const id = await platform.api.create(request(repo, `for i in 1 2 3; do echo line $i; done; ${waiting}`))
      const seen: TaskEvent[] = []
      for await (const event of platform.api.events(id, { format })) {
        seen.push(event)
        if (event.type === 'output' && event.text.includes('waiting')) break
      }
      await platform.kill9()
      await platform.restart()
      const after = seen.at(-1)!.sequence
      const rest = platform.api.allEvents(id, format === 'sse' ? { format, lastEventId: after } : { format, after })
      await letGo(id)
      seen.push(...(await rest))
      expect(seen.map(({ sequence }) => sequence)).toEqual(seen.map((_, index) => index + 1))
      expect(seen.at(-1)).toMatchObject({ type: 'result', status: 'SUCCEEDED' })
      expect(await platform.api.allEvents(id)).toEqual(seen)
      expect(seen.filter((event) => event.type === 'output').map((event) => event.text.trim())).toEqual([
        'line 1',
        'line 2',
        'line 3',
        'waiting',
      ])
    },
  )

  it('answers what is there and ends when it is not asked to follow', async () => {
    const repo = await repository()
    const id = await platform.api.create(request(repo, waiting))
    const { sequence } = await untilWaiting(id)
    const events = await platform.api.allEvents(id, { follow: false, after: sequence - 1 })
    expect(events[0]).toMatchObject({ sequence, type: 'output' })
    await letGo(id)
    await platform.api.untilEnded(id)
  })
})

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { AgentTasks, isFinalPhase, Pods } from '@corral/resources'
import {
  type GitFixture,
  gitRepository,
  isFullSize,
  type PlatformProcess,
  sandboxProcesses,
  startPlatformProcess,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'

let platform: PlatformProcess
let repo: GitFixture
beforeAll(async () => {
  platform = await startPlatformProcess()
  repo = await gitRepository(join(platform.directory, 'repo'))
})
afterAll(() => platform?.[Symbol.asyncDispose]())

const create = (command: string): Promise<string> =>
  platform.api.create({ repo: repo.path, task: 'Work', agent: { name: 'command', command } })

it('NFR-2 S4-G1: of twelve tasks ten run at once, two wait, and all of them end well', async () => {
  const kube = await platform.kube()
  const phases = new Map<string, string>()
  let mostActive = 0
  const over = new AbortController()
  const watching = (async () => {
    for await (const { object } of kube.watch(AgentTasks, { namespace: 'corral', signal: over.signal })) {
      phases.set(object.metadata.name, object.status?.phase ?? 'QUEUED')
      const active = [...phases.values()].filter((phase) => phase === 'PROVISIONING' || phase === 'RUNNING').length
      mostActive = Math.max(mostActive, active)
    }
  })()
  // No task finishes before ten of them are at work at the same time.
  const command = 'echo "$CORRAL_TASK_ID" > "$CORRAL_TASK_ID.txt"; while [ ! -e /tmp/go ]; do sleep 0.1; done'
  const ids = await Promise.all(Array.from({ length: 12 }, () => create(command)))
  const running = (): string[] => ids.filter((id) => phases.get(id) === 'RUNNING')
  await waitUntil('ten run', () => running().length === 10)
  expect(ids.filter((id) => phases.get(id) === 'QUEUED')).toHaveLength(2)

  const released = new Set<string>()
  await waitUntil('all have ended', async () => {
    for (const id of running().filter((name) => !released.has(name))) {
      const { sandbox } = await platform.api.get(id)
      const touched = await platform.kubectl(['exec', sandbox!.pod!, '--', 'touch', '/tmp/go'])
      if (touched.code === 0) released.add(id)
    }
    return ids.every((id) => isFinalPhase(phases.get(id) as 'QUEUED'))
  })
  over.abort()
  await watching
  expect(mostActive).toBe(10)
  expect(new Set(phases.values())).toEqual(new Set(['SUCCEEDED']))
  for (const id of ids) expect(await repo.show(`corral/${id}`, `${id}.txt`)).toBe(id)
})

it('cancels a task that waits for its turn without giving it a sandbox', async () => {
  await platform.stop()
  await platform.restart({ args: ['--max-tasks', '1'] })
  const first = await create('sleep 600')
  await platform.api.untilPhase(first, 'RUNNING')
  const second = await create('true')
  expect((await platform.api.request('POST', `/tasks/${second}/cancel`)).status).toBe(202)
  const task = await platform.api.untilEnded(second)
  expect(task).toMatchObject({ status: 'CANCELLED', cause: { code: 'Cancelled' } })
  expect(task.sandbox).toBeUndefined()
  await platform.api.request('POST', `/tasks/${first}/cancel`)
  await platform.api.untilEnded(first)
})

it('S4-P4.4: of the waiting tasks the one with the highest priority goes first, also when that changed while it waited', async () => {
  const first = await create('sleep 600')
  await platform.api.untilPhase(first, 'RUNNING')
  const plain = await create('true')
  const raised = await create('true')
  const agent = { name: 'command', command: 'true' }
  const high = await platform.api.create({ repo: repo.path, task: 'Work', agent, priority: 5 })
  const patched = await platform.kubectl([
    ...['-n', 'corral', 'patch', 'agenttask', raised, '--type=merge', '-p', '{"spec":{"priority":9}}'],
  ])
  expect(patched).toMatchObject({ code: 0 })
  const positionOf = async (id: string) => (await platform.api.get(id)).queue?.position
  await waitUntil('the raised task is the next', async () => (await positionOf(raised)) === 1)
  expect(await positionOf(high)).toBe(2)
  expect(await positionOf(plain)).toBe(3)
  await platform.api.request('POST', `/tasks/${first}/cancel`)
  const ended = await Promise.all([raised, high, plain].map((id) => platform.api.untilEnded(id)))
  const starts = ended.map(({ times }) => Date.parse(times?.provisioning_at ?? ''))
  expect(starts).toEqual([...starts].sort((left, right) => left - right))
  expect(ended.map(({ priority }) => priority)).toEqual([9, 5, 0])
})

it('S4-P4.4: a priority that is none is refused and starts nothing', async () => {
  const agent = { name: 'command', command: 'true' }
  const body = { repo: repo.path, task: 'x', agent, priority: 1001 }
  const refused = await platform.api.request('POST', '/tasks', { body })
  expect(refused.status).toBe(422)
  expect(refused.text).toContain('priority')
})

it.each((['SIGTERM', 'SIGINT'] as const).slice(isFullSize ? 0 : -1))(
  'a stop by %s leaves the running task running and the queued one queued; both end well after the next start',
  async (signal) => {
    const running = await create('echo run >> work.txt; echo waiting; while [ ! -e /tmp/go ]; do sleep 0.1; done')
    for await (const event of platform.api.events(running))
      if (event.type === 'output' && event.text.includes('waiting')) break
    const queued = await create('echo later > later.txt')
    expect((await platform.api.get(queued)).status).toBe('QUEUED')
    const kube = await platform.kube()
    const podName = (await platform.api.get(running)).sandbox?.pod ?? ''
    const before = await kube.get(Pods, { namespace: 'corral', name: podName })

    expect(await platform.stop(signal)).toBe(0)
    expect(sandboxProcesses(platform.dataDir)).not.toEqual([])

    await platform.restart({ args: ['--max-tasks', '1'] })
    const after = await (await platform.kube()).get(Pods, { namespace: 'corral', name: podName })
    expect(after.status?.containerStatuses).toEqual(before.status?.containerStatuses)
    expect(await platform.api.get(running)).toMatchObject({ status: 'RUNNING' })
    const go = ['-n', 'corral', 'exec', podName, '--', 'touch', '/tmp/go']
    expect(await platform.kubectl(go)).toMatchObject({ code: 0 })
    const ended = await platform.api.untilEnded(running)
    expect(ended).toMatchObject({ status: 'SUCCEEDED', pushed: true })
    expect(await repo.show(ended.branch!, 'work.txt')).toBe('run')
    const later = await platform.api.untilEnded(queued)
    expect(later).toMatchObject({ status: 'SUCCEEDED' })
    expect(await repo.show(later.branch!, 'later.txt')).toBe('later')
  },
)

it('a stop with no task running leaves no process behind', async () => {
  expect(await platform.stop()).toBe(0)
  expect(sandboxProcesses(platform.dataDir)).toEqual([])
  expect(existsSync(join(platform.dataDir, 'cradle', 'cradle.pid'))).toBe(false)
  await platform.restart({ args: ['--max-tasks', '1'] })
})

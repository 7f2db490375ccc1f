import { join } from 'node:path'
import { AgentTasks, isFinalPhase } from '@corral/resources'
import { type GitFixture, gitRepository, type PlatformProcess, startPlatformProcess, waitUntil } from '@corral/testing'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'

// Real processes on a machine that may be busy with other tests.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 90_000 })

let platform: PlatformProcess
let repo: GitFixture
beforeAll(async () => {
  platform = await startPlatformProcess()
  repo = await gitRepository(join(platform.directory, 'repo'))
})
afterAll(() => platform?.[Symbol.asyncDispose]())

const create = (command: string): Promise<string> =>
  platform.api.create({ repo: repo.path, task: 'Work', agent: { name: 'command', command } })

it('NFR-2 S4-G1: of twelve tasks ten run at once, two wait, and all of them end well', {
  timeout: 120_000,
}, async () => {
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
  // Nobody finishes before ten of them are at work at the same time.
  const command = 'echo "$CORRAL_TASK_ID" > "$CORRAL_TASK_ID.txt"; while [ ! -e /tmp/go ]; do sleep 0.1; done'
  const ids = await Promise.all(Array.from({ length: 12 }, () => create(command)))
  const running = (): string[] => ids.filter((id) => phases.get(id) === 'RUNNING')
  await waitUntil('ten run', () => running().length === 10, { timeoutMs: 60_000 })
  expect(ids.filter((id) => phases.get(id) === 'QUEUED')).toHaveLength(2)

  const released = new Set<string>()
  await waitUntil(
    'all have ended',
    async () => {
      for (const id of running().filter((name) => !released.has(name))) {
        const { sandbox } = await platform.api.get(id)
        const touched = await platform.kubectl(['exec', sandbox!.pod!, '--', 'touch', '/tmp/go'])
        if (touched.code === 0) released.add(id)
      }
      return ids.every((id) => isFinalPhase(phases.get(id) as 'QUEUED'))
    },
    { timeoutMs: 90_000 },
  )
  over.abort()
  await watching
  expect(mostActive).toBe(10)
  expect(new Set(phases.values())).toEqual(new Set(['SUCCEEDED']))
  for (const id of ids) expect(await repo.show(`corral/${id}`, `${id}.txt`)).toBe(id)
})

it('cancels a task that waits for its turn without giving it a sandbox', { timeout: 60_000 }, async () => {
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

it('a stop by SIGTERM ends the running task with its work pushed; the queued one runs after the next start', {
  timeout: 90_000,
}, async () => {
  const running = await create('echo half > work.txt; echo waiting; sleep 600')
  for await (const event of platform.api.events(running))
    if (event.type === 'output' && event.text.includes('waiting')) break
  const queued = await create('echo later > later.txt')
  expect((await platform.api.get(queued)).status).toBe('QUEUED')
  expect(await platform.stop()).toBe(0)
  expect(await repo.show(`corral/${running}`, 'work.txt')).toBe('half')
  await platform.restart({ args: ['--max-tasks', '1'] })
  const stopped = await platform.api.get(running)
  expect(stopped).toMatchObject({ status: 'FAILED', cause: { code: 'PlatformStopped' }, pushed: true })
  expect(stopped.cause?.hint).toMatch(/[Rr]etry/)
  const later = await platform.api.untilEnded(queued)
  expect(later).toMatchObject({ status: 'SUCCEEDED' })
  expect(await repo.show(later.branch!, 'later.txt')).toBe('later')
})

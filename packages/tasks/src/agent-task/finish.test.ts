import { type Clock, silentLogger } from '@corral/ports'
import { finalViewOf, type TaskEvent } from '@corral/protocol'
import type { AgentTask, Stored } from '@corral/resources'
import { beforeEach, expect, it } from 'vitest'
import { memoryTaskRecords } from '../records/memory-task-records.js'
import type { TaskRecords } from '../records/task-records.js'
import { TaskError } from '../task-error.js'
import { taskView } from '../task-view.js'
import { finishTask } from './finish.js'
import type { TaskPorts } from './task-ports.js'

const uid = 'uid-1'
const task: Stored<AgentTask> = {
  apiVersion: 'corral.dev/v1alpha1',
  kind: 'AgentTask',
  metadata: {
    name: 'task-b',
    namespace: 'corral',
    uid,
    resourceVersion: '1',
    generation: 1,
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  spec: { repository: { url: '/r' }, prompt: 'Do it', agent: { name: 'claude' } },
  status: { branch: 'corral/task-b', commit: 'c0ffee', pushed: true, outcome: 'changes' },
}

let records: TaskRecords
let written: Stored<AgentTask>[]
let seconds: number
let ports: TaskPorts

beforeEach(() => {
  records = memoryTaskRecords({ now: () => new Date('2026-01-01T00:00:00Z') })
  written = []
  seconds = 10
  ports = {
    client: {
      updateStatus: async (_: unknown, object: Stored<AgentTask>) => {
        written.push(object)
        return object
      },
    },
    records,
    usageOf: async () => ({ inputTokens: 1, outputTokens: 2, cacheReadTokens: 0, cacheWriteTokens: 0, costUsd: 0.5 }),
    finished: () => undefined,
    clock: { now: () => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)) } as Clock,
    log: silentLogger,
  } as unknown as TaskPorts
})

async function events(): Promise<TaskEvent[]> {
  const all: TaskEvent[] = []
  for await (const event of records.events.read(uid)) all.push(event)
  return all
}

it.each([
  { code: 'Succeeded', status: 'SUCCEEDED' },
  { code: 'Timeout', status: 'TIMED_OUT' },
  { code: 'Cancelled', status: 'CANCELLED' },
  { code: 'AgentFailed', status: 'FAILED' },
])('the last event of a task that ended as $status carries the task as it is recorded', async ({ code, status }) => {
  await records.events.append(uid, [{ type: 'output', stream: 'stdout', text: 'x' }])
  await finishTask(task, { code, message: 'how it ended' }, ports)
  const last = (await events()).at(-1)
  expect(last).toMatchObject({ type: 'result', status, branch: 'corral/task-b', commit: 'c0ffee', outcome: 'changes' })
  const recorded = written.at(-1)
  expect(last && finalViewOf(last)).toEqual(recorded && taskView(recorded))
  expect(recorded?.status).toMatchObject({ phase: status, lastEventSequence: 2, usage: { costUsd: 0.5 } })
})

it('the last event names the branch only where it was pushed, with what changed and what to look at', async () => {
  const warnings = [{ code: 'CheckFileLeftOut', message: 'left out' }]
  const diffStat = { filesChanged: 1, insertions: 2, deletions: 0 }
  const status = { ...task.status, pushed: false, diffStat, warnings }
  await finishTask({ ...task, status }, { code: 'PushFailed', message: 'no answer' }, ports)
  const last = (await events()).at(-1)
  expect(last).toMatchObject({ diff_stat: { files_changed: 1, insertions: 2, deletions: 0 }, warnings })
  expect(last).not.toHaveProperty('branch')
  expect(written[0]?.status?.conditions).toMatchObject([{ type: 'Succeeded', status: 'False', reason: 'PushFailed' }])
})

it('a pass that finds the last event told records the same end, and tells it once', async () => {
  ports.client.updateStatus = () => Promise.reject(new Error('the process was killed here'))
  await expect(finishTask(task, { code: 'Succeeded', message: 'done' }, ports)).rejects.toThrow('killed')
  seconds = 50
  ports.client.updateStatus = (async (_: unknown, object: Stored<AgentTask>) => {
    written.push(object)
    return object
  }) as TaskPorts['client']['updateStatus']
  await finishTask(task, { code: 'Succeeded', message: 'done' }, ports)
  const [told, ...more] = await events()
  expect(more).toEqual([])
  expect(written[0] && told && taskView(written[0])).toEqual(told && finalViewOf(told))
  expect(written[0]?.status?.times?.finishedAt).toBe('2026-01-01T00:00:10.000Z')
})

it('where the last event finds no room the end is recorded all the same and followers are let go', async () => {
  await records.events.append(uid, [{ type: 'output', stream: 'stdout', text: 'x' }])
  const following = (async () => {
    const types: string[] = []
    for await (const { type } of records.events.read(uid, { follow: true })) types.push(type)
    return types
  })()
  const full = { ...records.events, append: () => Promise.reject(new TaskError('DiskFull', 'no room')) }
  await finishTask(task, { code: 'DiskFull', message: 'no room' }, { ...ports, records: { ...records, events: full } })
  expect(await following).toEqual(['output'])
  expect(written[0]?.status).toMatchObject({ phase: 'FAILED', cause: { code: 'DiskFull' }, lastEventSequence: 1 })
})

it('the record says until when the sandbox is held for a follow-up, counted from the end', async () => {
  const passed = (type: string, reason: string) => ({
    type,
    status: 'True' as const,
    reason,
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  })
  const sandbox = { claimName: 'task-b', sandboxName: 's-1' }
  const conditions = [passed('AgentFinished', 'Completed'), passed('ResultCollected', 'Accepted')]
  const held = {
    ...task,
    spec: { ...task.spec, holdSandboxSeconds: 60 },
    status: { ...task.status, sandbox, conditions },
  }
  await finishTask(held, { code: 'Succeeded', message: 'done' }, ports)
  expect(written[0]?.status?.sandbox).toEqual({ ...sandbox, heldUntil: '2026-01-01T00:01:10.000Z' })
  expect(written[0]?.status?.usage).toMatchObject({ costUsd: 0.5 })
})

it('a task whose log could not even be opened is recorded with an empty one', async () => {
  const ended: string[] = []
  const full = () => Promise.reject(new TaskError('DiskFull', 'no room'))
  const events = { ...records.events, append: full, tail: full, end: (log: string) => void ended.push(log) }
  await finishTask(task, { code: 'DiskFull', message: 'no room' }, { ...ports, records: { ...records, events } })
  expect(written[0]?.status?.lastEventSequence).toBe(0)
  expect(ended).toEqual([uid])
})

it('the cause that was recorded when it happened stays, with its hint', async () => {
  const cause = { code: 'SetupFailed', message: 'exit code 1', hint: 'Run it by hand.' }
  const failed = { ...task, status: { ...task.status, cause } }
  await finishTask(failed, { code: 'SetupFailed', message: 'other words' }, ports)
  expect(written[0]?.status?.cause).toEqual(cause)
})

it('counts the end once, under its cause', async () => {
  const counted: string[] = []
  await finishTask(task, { code: 'Timeout', message: '' }, { ...ports, finished: (_, code) => void counted.push(code) })
  expect(counted).toEqual(['Timeout'])
})

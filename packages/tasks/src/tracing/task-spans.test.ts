import type { SpanRecord } from '@corral/ports'
import type { AgentTask, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { claimFor } from '../agent-task/claim.js'
import { acceptedAtAnnotation } from '../task-page.js'
import { sandboxTrace, taskSpans, taskTrace, tracedStep } from './task-spans.js'
import { traceAnnotations, traceOf } from './trace-context.js'

const request = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), isSampled: true }
const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString()

function task(more: { trace?: typeof request; status?: AgentTask['status'] } = {}): Stored<AgentTask> {
  return {
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: {
      ...{ name: 'task-a', namespace: 'corral', uid: 'uid-1', resourceVersion: '1', creationTimestamp: at(1) },
      annotations: { [acceptedAtAnnotation]: at(1.5), ...traceAnnotations(more.trace) },
    },
    spec: { repository: { url: '/r' }, prompt: 'secret words', agent: { name: 'command', command: 'true' } },
    ...(more.status ? { status: more.status } : {}),
  }
}

const outline = (spans: readonly SpanRecord[]): string[] =>
  spans.map(({ name, startMs, endMs, error }) => {
    const seconds = (ms: number): number => (ms - Date.UTC(2026, 0, 1)) / 1000
    return `${name} ${seconds(startMs)}-${seconds(endMs)}${error ? ` ${error}` : ''}`
  })

describe('what is told of a task that has ended', () => {
  it.each<[what: string, times: NonNullable<NonNullable<AgentTask['status']>['times']>, code: string, spans: string[]]>(
    [
      [
        'one that succeeded',
        { provisioningAt: at(2), sandboxReadyAt: at(3) },
        'Succeeded',
        ['task 1.5-9', 'queue 1.5-2', 'sandbox 2-3'],
      ],
      [
        'one that failed in its sandbox',
        { provisioningAt: at(2), sandboxReadyAt: at(3) },
        'AgentFailed',
        ['task 1.5-9 AgentFailed', 'queue 1.5-2', 'sandbox 2-3'],
      ],
      [
        'one whose sandbox never came',
        { provisioningAt: at(2) },
        'ImagePullFailed',
        ['task 1.5-9 ImagePullFailed', 'queue 1.5-2', 'sandbox 2-9 ImagePullFailed'],
      ],
      ['one cancelled in the queue', {}, 'Cancelled', ['task 1.5-9 Cancelled', 'queue 1.5-9 Cancelled']],
      [
        'one whose clock was set back',
        { provisioningAt: at(0), sandboxReadyAt: at(3) },
        'Succeeded',
        ['task 1.5-9', 'queue 1.5-1.5', 'sandbox 0-3'],
      ],
    ],
  )('%s', (_, times, code, spans) => {
    expect(outline(taskSpans(task({ status: { times } }), code, new Date(at(9))))).toEqual(spans)
  })

  it('lies below the request, and what the controllers do for its claim below the wait for the sandbox', () => {
    const times = { provisioningAt: at(2), sandboxReadyAt: at(3) }
    const traced = task({ trace: request, status: { times } })
    const [whole, queue, sandbox] = taskSpans(traced, 'Succeeded', new Date(at(9)))
    expect(whole).toMatchObject({ traceId: request.traceId, parentId: request.spanId })
    expect([queue?.parentId, sandbox?.parentId]).toEqual([whole?.spanId, whole?.spanId])
    const claim = traceOf(claimFor(traced, 'default', new Date(at(2))))
    expect(claim).toEqual({ traceId: request.traceId, spanId: sandbox?.spanId, isSampled: true })
    expect(claimFor(task(), 'default', new Date(at(2))).metadata?.annotations).toBeUndefined()
  })

  it('is the same whoever tells it, another sandbox is another wait, another task another trace', () => {
    const again = task({ status: { attempt: { number: 2, startedAt: at(4), reason: 'lost' } } })
    expect(taskTrace(task())).toEqual(taskTrace(again))
    expect(sandboxTrace(task()).spanId).not.toBe(sandboxTrace(again).spanId)
    const other = { ...task(), metadata: { ...task().metadata, uid: 'uid-2' } }
    expect(taskTrace(other).traceId).not.toBe(taskTrace(task()).traceId)
  })

  it('is nothing where the caller keeps no trace, and never a prompt', () => {
    const status = { times: { provisioningAt: at(2) } }
    expect(taskSpans(task({ trace: { ...request, isSampled: false }, status }), 'Succeeded', new Date(at(9)))).toEqual(
      [],
    )
    expect(JSON.stringify(taskSpans(task({ status }), 'Succeeded', new Date(at(9))))).not.toContain('secret')
  })
})

describe('a step of a task', () => {
  const run = async (work: () => Promise<string>, trace = request): Promise<{ told: SpanRecord[]; end: unknown }> => {
    const told: SpanRecord[] = []
    let seconds = 0
    const clock = { now: () => new Date(at(++seconds)) }
    const options = { task: task({ trace }), step: 'push', spans: (span: SpanRecord) => void told.push(span), clock }
    const end = await tracedStep(options, work).catch((error: unknown) => error)
    return { told, end }
  }

  it('is told with its time below the task', async () => {
    const { told, end } = await run(async () => 'done')
    expect([end, outline(told)]).toEqual(['done', ['push 1-2']])
    expect(told[0]).toMatchObject({ traceId: request.traceId, parentId: taskTrace(task()).spanId })
  })

  it('that fails says its code and goes on failing; what the message holds stays here', async () => {
    const failure = Object.assign(new Error('secret words'), { code: 'PushRejected' })
    const { told, end } = await run(() => Promise.reject(failure))
    expect([end, outline(told)]).toEqual([failure, ['push 1-2 PushRejected']])
    expect(JSON.stringify(told)).not.toContain('secret')
    const { told: plain } = await run(() => Promise.reject(new Error('secret words')))
    expect(outline(plain)).toEqual(['push 1-2 error'])
  })

  it('is not told where the caller keeps no trace', async () => {
    expect((await run(async () => 'done', { ...request, isSampled: false })).told).toEqual([])
  })
})

import type { Clock, SpanRecord, SpanSink } from '@corral/ports'
import type { AgentTask, Stored } from '@corral/resources'
import { acceptedAtAnnotation } from '../task-page.js'
import { derivedId, newSpan, type TraceParent, traceOf } from './trace-context.js'

type Task = Pick<Stored<AgentTask>, 'metadata' | 'spec' | 'status'>

/** The span of a whole task, below the request that made it; its own trace where that had none. */
export function taskTrace({ metadata }: Task): TraceParent & { parentId?: string } {
  const parent = traceOf({ metadata })
  return {
    traceId: parent?.traceId ?? derivedId(`trace of ${metadata.uid}`, 16),
    spanId: derivedId(`task ${metadata.uid}`, 8),
    isSampled: parent?.isSampled ?? true,
    ...(parent ? { parentId: parent.spanId } : {}),
  }
}

/** The span in which a task waits for its sandbox: what the controllers do for its claim lies below it. */
export function sandboxTrace(task: Task): TraceParent {
  const { traceId, isSampled } = taskTrace(task)
  return { traceId, isSampled, spanId: derivedId(`sandbox ${task.metadata.uid} ${attemptOf(task)}`, 8) }
}

/**
 * What is told of a task once it has ended: itself, its time in the queue and the wait for its sandbox, from its record.
 * None where the trace of the request is not sampled. Pure.
 */
export function taskSpans(task: Task, code: string, now: Date): SpanRecord[] {
  const { traceId, spanId, parentId, isSampled } = taskTrace(task)
  if (!isSampled) return []
  const { metadata, spec, status } = task
  const { provisioningAt, sandboxReadyAt } = status?.times ?? {}
  const acceptedMs = Date.parse(metadata.annotations?.[acceptedAtAnnotation] ?? metadata.creationTimestamp)
  const endMs = Math.max(acceptedMs, now.getTime())
  const failed = code === 'Succeeded' ? {} : { error: code }
  const stage = (name: string, id: string, fromMs: number, to: string | undefined): SpanRecord => ({
    ...{ traceId, spanId: id, parentId: spanId, name, startMs: fromMs, attributes: attributesOf(task) },
    // A stage that never ended is where the task did.
    ...(to === undefined ? { endMs, ...failed } : { endMs: Math.max(fromMs, Date.parse(to)) }),
  })
  return [
    {
      ...{ traceId, spanId, name: 'task', startMs: acceptedMs, endMs, ...failed },
      ...(parentId === undefined ? {} : { parentId }),
      attributes: { ...attributesOf(task), 'corral.agent': spec.agent.name, 'corral.code': code },
    },
    stage('queue', derivedId(`queue ${metadata.uid}`, 8), acceptedMs, provisioningAt),
    ...(provisioningAt === undefined
      ? []
      : [stage('sandbox', sandboxTrace(task).spanId, Date.parse(provisioningAt), sandboxReadyAt)]),
  ]
}

/** Runs a step of a task and tells how long it took, each time it runs. */
export async function tracedStep<T>(
  { task, step, spans, clock }: { task: Task; step: string; spans: SpanSink | undefined; clock: Clock },
  run: () => Promise<T>,
): Promise<T> {
  const parent = taskTrace(task)
  if (!spans || !parent.isSampled) return run()
  const { traceId, spanId } = newSpan(parent)
  const startMs = clock.now().getTime()
  let error: string | undefined
  try {
    return await run()
  } catch (failure) {
    // A message may hold what an agent or a repository said; the code does not.
    error = (failure as { code?: unknown }).code === undefined ? 'error' : String((failure as { code: unknown }).code)
    throw failure
  } finally {
    spans({
      ...{ traceId, spanId, parentId: parent.spanId, name: step, startMs, endMs: clock.now().getTime() },
      attributes: attributesOf(task),
      ...(error === undefined ? {} : { error }),
    })
  }
}

function attributesOf({ metadata }: Task): Record<string, string> {
  return { 'corral.task': metadata.name, 'k8s.namespace.name': metadata.namespace ?? 'default' }
}

function attemptOf({ status }: Task): number {
  return status?.attempt?.number ?? 1
}

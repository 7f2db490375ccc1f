import { deepEqual, equal, ok } from 'node:assert/strict'
import { type TraceCollector, waitUntil } from '@corral/testing'
import type { Collector } from '../../../tools/otlp/collector.js'
import type { Cluster } from '../harness/cluster.js'
import type { Step } from '../harness/report.js'
import { commandTask, succeeded } from './tasks.js'

/** A task as collectors see it: the server tells over HTTP, the controllers over gRPC, in one trace. */
export function tracingSteps(
  cluster: Cluster,
  { collector, controllersCollector }: { collector: TraceCollector; controllersCollector: Collector },
): Step[] {
  return [
    {
      title: 'S4-P3.4: a task is one trace from the request to the push, with what the controllers did for its claim',
      async run() {
        await cluster.connect()
        const repo = await cluster.repository()
        const traceId = 'c'.repeat(32)
        const { status, json } = await cluster.api.request('POST', '/tasks', {
          body: commandTask(repo, 'echo traced > traced.txt'),
          headers: { traceparent: `00-${traceId}-${'d'.repeat(16)}-01` },
        })
        equal(status, 201)
        succeeded(await cluster.api.untilEnded((json as { id: string }).id))
        const told = () => collector.spans.filter((span) => span.traceId === traceId)
        const task = await waitUntil('the task is told', () => told().find(({ name }) => name === 'task'))
        const request = told().find(({ name }) => name === 'POST /tasks')
        deepEqual([request?.parentId, task.parentId], ['d'.repeat(16), request?.spanId])
        const below = told()
          .filter(({ parentId }) => parentId === task.spanId)
          .sort((one, other) => one.startMs - other.startMs || one.endMs - other.endMs)
        // A step that was tried again is told again.
        deepEqual(
          [...new Set(below.map(({ name }) => name))],
          ['queue', 'sandbox', 'repository', 'setup', 'start-agent', 'follow-agent', 'collect', 'push'],
        )
        const sandbox = below.find(({ name }) => name === 'sandbox')
        const reconciled = await waitUntil('the controllers tell of the claim', () =>
          controllersCollector.spans.find((span) => span.traceId === traceId && span.name === 'ReconcileSandboxClaim'),
        )
        equal(reconciled.parentId, sandbox?.spanId)
        ok(controllersCollector.strays.length === 0, controllersCollector.strays.join())
        const theirs = controllersCollector.spans.filter((span) => span.traceId === traceId).length
        return `${told().length} spans of the server, ${theirs} of the controllers`
      },
    },
  ]
}

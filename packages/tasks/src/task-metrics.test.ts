import type { AgentTask, Condition, Stored } from '@corral/resources'
import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { promTaskGauges, promTaskMetrics, stageSeconds } from './task-metrics.js'

const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)).toISOString()
const passed = (type: string): Condition => ({
  type,
  status: 'True',
  reason: 'Done',
  message: '',
  lastTransitionTime: at(0),
})
function task(name: string, createdSeconds: number, conditions: string[] = []): Stored<AgentTask> {
  return {
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: { name, namespace: 'corral', uid: name, resourceVersion: '1', creationTimestamp: at(createdSeconds) },
    spec: { repository: { url: '/r' }, prompt: 'x', agent: { name: 'command', command: 'true' } },
    status: { conditions: conditions.map(passed) },
  }
}
const read = async (registry: Registry, name: string): Promise<number | undefined> =>
  (await registry.getSingleMetric(name)?.get())?.values[0]?.value

it('S4-P3.4: queue, oldest waiting and running are counted from the tasks at every scrape', async () => {
  const registry = new Registry()
  let tasks: Stored<AgentTask>[] = []
  promTaskGauges(registry, { list: () => tasks, now: () => new Date(at(100)) })
  const figures = async (): Promise<(number | undefined)[]> => [
    await read(registry, 'corral_tasks_waiting'),
    await read(registry, 'corral_tasks_oldest_waiting_seconds'),
    await read(registry, 'corral_tasks_running'),
  ]
  expect(await figures()).toEqual([0, 0, 0])
  tasks = [
    task('old', 40),
    task('new', 90),
    task('runs', 10, ['Admitted']),
    task('ended', 5, ['Admitted', 'Succeeded']),
  ]
  expect(await figures()).toEqual([2, 60, 1])
  tasks = []
  expect(await figures()).toEqual([0, 0, 0])
})

it('the stages of an ended task are those it went through, and a clock set back takes no time', () => {
  const times = {
    queuedAt: at(0),
    provisioningAt: at(4),
    sandboxReadyAt: at(6),
    runningAt: at(9),
    agentFinishedAt: at(8),
  }
  expect(stageSeconds(times)).toEqual([
    ['queue', 4],
    ['sandbox', 2],
    ['agent', 0],
  ])
  expect(stageSeconds({})).toEqual([])
})

it('calls to models are counted with their tokens and, where the price is known, their cost', async () => {
  const registry = new Registry()
  const metrics = promTaskMetrics(registry)
  const call = {
    type: 'model_call' as const,
    provider: 'anthropic',
    status: 200,
    duration_ms: 5,
    input_tokens: 100,
    output_tokens: 7,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
  }
  metrics.called({ ...call, cost_usd: 0.25 })
  metrics.called({ ...call, status: 529 })
  const text = await registry.metrics()
  for (const line of [
    'corral_model_calls_total{provider="anthropic",status="200"} 1',
    'corral_model_calls_total{provider="anthropic",status="529"} 1',
    'corral_model_tokens_total{provider="anthropic",direction="in"} 200',
    'corral_model_tokens_total{provider="anthropic",direction="out"} 14',
    'corral_model_cost_usd_total{provider="anthropic"} 0.25',
  ])
    expect(text).toContain(line)
})

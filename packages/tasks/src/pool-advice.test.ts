import type { AgentTask } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { advisePools } from './pool-advice.js'

const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString()
const since = new Date(at(0))

/** A task that was admitted at a second and had its sandbox some seconds later. */
function task(startSeconds: number, waitSeconds: number, sandbox?: AgentTask['spec']['sandbox']): AgentTask {
  return {
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: { name: 'task' },
    spec: {
      repository: { url: '/r' },
      prompt: 'x',
      agent: { name: 'command', command: 'true' },
      ...(sandbox ? { sandbox } : {}),
    },
    status: { times: { provisioningAt: at(startSeconds), sandboxReadyAt: at(startSeconds + waitSeconds) } },
  }
}

describe('S4-P4.1: how many sandboxes to keep ready', () => {
  it.each<[string, AgentTask[], number]>([
    ['tasks far apart need one', [task(0, 0.2), task(100, 0.2), task(200, 0.2)], 1],
    ['five at once need five', [0, 0, 0, 0, 0].map((second) => task(second, 5)), 5],
    ['as many as start while a cold one comes', [0, 2, 4, 6].map((second) => task(second, 4)), 2],
    ['a rare burst in many does not decide', [...spread(60), task(10_000, 5), task(10_000, 5)], 1],
  ])('%s', (_what, tasks, replicas) => {
    expect(advisePools(tasks, since)[0]?.replicas).toBe(replicas)
  })

  it('tells hits and waits by pool, from tasks of the time only', () => {
    const tasks = [task(-100, 30), task(1, 0.1), task(50, 9), task(60, 0.1, { pool: 'large' })]
    expect(advisePools(tasks, since)).toEqual([
      { pool: 'default', tasks: 2, hitRatio: 0.5, waitP95Seconds: 9, coldSeconds: 9, replicas: 1 },
      { pool: 'large', tasks: 1, hitRatio: 1, waitP95Seconds: 0.1, coldSeconds: 10, replicas: 1 },
    ])
  })

  it('says nothing where no task had a sandbox', () => {
    expect(advisePools([], since)).toEqual([])
  })
})

function spread(count: number): AgentTask[] {
  return Array.from({ length: count }, (_, index) => task(index * 100, 0.2))
}

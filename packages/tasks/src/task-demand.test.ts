import type { AgentTask } from '@corral/resources'
import { expect, it } from 'vitest'
import { taskDemand } from './task-demand.js'

function task(passed: readonly string[], sandbox?: AgentTask['spec']['sandbox']): AgentTask {
  const conditions = passed.map((type) => ({
    ...{ type, status: 'True' as const, reason: 'Done', message: '' },
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }))
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
    status: { conditions },
  }
}

it('S4-P4.1: demand is what waits for a place or a sandbox, by the pool it would come from', () => {
  const { waiting, running, byPool } = taskDemand([
    task([]),
    task(['Admitted']),
    task(['Admitted'], { pool: 'large' }),
    task(['Admitted', 'SandboxReady'], { template: 'web' }),
    task(['Admitted', 'SandboxReady', 'Succeeded']),
  ])
  expect({ waiting, running }).toEqual({ waiting: 1, running: 3 })
  expect([...byPool]).toEqual([
    ['default', 2],
    ['large', 1],
    ['corral-web', 0],
  ])
})

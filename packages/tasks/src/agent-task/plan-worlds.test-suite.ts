import type { AgentTask, Condition, SandboxClaim, Stored } from '@corral/resources'
import type { StageCondition } from '../task-state/stages.js'
import { taskFinalizer } from '../task-state/task-marks.js'
import { planTask, type TaskPlan, type TaskWorld } from './plan.js'

export const t0 = new Date('2026-01-01T00:00:00Z')
export const at = (seconds: number): Date => new Date(t0.getTime() + seconds * 1000)

export function condition(
  type: string,
  status: Condition['status'] = 'True',
  reason = 'Done',
  message = '',
): Condition {
  return { type, status, reason, message, lastTransitionTime: '2026-01-01T00:00:00Z' }
}

export interface TaskShape {
  passed?: StageCondition[]
  also?: Condition[]
  spec?: Partial<AgentTask['spec']>
  status?: Partial<NonNullable<AgentTask['status']>>
  deleting?: boolean
  finalizers?: string[]
}

export function task({
  passed = [],
  also = [],
  spec = {},
  status = {},
  deleting,
  finalizers = [taskFinalizer],
}: TaskShape = {}): Stored<AgentTask> {
  return {
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: {
      name: 'task-a',
      namespace: 'corral',
      uid: 'uid-a',
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      finalizers,
      ...(deleting ? { deletionTimestamp: '2026-01-01T00:00:05Z' } : {}),
    },
    spec: {
      repository: { url: '/repo' },
      prompt: 'do it',
      agent: { name: 'command', command: 'true' },
      timeoutSeconds: 60,
      ...spec,
    },
    status: { conditions: [...passed.map((type) => condition(type)), ...also], ...status },
  }
}

export function claim(ready?: Condition): Stored<SandboxClaim> {
  return {
    apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
    kind: 'SandboxClaim',
    metadata: {
      name: 'task-a',
      namespace: 'corral',
      uid: 'c',
      resourceVersion: '2',
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { warmPoolRef: { name: 'default' } },
    status: { conditions: ready ? [ready] : [], sandbox: { name: 'sandbox-1' } },
  }
}

export const readyClaim = claim(condition('Ready'))
export const toSandbox: StageCondition[] = ['Admitted', 'SandboxReady']
export const toSetup: StageCondition[] = [...toSandbox, 'RepositoryReady', 'SetupDone']
export const toAgent: StageCondition[] = [...toSetup, 'AgentStarted']
export const attempt = (number: number): NonNullable<TaskShape['status']> => ({
  attempt: { number, startedAt: t0.toISOString(), reason: 'lost' },
})
export const starting = condition('AgentStarted', 'Unknown', 'Starting')
export const toEnd: StageCondition[] = [...toAgent, 'AgentFinished']

/** What the plan is for a task without claim and step, with the changes named. */
export function planOf(world: Partial<TaskWorld>): TaskPlan {
  return planTask({ task: task(), claim: undefined, step: undefined, mayStart: true, now: at(1), ...world })
}

export function does(world: Partial<TaskWorld>): string[] {
  return planOf(world).actions.map((action) => {
    if (action.kind === 'runStep') return `run ${action.step}${action.reason ? ` (${action.reason})` : ''}`
    if (action.kind === 'record')
      return `record ${action.condition}${action.condition === 'AgentFinished' ? ` ${action.reason}` : ''}`
    return action.kind === 'finish' ? `finish ${action.ending.code}` : action.kind
  })
}

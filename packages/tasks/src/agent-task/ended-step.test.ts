import { CorralError } from '@corral/protocol'
import type { AgentTask, Condition } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { TaskError } from '../task-error.js'
import { afterStep } from './ended-step.js'
import type { EndedStep } from './step-runner.js'

const ended = (reason: string): Condition => ({
  type: 'AgentFinished',
  status: 'True',
  reason,
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
})
const task = (status: AgentTask['status'] = {}): AgentTask => ({ spec: {}, status }) as AgentTask
const failed = (name: EndedStep['name'], error: unknown, failures = 1): EndedStep => ({ name, error, failures })
const collected: EndedStep = {
  name: 'collect',
  outcome: { condition: 'ResultCollected', reason: 'Accepted', message: 'c1', status: { outcome: 'changes' } },
}

describe('a step that ended well', () => {
  it('is recorded as passed, with its events before the status', () => {
    const told = { type: 'stage', stage: 'result', state: 'finished' } as const
    const move = afterStep(task(), { name: 'collect', outcome: { ...collected.outcome, events: [told] } })
    expect(move).toEqual({
      kind: 'record',
      isFailure: false,
      events: [told],
      change: {
        condition: 'ResultCollected',
        status: 'True',
        reason: 'Accepted',
        message: 'c1',
        patch: { outcome: 'changes' },
      },
    })
  })

  it('is recorded as going on where the step says so', () => {
    const move = afterStep(task(), {
      name: 'suspend',
      outcome: { condition: 'PlanApproved', conditionStatus: 'Unknown', reason: 'Suspended', message: '' },
    })
    expect(move).toMatchObject({ events: [], change: { status: 'Unknown', patch: {} } })
  })

  it.each([
    { end: 'SandboxLost', outcome: 'partial' },
    { end: 'DaemonUnreachable', outcome: 'partial' },
    { end: 'OutOfMemory', outcome: 'partial' },
    { end: 'Completed', outcome: 'changes' },
    { end: 'AgentFailed', outcome: 'changes' },
  ])('work of an agent that ended with $end is shown as $outcome', ({ end, outcome }) => {
    expect(afterStep(task({ conditions: [ended(end)] }), collected)).toMatchObject({ change: { patch: { outcome } } })
  })

  it('no change of an agent that was cut short stays no change', () => {
    const none: EndedStep = {
      name: 'collect',
      outcome: { condition: 'ResultCollected', reason: 'NoChanges', message: '', status: { outcome: 'no_changes' } },
    }
    const move = afterStep(task({ conditions: [ended('SandboxLost')] }), none)
    expect(move).toMatchObject({ change: { patch: { outcome: 'no_changes' } } })
  })
})

describe('a step that failed', () => {
  it('for a reason that may pass is tried again, later each time', () => {
    const lost = new CorralError('ConnectionLost', 'gone')
    const waits = [1, 2, 3, 9].map((failures) => afterStep(task(), failed('setup', lost, failures)))
    expect(waits).toEqual([
      { kind: 'tryAgain', requeueAfterMs: 200 },
      { kind: 'tryAgain', requeueAfterMs: 400 },
      { kind: 'tryAgain', requeueAfterMs: 800 },
      { kind: 'tryAgain', requeueAfterMs: 5_000 },
    ])
  })

  it('for good tells the user what went wrong, in which stage, and what to do', () => {
    const error = new TaskError('SetupFailed', 'exit code 1', { hint: 'Run it by hand.' })
    expect(afterStep(task(), failed('setup', error))).toEqual({
      kind: 'record',
      isFailure: true,
      events: [
        { type: 'error', code: 'SetupFailed', message: 'exit code 1' },
        { type: 'stage', stage: 'setup', state: 'failed', detail: 'exit code 1' },
      ],
      change: {
        condition: 'SetupDone',
        status: 'False',
        reason: 'SetupFailed',
        message: 'exit code 1',
        patch: { cause: { code: 'SetupFailed', message: 'exit code 1', hint: 'Run it by hand.' } },
      },
    })
  })

  it('with a message of any length leaves events that fit into the log', () => {
    const move = afterStep(task(), failed('setup', new TaskError('SetupFailed', 'x'.repeat(100_000))))
    if (move.kind !== 'record') throw new Error('it is recorded')
    const lengths = move.events.map((event) =>
      event.type === 'error' ? event.message.length : event.type === 'stage' ? event.detail?.length : 0,
    )
    expect(lengths).toEqual([60_000, 2_000])
  })

  it.each<{ step: EndedStep['name']; status: string }>([
    { step: 'follow-agent', status: 'True' },
    { step: 'check', status: 'True' },
    { step: 'collect', status: 'False' },
    { step: 'push', status: 'False' },
  ])('$step is recorded as $status: after the agent and its checks, what it left is still taken out', (row) => {
    const move = afterStep(task(), failed(row.step, new TaskError('InvalidTask', 'no')))
    expect(move).toMatchObject({ change: { status: row.status } })
  })

  it('leaves the cause that the agent ended with', () => {
    const cause = { code: 'AgentFailed', message: 'exit code 2' }
    const move = afterStep(task({ cause }), failed('collect', new TaskError('ResultFailed', 'no')))
    expect(move).toMatchObject({ change: { reason: 'ResultFailed', patch: {} } })
    expect(JSON.stringify(move)).not.toContain('"cause"')
  })

  it('for a sandbox lost before the agent started names no cause yet: another sandbox may do', () => {
    const move = afterStep(task(), failed('repository', new TaskError('SandboxLost', 'gone')))
    expect(move).toMatchObject({ change: { condition: 'SandboxReady', status: 'False', patch: {} } })
    expect(JSON.stringify(move)).not.toContain('"cause"')
  })

  const sandbox = { claimName: 'c', sandboxName: 's' }
  it.each<{ when: string; step: EndedStep['name']; code: string; status: AgentTask['status']; kept: boolean }>([
    { when: 'work cannot be taken out', step: 'collect', code: 'ResultFailed', status: { sandbox }, kept: true },
    { when: 'it filled its own disk', step: 'collect', code: 'DiskLimit', status: { sandbox }, kept: false },
    { when: 'it filled the disk', step: 'collect', code: 'DiskFull', status: { sandbox }, kept: false },
    { when: 'the push is refused', step: 'push', code: 'PushRefused', status: { sandbox }, kept: false },
    { when: 'there is none', step: 'collect', code: 'ResultFailed', status: {}, kept: false },
  ])('the sandbox is kept: $kept, when $when', ({ step, code, status, kept }) => {
    const move = afterStep(task(status), failed(step, new TaskError(code, 'no'), 9))
    if (move.kind !== 'record') throw new Error('it is recorded')
    expect(move.change.patch?.sandbox).toEqual(kept ? { ...sandbox, kept: true } : undefined)
  })

  it('records what the step found out before it failed', () => {
    const error = new TaskError('ResultFailed', 'no', { details: { status: { commit: 'c1' } } })
    expect(afterStep(task({ sandbox }), failed('collect', error))).toMatchObject({
      change: { patch: { commit: 'c1', cause: { code: 'ResultFailed' } } },
    })
  })
})

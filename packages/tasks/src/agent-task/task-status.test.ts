import { describe, expect, it } from 'vitest'
import { at, condition, t0, task } from './plan-worlds.test-suite.js'
import { causeOf, type StatusChange, startedAgain, withStatus } from './task-status.js'

const change = (more: Partial<StatusChange> = {}): StatusChange => ({
  ...{ condition: 'Admitted', status: 'True', reason: 'Scheduled', message: 'a place was free' },
  ...more,
})

describe('what is recorded of a task', () => {
  it.each<[StatusChange['condition'], string]>([
    ['Admitted', 'provisioningAt'],
    ['SandboxReady', 'sandboxReadyAt'],
    ['RepositoryReady', 'repositoryReadyAt'],
    ['SetupDone', 'setupDoneAt'],
    ['PlanApproved', 'planApprovedAt'],
    ['AgentStarted', 'runningAt'],
    ['AgentFinished', 'agentFinishedAt'],
    ['ChecksDone', 'checksDoneAt'],
    ['ResultCollected', 'resultCollectedAt'],
    ['Pushed', 'pushedAt'],
    ['Succeeded', 'finishedAt'],
  ])('%s has its time in %s', (type, time) => {
    const times = { queuedAt: t0.toISOString().replace('.000', '') }
    const { status } = withStatus(task(), change({ condition: type }), at(7))
    expect(status?.times).toEqual({ ...times, [time]: at(7).toISOString() })
    const unknown = withStatus(task(), change({ condition: type, status: 'Unknown' }), at(7))
    expect(unknown.status?.times).toEqual(times)
  })

  it('a condition with the generation it is about, and a message that is cut to 8 KiB', () => {
    const { metadata, ...rest } = task()
    const recorded = withStatus(
      { ...rest, metadata: { ...metadata, generation: 3 } },
      change({ message: 'x'.repeat(9_000), patch: { commit: 'abc' } }),
      new Date('2026-01-01T00:00:07.123Z'),
    )
    expect(recorded.status).toMatchObject({ observedGeneration: 3, phase: 'PROVISIONING', commit: 'abc' })
    expect(recorded.status?.conditions).toEqual([
      {
        ...{ type: 'Admitted', status: 'True', reason: 'Scheduled', message: 'x'.repeat(8 * 1024) },
        ...{ lastTransitionTime: '2026-01-01T00:00:07Z', observedGeneration: 3 },
      },
    ])
    expect(withStatus(task(), change(), at(1)).status).not.toHaveProperty('observedGeneration')
  })

  it('earlier times and conditions stay', () => {
    const before = task({ passed: ['Admitted'], status: { times: { provisioningAt: 'then' } } })
    const { status } = withStatus(before, change({ condition: 'SandboxReady' }), at(7))
    expect(status?.times).toMatchObject({ provisioningAt: 'then', sandboxReadyAt: at(7).toISOString() })
    expect(status?.conditions?.map(({ type }) => type)).toEqual(['Admitted', 'SandboxReady'])
  })
})

it('a task that is started again is as it was when it was admitted, with why and how often', () => {
  const times = { queuedAt: 'q', provisioningAt: 'p', sandboxReadyAt: 's', repositoryReadyAt: 'r', setupDoneAt: 'd' }
  const before = task({
    passed: ['Admitted', 'PlanApproved', 'SandboxReady', 'RepositoryReady'],
    status: { times, sandbox: { claimName: 'c' }, baseCommit: 'abc' },
  })
  const { status } = startedAgain(before, { attempt: 2, message: 'y'.repeat(9_000) }, at(7))
  expect(status).toEqual({
    ...{ baseCommit: 'abc', phase: 'PROVISIONING', times: { queuedAt: 'q', provisioningAt: 'p' } },
    conditions: [condition('Admitted'), condition('PlanApproved')],
    attempt: { number: 2, startedAt: at(7).toISOString(), reason: 'y'.repeat(8 * 1024) },
  })
  const { status: _none, ...bare } = task()
  expect(startedAgain(bare, { attempt: 2, message: 'lost' }, at(7)).status).toMatchObject({
    ...{ times: {}, conditions: [], attempt: { number: 2, reason: 'lost' } },
  })
})

it('a cause has the hint of its code, a better one where there is one, and none where none is known', () => {
  expect(causeOf('Timeout', 'late').hint).toBeTruthy()
  expect(causeOf('Timeout', 'late', 'Do this.')).toEqual({ code: 'Timeout', message: 'late', hint: 'Do this.' })
  expect(causeOf('NoSuchCode', 'x'.repeat(9_000))).toEqual({ code: 'NoSuchCode', message: 'x'.repeat(8 * 1024) })
})

import { CorralError } from '@corral/protocol'
import { expect, it } from 'vitest'
import { finalFailure, TaskError } from '../task-error.js'
import { taskLimits } from '../task-state/task-limits.js'
import type { StepName } from './plan.js'
import { judgeFailure, retryMs } from './step-failure.js'

it.each<{ when: string; step: StepName; error: unknown; failures: number; means: unknown }>([
  {
    when: 'the connection is lost once',
    step: 'follow-agent',
    error: new CorralError('ConnectionLost', 'gone'),
    failures: 1,
    means: undefined,
  },
  {
    when: 'the sandbox is lost during set-up',
    step: 'setup',
    error: new TaskError('SandboxLost', 'gone'),
    failures: 1,
    means: { condition: 'SandboxReady', code: 'SandboxLost' },
  },
  {
    when: 'the sandbox is lost while work is collected',
    step: 'collect',
    error: new TaskError('SandboxLost', 'gone'),
    failures: 1,
    means: { condition: 'ResultCollected', code: 'SandboxLost' },
  },
  {
    when: 'the remote is away',
    step: 'push',
    error: new TaskError('PushFailed', 'no answer'),
    failures: 3,
    means: undefined,
  },
  {
    when: 'the remote is a directory that is not mounted at the moment',
    step: 'push',
    error: new TaskError('RepositoryNotFound', 'there is no git repository at /srv/project.git'),
    failures: 3,
    means: undefined,
  },
  {
    when: 'the directory stays away',
    step: 'push',
    error: new TaskError('RepositoryNotFound', 'there is no git repository at /srv/project.git'),
    failures: 12,
    means: { condition: 'Pushed', code: 'RepositoryNotFound' },
  },
  {
    when: 'the remote stays away',
    step: 'push',
    error: new TaskError('PushFailed', 'no answer'),
    failures: 12,
    means: { condition: 'Pushed', code: 'PushFailed' },
  },
  {
    when: 'a step failed often for a reason that may pass',
    step: 'setup',
    error: new Error('the API server is away'),
    failures: 31,
    means: undefined,
  },
  {
    when: 'it does not pass',
    step: 'setup',
    error: new Error('the API server is away'),
    failures: 32,
    means: { condition: 'SetupDone', code: 'InternalError', message: 'the API server is away' },
  },
  {
    when: 'the daemon stays away',
    step: 'follow-agent',
    error: new CorralError('ConnectionLost', 'gone'),
    failures: 32,
    means: { condition: 'AgentFinished', code: 'DaemonUnreachable', message: 'gone' },
  },
  {
    when: 'something that is no Error was thrown',
    step: 'check',
    error: 'just words',
    failures: 32,
    means: { condition: 'ChecksDone', code: 'InternalError', message: 'just words' },
  },
  {
    when: 'the disk is full and what fills it may still be ended',
    step: 'collect',
    error: new TaskError('DiskFull', 'no room'),
    failures: 5,
    means: undefined,
  },
  {
    when: 'set-up has filled the disk and has ended',
    step: 'setup',
    error: new TaskError('DiskFull', 'no room', { details: finalFailure }),
    failures: 1,
    means: { condition: 'SetupDone', code: 'DiskFull' },
  },
  {
    when: 'the disk stays full',
    step: 'collect',
    error: new TaskError('DiskFull', 'no room'),
    failures: 6,
    means: { condition: 'ResultCollected', code: 'DiskFull' },
  },
  {
    when: 'this machine has no room',
    step: 'repository',
    error: Object.assign(new Error('write failed'), { code: 'ENOSPC' }),
    failures: 6,
    means: { condition: 'RepositoryReady', code: 'DiskFull', message: 'write failed' },
  },
  {
    when: 'the program of the agent is not there',
    step: 'start-agent',
    error: new CorralError('CommandNotFound', 'no such program'),
    failures: 1,
    means: { condition: 'AgentStarted', code: 'AgentStartFailed' },
  },
  {
    when: 'the sandbox was deleted while the repository went in',
    step: 'repository',
    error: new CorralError('SandboxDeleted', 'deleted'),
    failures: 1,
    means: { condition: 'SandboxReady', code: 'SandboxLost' },
  },
  {
    when: 'the sandbox was deleted while the agent ran',
    step: 'follow-agent',
    error: new CorralError('SandboxDeleted', 'deleted'),
    failures: 1,
    means: { condition: 'AgentFinished', code: 'SandboxLost' },
  },
  {
    when: 'the address of the repository holds a password',
    step: 'repository',
    error: new TaskError('CredentialsInUrl', 'no passwords'),
    failures: 1,
    means: { condition: 'RepositoryReady', code: 'InvalidTask' },
  },
  {
    when: 'a check has a name that no file can have',
    step: 'check',
    error: new TaskError('BadRequest', 'cannot be the name of a kept file'),
    failures: 1,
    means: { condition: 'ChecksDone', code: 'InvalidTask' },
  },
  {
    when: 'the remote refuses',
    step: 'push',
    error: new TaskError('PushRefused', 'no'),
    failures: 1,
    means: { condition: 'Pushed', code: 'PushRefused' },
  },
])('when $when', ({ step, error, failures, means }) => {
  const judged = judgeFailure(step, error, failures)
  if (means === undefined) expect(judged).toBeUndefined()
  else expect(judged).toMatchObject(means as object)
})

it('a cause is told with its hint and what else the step found out', () => {
  const status = { artifacts: ['work-tree.tar'] }
  const error = new TaskError('ResultFailed', 'no commit', { hint: 'Retry.', details: { status } })
  expect(judgeFailure('collect', error, 1)).toEqual({
    condition: 'ResultCollected',
    code: 'ResultFailed',
    message: 'no commit',
    hint: 'Retry.',
    status,
  })
  expect(judgeFailure('collect', new TaskError('ResultFailed', 'no commit'), 1)).toEqual({
    condition: 'ResultCollected',
    code: 'ResultFailed',
    message: 'no commit',
  })
})

it.each<{ step: StepName; failures: number; waitsMs: number }>([
  { step: 'setup', failures: 1, waitsMs: 200 },
  { step: 'setup', failures: 3, waitsMs: 800 },
  { step: 'setup', failures: 9, waitsMs: 5_000 },
  { step: 'push', failures: 1, waitsMs: 1_000 },
  { step: 'push', failures: 20, waitsMs: 60_000 },
])('after $failures failures $step waits $waitsMs ms', ({ step, failures, waitsMs }) => {
  expect(retryMs(step, failures)).toBe(waitsMs)
})

it('tries a connection to the sandbox longer than a sandbox may be away', () => {
  let waitedMs = 0
  for (let failures = 1; !judgeFailure('follow-agent', new CorralError('ConnectionLost', 'gone'), failures); failures++)
    waitedMs += retryMs('follow-agent', failures)
  expect(waitedMs).toBeGreaterThan(taskLimits.sandboxLostGraceMs)
})

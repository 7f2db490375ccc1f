import { CorralError } from '@corral/protocol'
import { expect, it } from 'vitest'
import { TaskError } from '../task-error.js'
import { type StepName, taskLimits } from './plan.js'
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
    when: 'the remote stays away',
    step: 'push',
    error: new TaskError('PushFailed', 'no answer'),
    failures: 12,
    means: { condition: 'Pushed', code: 'PushFailed' },
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

it('tries a line to the sandbox longer than a sandbox may be away', () => {
  let waitedMs = 0
  for (let failures = 1; !judgeFailure('follow-agent', new CorralError('ConnectionLost', 'gone'), failures); failures++)
    waitedMs += retryMs('follow-agent', failures)
  expect(waitedMs).toBeGreaterThan(taskLimits.sandboxLostGraceMs)
})

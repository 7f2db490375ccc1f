import { describe, expect, it } from 'vitest'
import type { TaskWorld } from './plan.js'
import {
  at,
  attempt,
  claim,
  condition,
  does,
  planOf,
  readyClaim,
  starting,
  task,
  toAgent,
  toEnd,
  toSandbox,
  toSetup,
} from './plan-worlds.test-suite.js'

const awaited: Partial<TaskWorld> = {
  task: task({ passed: ['Admitted'] }),
  claim: claim(condition('Ready', 'False', 'SandboxNotReady')),
}
const badImage = {
  reason: 'ImagePullBackOff',
  message: 'container sandbox: Back-off pulling image',
  code: 'ImagePullFailed',
  patienceMs: 90_000,
} as const
const noRoom = {
  reason: 'Unschedulable',
  message: '0/1 nodes are available',
  code: 'Unschedulable',
  patienceMs: Number.POSITIVE_INFINITY,
} as const
const told = condition('SandboxReady', 'Unknown', 'ImagePullBackOff')

describe('what a task needs next', () => {
  it.each<{ when: string; world: Partial<TaskWorld>; does: string[] }>([
    { when: 'it is new and has no finalizer', world: { task: task({ finalizers: [] }) }, does: ['addFinalizer'] },
    { when: 'a place is free', world: {}, does: ['record Admitted'] },
    { when: 'NFR-2: all places are taken', world: { mayStart: false }, does: [] },
    {
      when: 'it waits and is cancelled',
      world: { mayStart: false, task: task({ spec: { cancelRequested: true } }) },
      does: ['finish Cancelled'],
    },
    ...['PodFailed', 'PodSucceeded', 'ClaimExpired', 'SandboxExpired', 'SandboxMissing'].map((reason) => ({
      when: `its sandbox is gone before it was ready (${reason})`,
      world: { task: task({ passed: ['Admitted'] }), claim: claim(condition('Ready', 'False', reason)) },
      does: ['startAgain'],
    })),
    {
      when: 'it is cancelled while its sandbox is on its way',
      world: { task: task({ passed: ['Admitted'], spec: { cancelRequested: true } }) },
      does: ['finish Cancelled'],
    },
    { when: 'FR-1: it is admitted', world: { task: task({ passed: ['Admitted'] }) }, does: ['createClaim'] },
    {
      when: 'the claim is not ready yet',
      world: { task: task({ passed: ['Admitted'] }), claim: claim(condition('Ready', 'False', 'SandboxNotReady')) },
      does: [],
    },
    {
      when: 'the claim names a pool that is not there',
      world: { task: task({ passed: ['Admitted'] }), claim: claim(condition('Ready', 'False', 'WarmPoolNotFound')) },
      does: ['finish PoolNotFound'],
    },
    {
      when: 'the claim is refused for its metadata',
      world: { task: task({ passed: ['Admitted'] }), claim: claim(condition('Ready', 'False', 'InvalidMetadata')) },
      does: ['finish ClaimFailed'],
    },
    {
      when: 'its image cannot be pulled: that is told',
      world: { ...awaited, podProblem: badImage },
      does: ['recordWaiting'],
    },
    {
      when: 'its image cannot be pulled and that was told',
      world: { ...awaited, podProblem: badImage, task: task({ passed: ['Admitted'], also: [told] }) },
      does: [],
    },
    {
      when: 'its image could not be pulled for a minute and a half',
      world: { ...awaited, podProblem: badImage, now: at(91) },
      does: ['finish ImagePullFailed'],
    },
    {
      when: 'its image will never be pulled',
      world: { ...awaited, podProblem: { ...badImage, patienceMs: 0 } },
      does: ['finish ImagePullFailed'],
    },
    {
      when: 'no node has room after a minute and a half: one may be added',
      world: { ...awaited, podProblem: noRoom, now: at(91) },
      does: ['recordWaiting'],
    },
    {
      when: 'no node had room for five minutes',
      world: { ...awaited, podProblem: noRoom, now: at(301) },
      does: ['finish Unschedulable'],
    },
    {
      when: 'the sandbox came after it had been told to wait',
      world: { task: task({ passed: ['Admitted'], also: [told] }), claim: readyClaim },
      does: ['record SandboxReady'],
    },
    {
      when: 'it asks for egress by name where nodes have none',
      world: { task: task({ spec: { egress: ['a.example:443'] } }), hasEgressByName: false },
      does: ['finish EgressUnsupported'],
    },
    {
      when: 'no sandbox came within five minutes',
      world: {
        task: task({ passed: ['Admitted'] }),
        claim: claim(condition('Ready', 'False', 'SandboxNotReady')),
        now: at(301),
      },
      does: ['finish SandboxNotReady'],
    },
    {
      when: 'the sandbox is ready',
      world: { task: task({ passed: ['Admitted'] }), claim: readyClaim },
      does: ['record SandboxReady'],
    },
    {
      when: 'FR-3: the sandbox is recorded',
      world: { task: task({ passed: toSandbox }), claim: readyClaim },
      does: ['run repository'],
    },
    {
      when: 'the repository step runs already',
      world: { task: task({ passed: toSandbox }), claim: readyClaim, step: { name: 'repository', running: true } },
      does: [],
    },
    {
      when: 'the repository is in',
      world: { task: task({ passed: [...toSandbox, 'RepositoryReady'] }), claim: readyClaim },
      does: ['run setup'],
    },
    {
      when: 'FR-5: set-up is done',
      world: { task: task({ passed: toSetup }), claim: readyClaim },
      does: ['announceAgent'],
    },
    {
      when: 'it is recorded that the agent is about to start',
      world: { task: task({ passed: toSetup, also: [starting] }), claim: readyClaim },
      does: ['run start-agent'],
    },
    {
      when: 'the sandbox dies before the agent is started',
      world: { task: task({ passed: toSetup }), claim: claim(condition('Ready', 'False', 'PodFailed')) },
      does: ['startAgain'],
    },
    {
      when: 'the sandbox dies while a step before the agent runs',
      world: {
        task: task({ passed: toSandbox }),
        claim: claim(condition('Ready', 'False', 'PodFailed')),
        step: { name: 'repository', running: true },
      },
      does: ['abortStep', 'startAgain'],
    },
    {
      when: 'the claim binds to a sandbox that has failed',
      world: { task: task({ passed: ['Admitted'] }), claim: claim(condition('Ready', 'False', 'PodFailed')) },
      does: ['startAgain'],
    },
    {
      when: 'a step found the sandbox lost before the agent was started',
      world: {
        task: task({ passed: ['Admitted'], also: [condition('SandboxReady', 'False', 'SandboxLost')] }),
        claim: readyClaim,
      },
      does: ['startAgain'],
    },
    {
      when: 'the same on the last attempt',
      world: {
        task: task({
          passed: ['Admitted'],
          also: [condition('SandboxReady', 'False', 'SandboxLost')],
          status: attempt(3),
        }),
        claim: readyClaim,
      },
      does: ['finish SandboxLost'],
    },
    {
      when: 'the same after the task was cancelled',
      world: {
        task: task({
          passed: ['Admitted'],
          also: [condition('SandboxReady', 'False', 'SandboxLost')],
          spec: { cancelRequested: true },
        }),
        claim: readyClaim,
      },
      does: ['finish Cancelled'],
    },
    {
      when: 'the claim of the lost sandbox is still going',
      world: {
        task: task({ passed: ['Admitted'], status: attempt(2) }),
        claim: { ...readyClaim, metadata: { ...readyClaim.metadata, deletionTimestamp: '2026-01-01T00:00:01Z' } },
      },
      does: [],
    },
    {
      when: 'the sandbox dies when the agent may have been started: it is never started twice',
      world: {
        task: task({ passed: toSetup, also: [starting] }),
        claim: claim(condition('Ready', 'False', 'PodFailed')),
      },
      does: ['finish SandboxLost'],
    },
    {
      when: 'the repository could not be read',
      world: {
        task: task({ passed: toSandbox, also: [condition('RepositoryReady', 'False', 'RepositoryNotFound')] }),
        claim: readyClaim,
      },
      does: ['finish RepositoryNotFound'],
    },
    {
      when: 'the agent runs',
      world: { task: task({ passed: toAgent }), claim: readyClaim },
      does: ['run follow-agent'],
    },
    {
      when: 'the agent runs and is cancelled',
      world: {
        task: task({ passed: toAgent, spec: { cancelRequested: true } }),
        claim: readyClaim,
        step: { name: 'follow-agent', running: true },
      },
      does: ['abortStep'],
    },
    {
      when: 'the step that followed it has not let go yet',
      world: {
        task: task({ passed: toAgent, spec: { cancelRequested: true } }),
        claim: readyClaim,
        step: { name: 'follow-agent', running: true, aborting: true },
      },
      does: [],
    },
    {
      when: 'the step that followed it is gone',
      world: { task: task({ passed: toAgent, spec: { cancelRequested: true } }), claim: readyClaim },
      does: ['run stop-agent (Cancelled)'],
    },
    {
      when: 'FR-10: the agent is out of time',
      world: {
        task: task({ passed: toAgent }),
        claim: readyClaim,
        now: at(60),
        step: { name: 'follow-agent', running: true },
      },
      does: ['abortStep'],
    },
    {
      when: 'the agent is being stopped',
      world: {
        task: task({ passed: toAgent }),
        claim: readyClaim,
        now: at(61),
        step: { name: 'stop-agent', running: true },
      },
      does: [],
    },
    {
      when: 'the sandbox dies under the agent',
      world: { task: task({ passed: toAgent }), claim: claim(condition('Ready', 'False', 'PodFailed')) },
      does: ['record AgentFinished SandboxLost'],
    },
    {
      when: 'the sandbox is away for a moment',
      world: {
        task: task({ passed: toAgent }),
        claim: claim(condition('Ready', 'False', 'DependenciesNotReady')),
        now: at(10),
      },
      does: ['run follow-agent'],
    },
    {
      when: 'a busy machine takes a minute to start the sandbox again',
      world: {
        task: task({ passed: toAgent, spec: { timeoutSeconds: 600 } }),
        claim: claim(condition('Ready', 'False', 'DependenciesNotReady')),
        now: at(90),
      },
      does: ['run follow-agent'],
    },
    {
      when: 'the sandbox stays away',
      world: {
        task: task({ passed: toAgent, spec: { timeoutSeconds: 600 } }),
        claim: claim(condition('Ready', 'False', 'DependenciesNotReady')),
        now: at(121),
      },
      does: ['record AgentFinished SandboxLost'],
    },
    {
      when: 'the claim vanished under the agent',
      world: { task: task({ passed: toAgent }) },
      does: ['record AgentFinished SandboxLost'],
    },
    {
      when: 'the sandbox went with the agent, which is recorded: the work is what checkpoints saved',
      world: {
        task: task({ passed: toAgent, also: [condition('AgentFinished', 'True', 'SandboxLost')] }),
      },
      does: ['run salvage'],
    },
    {
      when: 'the sandbox is lost while its work is being collected',
      world: { task: task({ passed: toEnd }), step: { name: 'collect', running: true } },
      does: ['abortStep'],
    },
    {
      when: 'the collection of a lost sandbox has not let go yet',
      world: { task: task({ passed: toEnd }), step: { name: 'collect', running: true, aborting: true } },
      does: [],
    },
    {
      when: 'a checkpoint of a lost sandbox was pushed, though the agent had finished',
      world: {
        task: task({
          passed: [...toAgent, 'Pushed'],
          also: [
            condition('AgentFinished', 'True', 'Completed'),
            condition('ResultCollected', 'True', 'FromCheckpoint'),
          ],
          status: { outcome: 'partial', pushed: true },
        }),
      },
      does: ['finish SandboxLost'],
    },
    {
      when: 'a checkpoint was pushed because the agent deleted its work tree',
      world: {
        task: task({
          passed: [...toAgent, 'Pushed'],
          also: [condition('AgentFinished', 'True', 'Completed'), condition('ResultCollected', 'True', 'NotTakenOut')],
          status: { outcome: 'partial', pushed: true },
        }),
      },
      does: ['finish ResultFailed'],
    },
    {
      when: 'nothing of a lost sandbox was saved',
      world: {
        task: task({
          passed: toAgent,
          also: [condition('AgentFinished', 'True', 'Timeout'), condition('ResultCollected', 'True', 'Lost')],
        }),
      },
      does: ['finish Timeout'],
    },
    {
      when: 'it retries a push and is admitted: no sandbox is needed',
      world: { task: task({ passed: ['Admitted'], spec: { retry: { from: 'push', uid: 'u', commit: 'c' } } }) },
      does: ['run take-over'],
    },
    {
      when: 'it retries a push and is cancelled before',
      world: {
        task: task({
          passed: ['Admitted'],
          spec: { retry: { from: 'push', uid: 'u', commit: 'c' }, cancelRequested: true },
        }),
      },
      does: ['finish Cancelled'],
    },
    {
      when: 'it retries an agent',
      world: { task: task({ passed: ['Admitted'], spec: { retry: { from: 'agent', uid: 'u' } } }) },
      does: ['createClaim'],
    },
    {
      when: 'FR-6: the agent ended',
      world: { task: task({ passed: toEnd }), claim: readyClaim },
      does: ['run collect'],
    },
    {
      when: 'the agent timed out, its work is still collected',
      world: {
        task: task({ passed: toAgent, also: [condition('AgentFinished', 'True', 'Timeout')] }),
        claim: readyClaim,
        now: at(70),
      },
      does: ['run collect'],
    },
    {
      when: 'FR-7: the result is accepted',
      world: {
        task: task({ passed: [...toEnd, 'ResultCollected'], status: { outcome: 'changes' } }),
        claim: readyClaim,
      },
      does: ['run push'],
    },
    ...[
      { when: 'the push has not failed yet', failures: 0, does: [] },
      { when: 'the remote was away', failures: 1, does: ['abortStep', 'finish Cancelled'] },
    ].map(({ when, failures, does }) => ({
      when: `it is cancelled while its work is pushed: ${when}`,
      world: {
        task: task({
          passed: [...toEnd, 'ResultCollected'],
          spec: { cancelRequested: true },
          status: { outcome: 'changes' },
        }),
        claim: readyClaim,
        step: { name: 'push', running: true, failures } as const,
      },
      does,
    })),
    {
      when: 'nothing changed',
      world: {
        task: task({
          passed: [...toAgent, 'ResultCollected'],
          also: [condition('AgentFinished', 'True', 'Completed')],
          status: { outcome: 'no_changes' },
        }),
        claim: readyClaim,
      },
      does: ['finish Succeeded'],
    },
    {
      when: 'the branch is pushed',
      world: {
        task: task({
          passed: [...toAgent, 'ResultCollected', 'Pushed'],
          also: [condition('AgentFinished', 'True', 'Completed')],
          status: { outcome: 'changes' },
        }),
        claim: readyClaim,
      },
      does: ['finish Succeeded'],
    },
    {
      when: 'the agent failed and its work is pushed',
      world: {
        task: task({
          passed: [...toAgent, 'ResultCollected', 'Pushed'],
          also: [condition('AgentFinished', 'True', 'AgentFailed')],
          status: { outcome: 'changes' },
        }),
        claim: readyClaim,
      },
      does: ['finish AgentFailed'],
    },
    {
      when: 'the push was refused',
      world: {
        task: task({
          passed: [...toAgent, 'ResultCollected'],
          also: [condition('AgentFinished', 'True', 'Completed'), condition('Pushed', 'False', 'PushRefused')],
          status: { outcome: 'changes' },
        }),
        claim: readyClaim,
      },
      does: ['finish PushRefused'],
    },
    {
      when: 'the agent timed out and the result was rejected',
      world: {
        task: task({
          passed: toAgent,
          also: [
            condition('AgentFinished', 'True', 'Timeout'),
            condition('ResultCollected', 'False', 'ResultRejected'),
          ],
        }),
        claim: readyClaim,
      },
      does: ['finish Timeout'],
    },
    {
      when: 'S1-F4c S1-K2: the end is recorded',
      world: { task: task({ passed: toEnd, also: [condition('Succeeded')] }), claim: readyClaim },
      does: ['deleteClaim'],
    },
    {
      when: 'a failed one is to be kept',
      world: {
        task: task({
          passed: toEnd,
          spec: { keepSandbox: true },
          also: [condition('Succeeded', 'False', 'AgentFailed')],
        }),
        claim: readyClaim,
      },
      does: [],
    },
    {
      when: 'a kept one is deleted',
      world: {
        task: task({
          passed: toEnd,
          deleting: true,
          spec: { keepSandbox: true },
          also: [condition('Succeeded', 'False', 'AgentFailed')],
        }),
        claim: readyClaim,
      },
      does: ['deleteClaim'],
    },
    {
      when: 'it ended and nothing is left',
      world: { task: task({ passed: toEnd, also: [condition('Succeeded')] }) },
      does: [],
    },
    {
      when: 'it is deleted while the agent runs',
      world: { task: task({ passed: toAgent, deleting: true }), claim: readyClaim },
      does: ['run stop-agent (Cancelled)'],
    },
    {
      when: 'it is deleted, ended and cleaned up',
      world: { task: task({ passed: toEnd, deleting: true, also: [condition('Succeeded')] }) },
      does: ['removeFinalizer'],
    },
  ])('when $when', ({ world, does: expected }) => {
    expect(does(world)).toEqual(expected)
  })

  it.each([
    { when: 'a follow-up may have taken the sandbox over', heldUntil: '2026-01-01T00:00:00Z', onlyUnchanged: true },
    { when: 'the sandbox was never held', heldUntil: undefined, onlyUnchanged: false },
  ])('the claim is deleted only as it was read: $onlyUnchanged, when $when', ({ heldUntil, onlyUnchanged }) => {
    const sandbox = { claimName: 'task-a', ...(heldUntil ? { heldUntil } : {}) }
    const also = [condition('Succeeded')]
    const ended = task({ passed: toEnd, also, status: { sandbox }, deleting: true })
    const { actions } = planOf({ task: ended, claim: readyClaim })
    expect(actions).toEqual([{ kind: 'deleteClaim', onlyUnchanged }])
  })

  it('NFR-3: without a timeout of its own an agent has thirty minutes', () => {
    const shape = task({ passed: toAgent })
    const { timeoutSeconds: _, ...spec } = shape.spec
    expect(does({ task: { ...shape, spec }, claim: readyClaim, now: at(1799) })).toEqual(['run follow-agent'])
    expect(does({ task: { ...shape, spec }, claim: readyClaim, now: at(1800) })).toEqual(['run stop-agent (Timeout)'])
  })
})

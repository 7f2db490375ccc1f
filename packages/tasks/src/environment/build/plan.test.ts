import type { Environment, EnvironmentBuild, SandboxClaim, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { buildLimits, type EnvironmentWorld, environmentFinalizer, planEnvironment } from './plan.js'

const t0 = new Date('2026-03-01T10:00:00Z')
const at = (ms: number): Date => new Date(t0.getTime() + ms)

const build: EnvironmentBuild = {
  ...{ request: 'one', number: 1, attempt: 1, uid: 'b1', state: 'Starting', claimName: 'shop-b1-1' },
  startedAt: t0.toISOString(),
  attemptStartedAt: t0.toISOString(),
}
const running: EnvironmentBuild = { ...build, state: 'Running', sandboxName: 's', podName: 'p', podUid: 'u' }
const failedBuild: EnvironmentBuild = {
  ...running,
  state: 'Failed',
  finishedAt: t0.toISOString(),
  cause: { code: 'SetupFailed', message: 'exit code 1' },
}

function environment(
  last?: EnvironmentBuild,
  { request = 'one', ...metadata }: { request?: string; deletionTimestamp?: string; finalizers?: string[] } = {},
): Stored<Environment> {
  return {
    metadata: {
      ...{ name: 'shop', namespace: 'default', uid: 'e', resourceVersion: '1', generation: 1 },
      creationTimestamp: t0.toISOString(),
      finalizers: [environmentFinalizer],
      ...metadata,
    },
    spec: { repository: { url: '/srv/shop' }, ref: 'main', build: { request } },
    ...(last ? { status: { build: last } } : {}),
  } as Stored<Environment>
}

function claim(ready?: 'True' | 'False', deleting = false): Stored<SandboxClaim> {
  const conditions = ready
    ? [{ type: 'Ready', status: ready, reason: 'R', message: 'm', lastTransitionTime: t0.toISOString() }]
    : []
  return {
    metadata: {
      ...{ name: 'shop-b1-1', namespace: 'default', uid: 'c', resourceVersion: '1' },
      creationTimestamp: t0.toISOString(),
      ...(deleting ? { deletionTimestamp: t0.toISOString() } : {}),
    },
    spec: { warmPoolRef: { name: 'default' } },
    status: { conditions, sandbox: { name: 's' } },
  } as unknown as Stored<SandboxClaim>
}

const sealed = {
  ...{ name: 'shop-1', environment: 'shop', environmentUid: 'e', build: 'b1', key: 'k', baseKey: 'bk', commit: 'c0' },
  files: [{ path: 'package-lock.json', oid: 'aa' }],
  ...{ builtAt: t0.toISOString(), sizeBytes: 10, fileCount: 2, isInUse: false },
}
const sandbox = { sandboxName: 's', podName: 'p', podUid: 'u' }

const plan = (world: Partial<EnvironmentWorld>) =>
  planEnvironment({
    environment: environment(),
    claim: undefined,
    sandbox: undefined,
    isWorking: false,
    snapshots: [],
    prunable: [],
    nextUid: 'next',
    now: t0,
    ...world,
  })

const failure = { code: 'SetupFailed', message: 'exit code 1', key: 'k', isSandboxLost: false }
const lost = { code: 'SandboxLost', message: 'gone', isSandboxLost: true }

describe('what an environment needs next', () => {
  it.each<{ when: string; world: Partial<EnvironmentWorld>; does: string[]; state?: string; more?: object }>([
    { when: 'it is new', world: { environment: environment(undefined, { finalizers: [] }) }, does: ['addFinalizer'] },
    {
      when: 'a build is asked for',
      world: {},
      does: [],
      state: 'Starting',
      more: { number: 1, uid: 'next', claimName: 'shop-b1-1' },
    },
    { when: 'a build has begun', world: { environment: environment(build) }, does: ['createClaim'], state: 'Starting' },
    {
      when: 'its sandbox is ready',
      world: { environment: environment(build), claim: claim('True'), sandbox },
      does: [],
      state: 'Running',
      more: { podUid: 'u' },
    },
    {
      when: 'the sandbox is recorded, also by a process that is gone',
      world: { environment: environment(running), claim: claim('True') },
      does: ['work'],
      state: 'Running',
    },
    {
      when: 'this process works on it',
      world: { environment: environment(running), claim: claim('True'), isWorking: true },
      does: [],
      state: 'Running',
    },
    {
      when: 'it was sealed by a process that was killed before it could say so',
      world: { environment: environment(running), claim: claim('False'), snapshots: [sealed] },
      does: [],
      state: 'Succeeded',
      more: { snapshot: 'shop-1', key: 'k' },
    },
    {
      when: 'set-up failed',
      world: { environment: environment(running), claim: claim('True'), ended: { failure } },
      does: [],
      state: 'Failed',
      more: { cause: { code: 'SetupFailed', message: 'exit code 1' }, key: 'k' },
    },
    {
      when: 'its sandbox was lost',
      world: { environment: environment(running), claim: claim('True'), ended: { failure: lost } },
      does: ['deleteClaim'],
      state: 'Starting',
      more: { attempt: 2, claimName: 'shop-b1-2' },
    },
    {
      when: 'its claim is gone',
      world: { environment: environment(running) },
      does: [],
      state: 'Starting',
      more: { attempt: 2 },
    },
    {
      when: 'too many sandboxes were lost',
      world: { environment: environment({ ...running, attempt: buildLimits.attempts }) },
      does: [],
      state: 'Failed',
      more: { cause: { code: 'SandboxLost', message: 'its sandbox is gone' } },
    },
    {
      when: 'its sandbox is away for a moment',
      world: { environment: environment(running), claim: claim('False') },
      does: [],
      state: 'Running',
    },
    {
      when: 'its pod is over because it is being sealed, however long that takes',
      world: {
        ...{ environment: environment(running), claim: claim('False'), isWorking: true, isSealing: true },
        now: at(600_000),
      },
      does: [],
      state: 'Running',
    },
    {
      when: 'its sandbox stays away',
      world: { environment: environment(running), claim: claim('False'), isWorking: true, now: at(31_000) },
      does: ['abort', 'deleteClaim'],
      state: 'Starting',
      more: { attempt: 2 },
    },
    {
      when: 'there is no sandbox in time',
      world: { environment: environment(build), claim: claim('False'), now: at(buildLimits.provisioningMs) },
      does: [],
      state: 'Failed',
      more: { cause: { code: 'ProvisioningTimeout', message: expect.stringContaining('not ready in time: m') } },
    },
    {
      when: 'the record of its success stands',
      world: {
        environment: environment({ ...running, state: 'Succeeded' }),
        claim: claim('True'),
        snapshots: [sealed],
      },
      does: ['deleteClaim'],
      state: 'Succeeded',
    },
    {
      when: 'it failed a moment ago',
      world: { environment: environment(failedBuild), claim: claim('True') },
      does: [],
      state: 'Failed',
    },
    {
      when: 'it failed a moment ago because it filled the disk, which nobody can use while it is kept',
      world: {
        environment: environment({ ...failedBuild, cause: { code: 'DiskFull', message: 'no room' } }),
        claim: claim('True'),
      },
      does: ['deleteClaim'],
      state: 'Failed',
    },
    {
      when: 'it failed a moment ago before anything was run, which leaves nothing to look at',
      world: {
        environment: environment({ ...failedBuild, cause: { code: 'EnvironmentInvalid', message: 'no set-up' } }),
        claim: claim('True'),
      },
      does: ['deleteClaim'],
      state: 'Failed',
    },
    {
      when: 'it failed and nobody looked',
      world: { environment: environment(failedBuild), claim: claim('True'), now: at(buildLimits.keepFailedMs) },
      does: ['deleteClaim'],
      state: 'Failed',
    },
    {
      when: 'it failed and is asked for again',
      world: { environment: environment(failedBuild, { request: 'two' }), claim: claim('True') },
      does: ['deleteClaim'],
      state: 'Failed',
    },
    {
      when: 'the sandbox of the failed one is gone',
      world: { environment: environment(failedBuild, { request: 'two' }) },
      does: ['forgetBuild'],
      state: 'Starting',
      more: { number: 2, request: 'two', claimName: 'shop-b2-1' },
    },
    {
      when: 'another build is asked for while one runs',
      world: { environment: environment(running, { request: 'two' }), claim: claim('True'), isWorking: true },
      does: [],
      state: 'Running',
    },
    {
      when: 'a snapshot is to go',
      world: {
        environment: environment({ ...running, state: 'Succeeded' }),
        snapshots: [sealed],
        prunable: ['shop-1'],
      },
      does: ['removeSnapshot'],
      state: 'Succeeded',
    },
    {
      when: 'it is deleted while it builds',
      world: {
        environment: environment(running, { deletionTimestamp: t0.toISOString() }),
        claim: claim('True'),
        isWorking: true,
      },
      does: ['abort', 'deleteClaim'],
    },
    {
      when: 'it is deleted and a pod has a snapshot of it',
      world: {
        environment: environment(undefined, { deletionTimestamp: t0.toISOString() }),
        snapshots: [sealed, { ...sealed, name: 'shop-2', isInUse: true }],
      },
      does: ['removeSnapshot'],
    },
    {
      when: 'it is deleted and nothing is left of it',
      world: { environment: environment(failedBuild, { deletionTimestamp: t0.toISOString() }) },
      does: ['forgetBuild', 'removeFinalizer'],
    },
  ])('when $when', ({ world, does, state, more }) => {
    const { actions, status } = plan(world)
    expect(actions.map(({ kind }) => kind)).toEqual(does)
    expect(status.build?.state).toBe(state ?? world.environment?.status?.build?.state)
    if (more) expect(status.build).toMatchObject(more)
  })

  it('rests once nothing changes any more', () => {
    const done = environment({ ...running, state: 'Succeeded' })
    const first = plan({ environment: done, snapshots: [sealed] })
    const second = plan({ environment: { ...done, status: first.status }, snapshots: [sealed], now: at(1_000) })
    expect(second.actions).toEqual([])
    expect(second.status).toEqual(first.status)
  })

  it.each([
    { when: 'nothing was built', world: {}, built: 'False', reason: 'NotBuilt', stale: 'UpToDate' },
    {
      when: 'there is a snapshot',
      world: { environment: environment({ ...running, state: 'Succeeded' as const }), snapshots: [sealed] },
      built: 'True',
      reason: 'Sealed',
      stale: 'UpToDate',
    },
    {
      when: 'the newest is a week old',
      world: { environment: environment(), snapshots: [sealed], now: at(8 * 24 * 60 * 60_000) },
      built: 'True',
      reason: 'Sealed',
      stale: 'Age',
    },
    {
      when: 'the last build failed',
      world: { environment: environment(failedBuild) },
      built: 'False',
      reason: 'SetupFailed',
      stale: 'UpToDate',
    },
    {
      when: 'the last build failed and there is an earlier snapshot',
      world: { environment: environment(failedBuild), snapshots: [sealed] },
      built: 'True',
      reason: 'Sealed',
      stale: 'BuildFailed',
    },
  ])('its conditions when $when', ({ world, built, reason, stale }) => {
    const base = world.environment ?? environment(undefined, { request: 'one' })
    const { conditions } = plan({
      ...world,
      environment: {
        ...base,
        spec: { ...base.spec, ...(base.status?.build ? {} : { build: undefined }) },
      } as Stored<Environment>,
    }).status
    expect(conditions).toMatchObject([
      { type: 'Built', status: built, reason },
      { type: 'Stale', reason: stale },
    ])
  })
})

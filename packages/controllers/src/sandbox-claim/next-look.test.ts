import { expect, it } from 'vitest'
import { ClaimProblem, type ProblemKind } from './claim-problem.js'
import { type NextLook, nextLook } from './next-look.js'

const problem = (kind: ProblemKind): ClaimProblem => new ClaimProblem(kind, 'no')

it.each<{ when: string; world: Partial<Parameters<typeof nextLook>[0]>; look: NextLook }>([
  { when: 'all is well and it has no end', world: {}, look: { kind: 'rest' } },
  {
    when: 'its time is up some day',
    world: { expiry: { expired: false, leftMs: 700 } },
    look: { kind: 'rest', requeueAfterMs: 700 },
  },
  {
    when: 'its time was up meanwhile: at once',
    world: { expiry: { expired: true } },
    look: { kind: 'rest', requeueAfterMs: 1 },
  },
  {
    when: 'its end was recorded before',
    world: { isExpired: true, expiry: { expired: true } },
    look: { kind: 'rest' },
  },
  {
    when: 'another writer was faster',
    world: { isWritten: false },
    look: { kind: 'rest', requeueAfterMs: 500 },
  },
  {
    when: 'another writer was faster and its time is up before',
    world: { isWritten: false, expiry: { expired: false, leftMs: 200 } },
    look: { kind: 'rest', requeueAfterMs: 200 },
  },
  {
    when: 'its pool is missing: a watch may have missed it',
    world: { problem: problem('WarmPoolNotFound') },
    look: { kind: 'rest', requeueAfterMs: 60_000 },
  },
  {
    when: 'its template is missing and its time is up before',
    world: { problem: problem('TemplateNotFound'), expiry: { expired: false, leftMs: 5_000 } },
    look: { kind: 'rest', requeueAfterMs: 5_000 },
  },
  {
    when: 'the answer to a creation is pending',
    world: { problem: problem('SandboxCreatePending') },
    look: { kind: 'rest', requeueAfterMs: 200 },
  },
  ...(['InvalidMetadata', 'NotOwned', 'EnvVarsInjectionRejected', 'VolumeClaimTemplatesError'] as const).map(
    (kind) => ({
      when: `the user has to change something (${kind}): no retry`,
      world: { problem: problem(kind) },
      look: { kind: 'rest' } as const,
    }),
  ),
  { when: 'a write failed', world: { problem: problem('ReconcilerError') }, look: { kind: 'fail' } },
  {
    when: 'an adoption was lost to another claim',
    world: { problem: problem('AdoptionConflict'), expiry: { expired: false, leftMs: 5_000 } },
    look: { kind: 'fail' },
  },
])('when $when', ({ world, look }) => {
  const none = { problem: undefined, isExpired: false, expiry: { expired: false } as const, isWritten: true }
  expect(nextLook({ ...none, ...world })).toEqual(look)
})

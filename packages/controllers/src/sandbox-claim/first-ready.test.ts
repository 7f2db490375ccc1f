import type { Sandbox, SandboxClaim, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import type { ClaimMetrics } from '../shared/metrics.js'
import { annotations, labels } from '../shared/names.js'
import { ClaimProblem, isSuppressed, type ProblemKind, quietRetryMs, toProblem } from './claim-problem.js'
import { countFirstReady, launchLabels } from './first-ready.js'

const now = new Date('2026-01-01T00:00:10Z')
const observedAt = new Date('2026-01-01T00:00:03Z')
const warm = { labels: { [labels.launchType]: 'warm' }, annotations: { [annotations.templateRef]: 't' } }
const sandbox = (metadata: object = {}, status?: object): Stored<Sandbox> =>
  ({
    metadata: { name: 's', namespace: 'n', creationTimestamp: '2026-01-01T00:00:01Z', ...metadata },
    spec: {},
    ...(status && { status }),
  }) as unknown as Stored<Sandbox>
const ready = (at: string, status = 'True') => ({
  conditions: [{ type: 'Ready', status, lastTransitionTime: at }],
})

/** What is observed when a claim is Ready for the first time, in words. */
function observed(stamps: Record<string, string> | undefined, of: Stored<Sandbox> | undefined): string[] {
  const words: string[] = []
  const note =
    (what: string) =>
    (ms: number, launch: { launchType: string; template: string; namespace?: string }): void => {
      const where = launch.namespace === undefined ? '' : ` in "${launch.namespace}"`
      words.push(`${what} ${ms} ms ${launch.launchType} ${launch.template}${where}`)
    }
  const metrics: ClaimMetrics = {
    created: () => words.push('created'),
    webhookLatency: note('webhook'),
    controllerLatency: note('controller'),
    clientLatency: note('client'),
    creationLatency: note('sandbox'),
  }
  const claim = { metadata: { name: 'c', ...(stamps && { annotations: stamps }) } } as unknown as Stored<SandboxClaim>
  countFirstReady(claim, of, observedAt, metrics, now)
  return words
}

describe('latencies of a claim that is Ready', () => {
  it.each<{ when: string; stamps?: Record<string, string>; sandbox?: Stored<Sandbox>; is: string[] }>([
    { when: 'nothing is stamped: what this process saw', is: ['controller 7000 ms unknown __unknown__'] },
    {
      when: 'every stamp is there',
      stamps: {
        [annotations.webhookObservedAt]: '2026-01-01T00:00:08Z',
        [annotations.firstObservedAt]: '2026-01-01T00:00:05Z',
        [annotations.clientRequestedAt]: '2026-01-01T00:00:04Z',
      },
      sandbox: sandbox(warm, ready('2026-01-01T00:00:09Z')),
      is: [
        'webhook 2000 ms warm t',
        'controller 5000 ms warm t',
        'client 6000 ms warm t',
        'sandbox 8000 ms warm t in "n"',
      ],
    },
    {
      when: 'stamps are of this very moment',
      stamps: {
        [annotations.webhookObservedAt]: now.toISOString(),
        [annotations.clientRequestedAt]: now.toISOString(),
      },
      sandbox: sandbox({ namespace: undefined }, ready('2026-01-01T00:00:01Z')),
      is: [
        'webhook 0 ms cold __unknown__',
        'controller 7000 ms cold __unknown__',
        'client 0 ms cold __unknown__',
        'sandbox 0 ms cold __unknown__ in ""',
      ],
    },
    {
      when: 'the clocks of others are ahead: what cannot be is not counted',
      stamps: {
        [annotations.webhookObservedAt]: '2026-01-01T00:00:11Z',
        [annotations.clientRequestedAt]: '2026-01-01T00:00:11Z',
      },
      sandbox: sandbox({}, ready('2026-01-01T00:00:00Z')),
      is: ['controller 7000 ms cold __unknown__'],
    },
    {
      when: 'a stamp is not a time',
      stamps: { [annotations.firstObservedAt]: 'x', [annotations.webhookObservedAt]: 'x' },
      is: [],
    },
    {
      when: 'the Sandbox is not Ready',
      sandbox: sandbox({}, ready('2026-01-01T00:00:09Z', 'False')),
      is: ['controller 7000 ms cold __unknown__'],
    },
    { when: 'the Sandbox has no status', sandbox: sandbox(), is: ['controller 7000 ms cold __unknown__'] },
  ])('when $when', ({ stamps, sandbox, is }) => {
    expect(observed(stamps, sandbox)).toEqual(is)
  })

  it('name the template and how the Sandbox was started', () => {
    expect([undefined, sandbox(warm), sandbox(), { spec: {} } as Sandbox].map(launchLabels)).toEqual([
      { launchType: 'unknown', template: '__unknown__' },
      { launchType: 'warm', template: 't' },
      { launchType: 'cold', template: '__unknown__' },
      { launchType: 'cold', template: '__unknown__' },
    ])
  })
})

describe('what keeps a claim from its sandbox', () => {
  it.each<{ kind: ProblemKind; how: string }>([
    { kind: 'TemplateNotFound', how: 'again in 60000 ms' },
    { kind: 'WarmPoolNotFound', how: 'again in 60000 ms' },
    { kind: 'SandboxCreatePending', how: 'again in 200 ms' },
    { kind: 'AdoptionConflict', how: 'again with back-off' },
    { kind: 'ReconcilerError', how: 'again with back-off' },
    { kind: 'InvalidMetadata', how: 'not before the user changes something' },
    { kind: 'NotOwned', how: 'not before the user changes something' },
    { kind: 'EnvVarsInjectionRejected', how: 'not before the user changes something' },
    { kind: 'VolumeClaimTemplatesError', how: 'not before the user changes something' },
  ])('$kind is tried $how', ({ kind, how }) => {
    const problem = new ClaimProblem(kind, 'why')
    const retryMs = quietRetryMs(problem)
    const otherwise = isSuppressed(problem) ? 'not before the user changes something' : 'again with back-off'
    expect(retryMs === undefined ? otherwise : `again in ${retryMs} ms`).toBe(how)
    expect(retryMs !== undefined && isSuppressed(problem)).toBe(false)
    expect(problem).toMatchObject({ name: 'ClaimProblem', code: kind, message: 'why', shown: 'why' })
  })

  it('is shown in other words where it has some, and keeps its cause', () => {
    const cause = new Error('socket')
    const problem = new ClaimProblem('NotOwned', 'long', { shown: 'short', cause })
    expect(problem).toMatchObject({ message: 'long', shown: 'short', cause })
    expect(toProblem(problem)).toBe(problem)
    expect(toProblem(cause)).toMatchObject({ code: 'ReconcilerError', message: 'socket', cause })
  })
})

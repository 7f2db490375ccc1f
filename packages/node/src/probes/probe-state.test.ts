import type { Probe } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { newProbeState, nextProbeDelayMs, type ProbeKind, type ProbeState, stepProbe } from './probe-state.js'

const verdicts = (probe: Probe, results: string): string => {
  let state: ProbeState = newProbeState
  return [...results]
    .map((result) => {
      state = stepProbe(state, probe, result === '+' ? 'success' : 'failure')
      return state.verdict === undefined ? '?' : state.verdict === 'success' ? '+' : '-'
    })
    .join('')
}

describe('stepProbe', () => {
  it.each<{ when: string; probe: Probe; sees: string; decides: string }>([
    { when: 'thresholds are the defaults', probe: {}, sees: '+--+---+', decides: '+++++' + '+-+' },
    { when: 'it never succeeds', probe: {}, sees: '----', decides: '??--' },
    { when: 'one failure is enough', probe: { failureThreshold: 1 }, sees: '+-+', decides: '+-+' },
    {
      when: 'two successes are needed',
      probe: { successThreshold: 2, failureThreshold: 1 },
      sees: '+-++',
      decides: '?--+',
    },
  ])('when $when', ({ probe, sees, decides }) => {
    expect(verdicts(probe, sees)).toBe(decides)
  })
})

describe('nextProbeDelayMs', () => {
  const failing: ProbeState = { inARow: 1, lastResult: 'failure' }
  const up: ProbeState = { inARow: 1, lastResult: 'success', verdict: 'success' }
  const http: Probe = { httpGet: { port: 80 }, periodSeconds: 10 }
  it.each<{
    when: string
    kind: ProbeKind
    probe: Probe
    state: ProbeState
    tries: number
    since: number
    waits: number
    early: boolean
  }>([
    {
      when: 'a server is coming up',
      kind: 'readiness',
      probe: http,
      state: failing,
      tries: 0,
      since: 0,
      waits: 50,
      early: true,
    },
    {
      when: 'a server takes longer',
      kind: 'startup',
      probe: http,
      state: failing,
      tries: 3,
      since: 400,
      waits: 400,
      early: true,
    },
    {
      when: 'the next period is nearer',
      kind: 'readiness',
      probe: http,
      state: failing,
      tries: 8,
      since: 9000,
      waits: 1000,
      early: false,
    },
    { when: 'it is up', kind: 'readiness', probe: http, state: up, tries: 0, since: 100, waits: 9900, early: false },
    {
      when: 'looking costs a process',
      kind: 'readiness',
      probe: { exec: {}, periodSeconds: 5 },
      state: failing,
      tries: 0,
      since: 0,
      waits: 5000,
      early: false,
    },
    {
      when: 'a failure would restart it',
      kind: 'liveness',
      probe: http,
      state: failing,
      tries: 0,
      since: 0,
      waits: 10_000,
      early: false,
    },
  ])('when $when', ({ kind, probe, state, tries, since, waits, early }) => {
    expect(nextProbeDelayMs(kind, probe, state, tries, since)).toEqual({ delayMs: waits, isEarly: early })
  })
})

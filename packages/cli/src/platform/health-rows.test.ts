import type { ClusterHealth } from '@corral/agent-sandbox-sdk'
import { describe, expect, it } from 'vitest'
import { healthRows } from './health-rows.js'

const good: ClusterHealth = {
  healthy: true,
  crdRegistered: true,
  crdVersions: { 'agents.x-k8s.io': ['v1beta1'], 'extensions.agents.x-k8s.io': ['v1beta1'] },
  namespace: 'corral',
  namespaceExists: true,
  controllerInstalled: true,
  clusterVersion: 'v1.34.0',
  permissions: { 'create sandboxclaims': true },
  runtimeClasses: ['gvisor'],
  warmPools: [{ name: 'default', replicas: 2, ready: 2 }],
  networkPolicyEnforced: true,
  problems: [],
}
const states = (health: Partial<ClusterHealth>, settings: { runtime_class?: string } = {}) =>
  Object.fromEntries(healthRows({ ...good, ...health }, settings).map(({ check, state }) => [check, state]))
const allGood = states({})

describe('rows of a connection test', () => {
  it('are all good on a good cluster', () => {
    expect(new Set(Object.values(allGood))).toEqual(new Set(['ok']))
  })

  it.each<[string, Partial<ClusterHealth>, { runtime_class?: string }, Record<string, string>]>([
    ['a missing namespace is that row alone', { namespaceExists: false }, {}, { namespace: 'fail' }],
    ['missing kinds are that row alone', { crdRegistered: false, crdVersions: {} }, {}, { kinds: 'fail' }],
    ['a missing controller is that row alone', { controllerInstalled: false }, {}, { controller: 'fail' }],
    ['a refused verb is that row alone', { permissions: { 'get pods': false } }, {}, { permissions: 'fail' }],
    ['a runtime class that is there is good', {}, { runtime_class: 'gvisor' }, {}],
    ['a runtime class that is not there fails', {}, { runtime_class: 'kata' }, { 'runtime-class': 'fail' }],
    [
      'a runtime class that cannot be looked up is a warning',
      { runtimeClasses: [], problems: [{ check: 'runtimeClasses', message: 'forbidden', remedy: 'Ask.' }] },
      { runtime_class: 'kata' },
      { 'runtime-class': 'warn' },
    ],
    [
      'a namespace that may be used but not read is a warning',
      { problems: [{ check: 'namespaceExists', message: 'forbidden', remedy: 'Ask.' }] },
      {},
      { namespace: 'warn' },
    ],
    [
      'network policies of which nothing is known are a warning',
      { networkPolicyEnforced: undefined as never },
      {},
      { 'network-policy': 'warn' },
    ],
    ['no pool fails', { warmPools: [] }, {}, { pools: 'fail' }],
    ['a pool that fills is a warning', { warmPools: [{ name: 'a', replicas: 2, ready: 1 }] }, {}, { pools: 'warn' }],
  ])('%s', (_, health, settings, differing) => {
    expect(states(health, settings)).toEqual({ ...allGood, ...differing })
  })

  it('every failure says what to do about it', () => {
    const bad = { ...good, namespaceExists: false, controllerInstalled: false, warmPools: [] }
    const failed = healthRows(bad, { runtime_class: 'kata' }).filter(({ state }) => state === 'fail')
    expect(failed.map(({ check }) => check)).toEqual(['namespace', 'controller', 'runtime-class', 'pools'])
    for (const { command } of failed) expect(command).toMatch(/^(kubectl|corral) /)
  })

  it('what may only not be looked at is not offered to be made', () => {
    const problems = [{ check: 'namespaceExists', message: 'forbidden', remedy: 'Ask.' }]
    const row = healthRows({ ...good, problems }, {}).find(({ check }) => check === 'namespace')
    expect(row).toEqual({ check: 'namespace', title: 'Namespace', state: 'warn', detail: 'forbidden', remedy: 'Ask.' })
  })

  it('a cluster that does not answer is one failure, and nothing is known of the rest', () => {
    const problems = [{ check: 'clusterVersion', message: 'connect ECONNREFUSED', remedy: 'Check that it runs.' }]
    const { clusterVersion: _, ...silent } = good
    const rows = healthRows({ ...silent, healthy: false, problems }, { context: 'staging' })
    expect(rows[0]).toMatchObject({ check: 'api', state: 'fail', command: 'kubectl --context staging version' })
    expect(new Set(rows.slice(1).map(({ state }) => state))).toEqual(new Set(['skipped']))
  })
})

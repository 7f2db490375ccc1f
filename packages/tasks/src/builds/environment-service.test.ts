import type { Environment, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { createEnvironmentService } from './environment-service.js'

type State = 'Running' | 'Succeeded'

const environment = (number: number, state: State): Stored<Environment> =>
  ({
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'Environment',
    metadata: { name: 'app-1', namespace: 'corral', uid: 'u', resourceVersion: '7', creationTimestamp: '' },
    spec: { repository: { url: '/src/app' }, build: { request: 'theirs' } },
    status: { build: { request: 'theirs', uid: 'b', number, state, startedAt: '2026-01-01T00:00:00Z' } },
  }) as Stored<Environment>

/** What a client is answered whose request finds these states of the object, one after the other; the last one stays. */
async function asked(...states: [number, State][]) {
  const patches: unknown[] = []
  const client = {
    get: async () => environment(...((states.length > 1 ? states.shift() : states[0]) as [number, State])),
    patch: async (_: unknown, __: unknown, patch: unknown) => void patches.push(patch),
  }
  const options = { client, namespace: 'corral', records: {}, git: async () => ({}), localRepositories: true }
  const { build } = await createEnvironmentService(options as never).rebuild('app-1', {})
  return { number: build?.number, state: build?.state, requests: patches.length }
}

describe('a client that asks for a build', () => {
  it('joins the one that runs', async () => {
    expect(await asked([3, 'Running'])).toEqual({ number: 3, state: 'Running', requests: 0 })
  })

  it('is told that the environment is being removed: it would wait for a build that never begins', async () => {
    const going = { ...environment(3, 'Succeeded') }
    going.metadata = { ...going.metadata, deletionTimestamp: '2026-01-02T00:00:00Z' }
    const client = { get: async () => going, patch: () => Promise.reject(new Error('asked for all the same')) }
    const options = { client, namespace: 'corral', records: {}, git: async () => ({}), localRepositories: true }
    await expect(createEnvironmentService(options as never).rebuild('app-1', {})).rejects.toMatchObject({
      code: 'Conflict',
      message: 'the environment app-1 is being removed; a sandbox still has what it built',
    })
  })

  it('gets one of its own where the one that ran ends just then: it would wait for the next for ever', async () => {
    expect(await asked([3, 'Running'], [3, 'Succeeded'])).toEqual({ number: 3, state: 'Succeeded', requests: 1 })
  })
})

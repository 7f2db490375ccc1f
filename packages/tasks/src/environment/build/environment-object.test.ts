import type { Environment, Stored } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { requestBuild } from './environment-object.js'

type Patch = { body: { metadata: { resourceVersion?: string }; spec: { build: { request: string } } } }

const environment = (asked?: string, built?: string): Stored<Environment> =>
  ({
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'Environment',
    metadata: { name: 'app-1', namespace: 'corral', uid: 'u', resourceVersion: '7', creationTimestamp: '' },
    spec: { repository: { url: '/src/app' }, ...(asked ? { build: { request: asked } } : {}) },
    ...(built ? { status: { build: { request: built, number: 1, state: 'Running' } } } : {}),
  }) as Stored<Environment>

describe('a build is asked for', () => {
  it.each([
    { when: 'nothing was built yet', asked: undefined, built: undefined, asks: true },
    { when: 'the last request was built', asked: 'one', built: 'one', asks: true },
    { when: 'another request waits for its build', asked: 'one', built: undefined, asks: false },
    { when: 'another request waits for the build after this one', asked: 'two', built: 'one', asks: false },
    { when: 'it was asked for before', asked: 'mine', built: 'mine', asks: false },
  ])('when $when: $asks', async ({ asked, built, asks }) => {
    const patches: Patch[] = []
    const client = { patch: async (_: unknown, __: unknown, patch: unknown) => void patches.push(patch as Patch) }
    expect(await requestBuild(client as never, environment(asked, built), { request: 'mine' })).toBe(true)
    expect(patches.map(({ body }) => [body.metadata.resourceVersion, body.spec.build.request])).toEqual(
      asks ? [['7', 'mine']] : [],
    )
  })

  it('not where the object changed since it was read: a second request would be a second build', async () => {
    const conflict = Object.assign(new Error('conflict'), { code: 'Conflict' })
    const client = { patch: () => Promise.reject(conflict) }
    expect(await requestBuild(client as never, environment(), { request: 'mine' })).toBe(false)
  })
})

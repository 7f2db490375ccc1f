import { expect, it } from 'vitest'
import type { SandboxContext } from '../sandbox-context.js'
import { attachCheckout, checkoutKey, usableCheckouts } from './checkout-snapshot.js'
import type { BuiltSnapshot } from './choose-snapshot.js'

const spec = { repository: { url: '/srv/app' }, prompt: 'p', agent: { name: 'command' } }
const snapshot = (name: string): BuiltSnapshot => ({ name, commit: name }) as BuiltSnapshot

interface Facts {
  spec?: object
  status?: object
  attached?: string
  givesCheckouts?: boolean
}

function contextOf({ attached, givesCheckouts = true, ...facts }: Facts): { context: SandboxContext; told: string[] } {
  const told: string[] = []
  const task = {
    metadata: { uid: 'u1', name: 't', namespace: 'corral' },
    spec: { ...spec, ...facts.spec },
    ...facts.status,
  }
  const environments = {
    givesCheckouts: () => givesCheckouts,
    withKey: (key: string) => (key === checkoutKey(spec) ? [snapshot('new'), snapshot('old')] : []),
    attached: async () => attached,
    attach: async (_: unknown, name: string) => {
      told.push(name)
      return true
    },
  }
  const signal = new AbortController().signal
  const grantedTo = async () => ({ egress: [], secrets: [] })
  return { context: { task, environments, signal, grantedTo } as unknown as SandboxContext, told }
}

it.each<Facts & { when: string; are: string[]; environment?: object }>([
  { when: 'nothing speaks against it', are: ['new', 'old'] },
  { when: 'the environment file has no set-up', environment: { source: 'f', egress: [] }, are: ['new', 'old'] },
  { when: 'the pod has one already', attached: 'old', are: ['old'] },
  { when: 'the pod has one of its environment', attached: 'other', are: [] },
  { when: 'the environment is a snapshot of its own', environment: { source: 'f', setup: 'npm ci' }, are: [] },
  { when: 'the environment has an image', environment: { source: 'f', image: 'tools:1' }, are: [] },
  { when: 'the request wants none', spec: { useSnapshot: false }, are: [] },
  { when: 'submodules are asked for', spec: { repository: { url: '/srv/app', submodules: 'direct' } }, are: [] },
  { when: 'Git LFS is asked for', spec: { repository: { url: '/srv/app', lfs: true } }, are: [] },
  { when: 'it is of another pool', spec: { sandbox: { pool: 'large' } }, are: [] },
  { when: 'the sandbox was held for it', status: { status: { sandbox: { takenFrom: 't0' } } }, are: [] },
  { when: 'directories of a snapshot cannot be renamed', givesCheckouts: false, are: [] },
])('a task finds checkouts $are when $when', async ({ are, environment, ...facts }) => {
  const found = await usableCheckouts(contextOf(facts).context, environment as never)
  expect(found.map(({ name }) => name)).toEqual(are)
})

it.each<{ when: string; attached?: string; hasBegun: boolean; told: string[] }>([
  { when: 'its sandbox is untouched', hasBegun: false, told: ['new'] },
  { when: 'an earlier run attached it and began', attached: 'new', hasBegun: true, told: ['new'] },
  { when: 'an earlier run began to check everything out', hasBegun: true, told: [] },
])('when $when, the task has $told attached', async ({ hasBegun, told, ...facts }) => {
  const { context, told: attached } = contextOf(facts)
  const isAttached = await attachCheckout(context, 'new', { hasBegun })
  expect({ isAttached, attached }).toEqual({ isAttached: told.length > 0, attached: told })
})

import type { Sandbox, SandboxClaim, Stored } from '@corral/resources'
import { expect, it } from 'vitest'
import { selectCandidate } from './candidate.js'

const claim = {
  metadata: { name: 'c', namespace: 'n', uid: 'claim' },
  spec: { warmPoolRef: { name: 'p' } },
} as Stored<SandboxClaim>

it('members that are gone are neither put back nor set aside, and nothing is pending', () => {
  const read: string[] = []
  function* offers() {
    for (const key of ['n/a', 'n/b']) {
      read.push(key)
      yield { key, nodeName: '' }
    }
  }
  const gone: Stored<Sandbox> | undefined = undefined
  const selection = selectCandidate({
    claim,
    offers: offers(),
    aside: [],
    findSandbox: () => gone,
    findPool: () => undefined,
    findTemplate: () => undefined,
  })
  expect(read).toEqual(['n/a', 'n/b'])
  expect(selection).toEqual({ putBack: [], setAside: [], arePending: false })
})

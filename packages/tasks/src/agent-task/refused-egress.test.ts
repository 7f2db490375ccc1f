import { egressRefusedAnnotation, writeEgressRefused } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { refusedOf } from './refused-egress.js'

const at = { firstAt: '2026-01-01T00:00:00Z', lastAt: '2026-01-01T00:00:01Z' }
const annotations = (...hosts: { host: string; port?: number; count: number }[]): Record<string, string> => ({
  [egressRefusedAnnotation]: writeEgressRefused({
    refused: hosts.map((host) => ({ ...host, ...at, reason: 'NotAllowed' })),
    otherHosts: 0,
    refusedConnections: 0,
  }),
})

describe('what the record of a task says of refused connections', () => {
  it.each([
    { when: 'nothing was refused', given: undefined, refused: undefined },
    { when: 'the annotation is somebody else’s text', given: { [egressRefusedAnnotation]: '{' }, refused: undefined },
    {
      when: 'hosts were refused: the most wanted first',
      given: annotations({ host: 'a.example', count: 1 }, { host: 'b.example', port: 443, count: 3 }),
      refused: [
        { host: 'b.example', port: 443, reason: 'NotAllowed', count: 3 },
        { host: 'a.example', reason: 'NotAllowed', count: 1 },
      ],
    },
  ])('when $when', ({ given, refused }) => {
    expect(refusedOf(given).refused).toEqual(refused)
  })
})

import { egressRefusedAnnotation, writeEgressRefused } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { task } from './plan-worlds.test-suite.js'
import { findRefused, refusedOf } from './refused-egress.js'

const at = { firstAt: '2026-01-01T00:00:00Z', lastAt: '2026-01-01T00:00:01Z' }
const annotations = (
  ...hosts: { host: string; port?: number; count: number; process?: string }[]
): Record<string, string> => ({
  [egressRefusedAnnotation]: writeEgressRefused({
    refused: hosts.map((host) => ({ ...host, ...at, reason: 'NotAllowed' })),
    otherHosts: 0,
    refusedConnections: 0,
  }),
})

describe('what the record of a task says of refused connections', () => {
  it.each([
    { when: 'nothing was refused', given: undefined, refused: undefined },
    { when: 'the annotation is of another format', given: { [egressRefusedAnnotation]: '{' }, refused: undefined },
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

it('the record has the twenty that were asked for most, with the program that asked', () => {
  const hosts = Array.from({ length: 21 }, (_, n) => ({ host: `h${n}.example`, count: n + 1, process: 'npm' }))
  const { refused = [] } = refusedOf(annotations(...hosts))
  expect(refused).toHaveLength(20)
  expect(refused[0]).toEqual({ host: 'h20.example', reason: 'NotAllowed', count: 21, process: 'npm' })
  expect(refused.at(-1)?.host).toBe('h1.example')
})

describe('the pod that was refused something', () => {
  type Client = Parameters<typeof findRefused>[0]
  const asked: object[] = []
  const client = (pod: object | undefined): Client => ({
    find: async (_kind: unknown, key: object) => {
      asked.push(key)
      return pod as never
    },
  })
  const bound = task({ status: { sandbox: { claimName: 'c', podName: 'p' } } })
  const pod = { metadata: { annotations: annotations({ host: 'a.example', count: 1 }) } }

  it('is read by its name in the namespace of the task', async () => {
    asked.length = 0
    expect((await findRefused(client(pod), bound)).refused).toMatchObject([{ host: 'a.example' }])
    expect(asked).toEqual([{ namespace: 'corral', name: 'p' }])
  })

  it('is not looked for before there is one; one that is gone or cannot be read explains nothing', async () => {
    asked.length = 0
    expect(await findRefused(client(pod), task())).toEqual({})
    expect(asked).toEqual([])
    expect(await findRefused(client(undefined), bound)).toEqual({})
    const away = { find: () => Promise.reject(new Error('away')) } as unknown as Client
    expect(await findRefused(away, bound)).toEqual({})
  })
})

import type { WatchFrame } from '@corral/ports'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { configMap, configMaps, MERGE, openServer, type ServerCaller } from '../testing/server-caller.test-suite.js'

let api: ServerCaller
beforeAll(async () => {
  api = await openServer()
})
afterAll(() => api.server.close())

const labelled = (name: string, labels: Record<string, string>): object => ({ metadata: { name, labels } })

describe('list', () => {
  beforeAll(async () => {
    await api.call('POST', '/api/v1/namespaces', { metadata: { name: 'list' } })
    for (const [name, labels] of [
      ['a', { tier: 'web', n: '1' }],
      ['b', { tier: 'db', n: '5' }],
      ['c', { n: '9' }],
      ['d', {}],
      ['e', { tier: 'web' }],
    ] as const) {
      await api.call('POST', '/api/v1/namespaces/list/configmaps', labelled(name, labels))
    }
  })
  const url = '/api/v1/namespaces/list/configmaps'

  it.each<{ selector: string; names: string }>([
    { selector: 'labelSelector=tier=web', names: 'ae' },
    { selector: 'labelSelector=tier!=web', names: 'bcd' },
    { selector: 'labelSelector=tier in (web,db)', names: 'abe' },
    { selector: 'labelSelector=tier notin (web)', names: 'bcd' },
    { selector: 'labelSelector=tier', names: 'abe' },
    { selector: 'labelSelector=!tier', names: 'cd' },
    { selector: 'labelSelector=n>3', names: 'bc' },
    { selector: 'fieldSelector=metadata.name=c', names: 'c' },
    { selector: 'fieldSelector=metadata.name!=c', names: 'abde' },
  ])('69, 70: $selector selects $names', async ({ selector, names }) => {
    const { value } = await api.call('GET', `${url}?${selector}`)
    expect(value.items.map((item: { metadata: { name: string } }) => item.metadata.name).join('')).toBe(names)
  })

  it.each([
    { query: 'labelSelector=a b', status: 400, says: "found 'b', expected: in, notin" },
    { query: 'fieldSelector=data.x=1', status: 400, says: '"data.x" is not a known field selector' },
    { query: 'resourceVersionMatch=Exact', status: 422, says: 'forbidden unless resourceVersion is provided' },
    { query: 'sendInitialEvents=true', status: 422, says: 'sendInitialEvents is forbidden for list' },
    { query: 'sendInitialEvents=false', status: 422, says: 'sendInitialEvents is forbidden for list' },
    { query: 'watch=1&continue=x', status: 422, says: 'resourceVersionMatch is forbidden when continue is provided' },
    {
      query: 'watch=1&sendInitialEvents=true&resourceVersionMatch=Exact',
      status: 422,
      says: 'supported values: "NotOlderThan"',
    },
    { query: 'fieldSelector= metadata.name=c', status: 400, says: '" metadata.name" is not a known field selector' },
    {
      query: 'watch=1&sendInitialEvents=true',
      status: 422,
      says: 'requires setting resourceVersionMatch to NotOlderThan',
    },
    { query: 'resourceVersion=abc', status: 400, says: 'resourceVersion: Invalid value: "abc"' },
    { query: 'limit=abc', status: 400, says: 'parsing "abc": invalid syntax' },
    { query: 'continue=abc', status: 400, says: 'continue key is not valid' },
  ])('69, 70, 81: $query is refused with $status', async ({ query, status, says }) => {
    const answer = await api.call('GET', `${url}?${query}`)
    expect([answer.status, answer.value.message]).toEqual([status, expect.stringContaining(says)])
  })

  it('84: pages show one moment, whatever is written between them', async () => {
    const first = await api.call('GET', `${url}?limit=2`)
    expect(first.value.metadata.remainingItemCount).toBe(3)
    await api.call('POST', url, configMap('bb'))
    await api.call('DELETE', `${url}/d`)
    const second = await api.call('GET', `${url}?limit=2&continue=${first.value.metadata.continue}`)
    const third = await api.call('GET', `${url}?limit=2&continue=${second.value.metadata.continue}`)
    const names = [first, second, third].flatMap(({ value }) =>
      value.items.map((item: { metadata: { name: string } }) => item.metadata.name),
    )
    expect(names).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(third.value.metadata.continue).toBeUndefined()
  })

  it('83: a version far ahead times out with its cause', async () => {
    const { status, value } = await api.call('GET', `${url}?resourceVersion=9007199254740990`)
    expect(status).toBe(504)
    expect(value.details.causes[0].reason).toBe('ResourceVersionTooLarge')
    expect(value.message).toMatch(/^Timeout: Too large resource version: 9007199254740990, current: \d+$/)
  })
})

describe('watch', () => {
  const head = async (): Promise<string> => (await api.call('GET', configMaps)).value.metadata.resourceVersion

  it('71, 72, 77: everything after the version, once and in order', async () => {
    const version = await head()
    await api.call('POST', configMaps, configMap('w'))
    await api.call('PUT', `${configMaps}/w`, configMap('w', { data: { x: '1' } }))
    await api.call('DELETE', `${configMaps}/w`)
    const events = await api.events(`${configMaps}?watch=True&resourceVersion=${version}`, 3)
    expect(events.map((event) => event.type)).toEqual(['ADDED', 'MODIFIED', 'DELETED'])
    const versions = events.map((event) => Number(event.object.metadata?.resourceVersion))
    expect(versions).toEqual(versions.toSorted((a, b) => a - b))
    expect(events[2]?.object).toMatchObject({ data: { x: '1' } })
  })

  it('76: an object that starts or stops matching is added or deleted', async () => {
    const version = await head()
    await api.call('POST', configMaps, configMap('moving'))
    await api.call('PATCH', `${configMaps}/moving`, { metadata: { labels: { on: 'yes' } } }, MERGE)
    await api.call('PATCH', `${configMaps}/moving`, { metadata: { labels: { on: 'no' } } }, MERGE)
    const events = await api.events(`${configMaps}?watch=1&labelSelector=on=yes&resourceVersion=${version}`, 2)
    expect(events.map((event) => [event.type, event.object.metadata?.labels?.on])).toEqual([
      ['ADDED', 'yes'],
      ['DELETED', 'yes'],
    ])
  })

  it('80: sendInitialEvents gives the state, an annotated bookmark of the right kind, then news', async () => {
    const query = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    const { response } = await api.call('GET', `/api/v1/namespaces?${query}`)
    if (response.body.type !== 'watch') throw new Error('no watch')
    const frames = response.body.frames[Symbol.asyncIterator]()
    const next = async (): Promise<WatchFrame['event']> => (await frames.next()).value.event
    let event = await next()
    while (event.type === 'ADDED') event = await next()
    expect(event).toMatchObject({
      type: 'BOOKMARK',
      object: {
        kind: 'Namespace',
        apiVersion: 'v1',
        metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } },
      },
    })
    await api.call('POST', '/api/v1/namespaces', { metadata: { name: 'news' } })
    expect(await next()).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'news' } } })
    await frames.return?.()
  })

  it.each(['', '&resourceVersion=0', '&allowWatchBookmarks=true'])(
    'who declines the initial state and names no version hears only news (%s)',
    async (more) => {
      const url = `${configMaps}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan${more}`
      const name = `declined${more.length}`
      const events = api.events(url, 1)
      await api.call('POST', configMaps, configMap(name))
      expect(await events).toMatchObject([{ type: 'ADDED', object: { metadata: { name } } }])
    },
  )

  it('one object is not watched by its path: the answer is the object', async () => {
    await api.call('POST', configMaps, configMap('alone'))
    expect(await api.call('GET', `${configMaps}/alone?watch=1`)).toMatchObject({
      status: 200,
      value: { kind: 'ConfigMap' },
    })
    expect(await api.call('GET', `${configMaps}/nobody?watch=1`)).toMatchObject({
      status: 404,
      value: { message: 'configmaps "nobody" not found' },
    })
  })

  it('88: a reader that stops reading is cut off instead of growing the server', async () => {
    const { response } = await api.call('GET', `${configMaps}?watch=1&resourceVersion=${await head()}`)
    if (response.body.type !== 'watch') throw new Error('no watch')
    await api.call('POST', configMaps, configMap('flood'))
    for (let round = 0; round < 5_100; round++) {
      await api.call('PATCH', `${configMaps}/flood`, { data: { round: String(round) } }, MERGE)
    }
    let count = 0
    for await (const _frame of response.body.frames) count++
    expect(count).toBeLessThan(5_100)
  })

  it('88: a few large objects count by their size', async () => {
    const { response } = await api.call('GET', `${configMaps}?watch=1&resourceVersion=${await head()}`)
    if (response.body.type !== 'watch') throw new Error('no watch')
    const data = { blob: 'x'.repeat(500_000) }
    for (let index = 0; index < 50; index++) await api.call('POST', configMaps, configMap(`large-${index}`, { data }))
    let count = 0
    for await (const _frame of response.body.frames) count++
    expect(count).toBeLessThan(50)
  })

  it('89: many watchers see the same events in the same order', async () => {
    const version = await head()
    const watching = Array.from({ length: 20 }, () =>
      api.events(`${configMaps}?watch=1&resourceVersion=${version}`, 200),
    )
    for (let index = 0; index < 200; index++) await api.call('POST', configMaps, configMap(`many-${index}`))
    const seen = (await Promise.all(watching)).map((events) => events.map((event) => event.object.metadata?.name))
    const expected = Array.from({ length: 200 }, (_, index) => `many-${index}`)
    for (const names of seen) expect(names).toEqual(expected)
  })
})

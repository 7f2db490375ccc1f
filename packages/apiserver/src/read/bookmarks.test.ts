import type { WatchFrame } from '@corral/ports'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { configMap, configMaps, openServer, type ServerCaller } from '../testing/server-caller.test-suite.js'

let api: ServerCaller
beforeEach(async () => {
  api = await openServer()
})
afterEach(() => api.server.close())

/** The version of the first bookmark of a watch; `act` runs once the watch is open. */
async function bookmarkOf(query: string, act?: () => Promise<unknown>): Promise<string> {
  const { response } = await api.call('GET', `${configMaps}?watch=1&allowWatchBookmarks=true&${query}`)
  if (response.body.type !== 'watch') throw new Error('no watch')
  await act?.()
  for await (const frame of response.body.frames as AsyncIterable<WatchFrame>)
    if (frame.event.type === 'BOOKMARK')
      return (frame.event.object as { metadata: { resourceVersion: string } }).metadata.resourceVersion
  throw new Error('the watch ended without a bookmark')
}

/** What a client that resumes at a version is told first of the two objects that are made now. */
async function firstAfter(version: string): Promise<unknown> {
  for (const name of ['first', 'second']) await api.call('POST', configMaps, configMap(name))
  const [event] = await api.events(`${configMaps}?watch=1&resourceVersion=${version}`, 1)
  return event?.object.metadata?.name
}

it('a client that resumes at the bookmark behind the initial state misses no event', async () => {
  await api.call('POST', configMaps, configMap('there'))
  const version = await bookmarkOf('sendInitialEvents=true&resourceVersionMatch=NotOlderThan')
  expect(await firstAfter(version)).toBe('first')
})

it('a client that resumes at a later bookmark misses no event, and sees none twice', async () => {
  const { value } = await api.call('GET', configMaps)
  // A watch that ends by itself sends its last bookmark two seconds before that.
  const version = await bookmarkOf(`timeoutSeconds=3&resourceVersion=${value.metadata.resourceVersion}`, () =>
    api.call('POST', configMaps, configMap('during')),
  )
  expect(await firstAfter(version)).toBe('first')
})

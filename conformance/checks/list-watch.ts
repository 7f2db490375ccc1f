import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { type Check, check } from '../harness/check.js'
import { type Context, mergePatch } from '../harness/context.js'
import type { KubeBody } from '../harness/kube-body.js'
import { configMap, crd, pod, sandbox, sandboxes } from '../harness/objects.js'
import type { RawEvent } from '../harness/watch-stream.js'

/** The controller manager of a real server puts a ConfigMap into every namespace: look past it. */
const ours = 'fieldSelector=metadata.name!=kube-root-ca.crt'
const names = (list: KubeBody): string[] => list.items.map(({ metadata }) => metadata.name)
const kinds = (events: readonly RawEvent[]): string[] =>
  events.map(({ type, object }) => `${type} ${object.metadata.name}`)
const version = (body: KubeBody): number => Number(body.metadata.resourceVersion)

async function labelled(t: Context, values: Record<string, Record<string, string>>): Promise<string> {
  const path = await t.core('configmaps')
  for (const [name, labels] of Object.entries(values)) await t.create(path, { metadata: { name, labels } })
  return path
}

export const listAndSelect: readonly Check[] = [
  check(68, "a list's version is at least every item's; an empty list has one too", async (t) => {
    const path = await t.core('configmaps')
    await t.create(path, configMap('one'))
    await t.create(path, configMap('two'))
    const list = (await t.get(path)).is(200)
    equal(list.kind, 'ConfigMapList')
    for (const item of list.items) ok(version(list) >= version(item))
    const empty = (await t.get(await t.core('secrets'))).is(200)
    ok(version(empty) >= version(list))
    deepEqual(empty.items, [])
    const stream = await t.watch(`${await t.core('secrets')}?watch=1&resourceVersion=${empty.metadata.resourceVersion}`)
    await t.create(await t.core('secrets'), { metadata: { name: 'first' } })
    equal((await stream.next())?.object.metadata.name, 'first')
  }),
  check(69, 'label selectors of every form; a malformed one is 400', async (t) => {
    const path = await labelled(t, { a: { app: 'x', tier: '1' }, b: { app: 'y', tier: '5' }, c: { other: 'z' } })
    const select = async (selector: string): Promise<string[]> =>
      names((await t.get(`${path}?${ours}&labelSelector=${encodeURIComponent(selector)}`)).is(200))
    deepEqual(await select('app=x'), ['a'])
    deepEqual(await select('app==x'), ['a'])
    deepEqual(await select('app!=x'), ['b', 'c'])
    deepEqual(await select('app in (x, y)'), ['a', 'b'])
    deepEqual(await select('app notin (x)'), ['b', 'c'])
    deepEqual(await select('app'), ['a', 'b'])
    deepEqual(await select('!app'), ['c'])
    deepEqual(await select('tier>3'), ['b'])
    deepEqual(await select('tier<3,app'), ['a'])
    equal((await t.get(`${path}?labelSelector=${encodeURIComponent('app in (')}`)).is(400).reason, 'BadRequest')
    equal((await t.get(`${path}?labelSelector=${encodeURIComponent('a b c')}`)).is(400).reason, 'BadRequest')
  }),
  check(70, 'field selectors of each kind; an unsupported field is 400', async (t) => {
    await t.create(await t.core('pods'), pod('bound', { spec: { nodeName: 'nowhere', restartPolicy: 'Never' } }))
    await t.create(await t.core('pods'), pod('free'))
    const select = async (resource: string, selector: string): Promise<string[]> =>
      names((await t.get(`${await t.core(resource)}?fieldSelector=${encodeURIComponent(selector)}`)).is(200))
    deepEqual(await select('pods', 'spec.nodeName=nowhere'), ['bound'])
    deepEqual(await select('pods', 'spec.nodeName='), ['free'])
    deepEqual(await select('pods', 'status.phase!=Pending'), [])
    deepEqual(await select('pods', 'spec.restartPolicy=Never,metadata.name=bound'), ['bound'])
    await t.create(await t.core('secrets'), { metadata: { name: 's' }, type: 'example.com/own' })
    deepEqual(await select('secrets', 'type=example.com/own'), ['s'])
    const error = (await t.get(`${await t.core('pods')}?fieldSelector=spec.hostname%3Dx`)).is(400)
    match(error.message, /field label not supported: spec\.hostname/)
    const custom = (await t.get(`${await t.group(sandboxes, 'sandboxes')}?fieldSelector=spec.replicas%3D1`)).is(400)
    match(custom.message, /field label not supported: spec\.replicas/)
  }),
  check(83, 'a list at a version far in the future is 504 and says why', async (t) => {
    const list = (await t.get(await t.core('configmaps'))).is(200)
    const future = version(list) + 1_000_000
    const error = (await t.get(`${await t.core('configmaps')}?resourceVersion=${future}`)).is(504)
    equal(error.reason, 'Timeout')
    match(error.message, new RegExp(`Too large resource version: ${future}, current: \\d+`))
    deepEqual(error.details.causes, [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }])
    equal(error.details.retryAfterSeconds, 1)
  }),
  check(84, 'limit and continue page through a consistent list', async (t) => {
    const path = await t.core('secrets')
    for (const name of ['a', 'b', 'c', 'd', 'e']) await t.create(path, { metadata: { name } })
    const first = (await t.get(`${path}?limit=2`)).is(200)
    deepEqual([names(first), first.metadata.remainingItemCount], [['a', 'b'], 3])
    await t.create(path, { metadata: { name: 'bb' } })
    await t.del(`${path}/d`)
    const second = (await t.get(`${path}?limit=2&continue=${encodeURIComponent(first.metadata.continue ?? '')}`)).is(
      200,
    )
    const third = (await t.get(`${path}?limit=2&continue=${encodeURIComponent(second.metadata.continue ?? '')}`)).is(
      200,
    )
    deepEqual([...names(second), ...names(third)], ['c', 'd', 'e'])
    equal(third.metadata.continue ?? '', '')
    equal(second.metadata.resourceVersion, first.metadata.resourceVersion)
    ;(await t.get(`${path}?limit=2&continue=nonsense`)).is(400)
    const token = encodeURIComponent(first.metadata.continue ?? '')
    ;(await t.get(`${path}?continue=${token}&resourceVersion=5`)).is(400)
    // With a limit, a version means exactly that one; without, at least that one.
    const at = first.metadata.resourceVersion
    deepEqual(names((await t.get(`${path}?resourceVersion=${at}&limit=9`)).is(200)), ['a', 'b', 'c', 'd', 'e'])
    deepEqual(names((await t.get(`${path}?resourceVersion=${at}`)).is(200)), ['a', 'b', 'bb', 'c', 'e'])
    const exact = `resourceVersionMatch=Exact&resourceVersion=${at}`
    deepEqual(names((await t.get(`${path}?${exact}`)).is(200)), ['a', 'b', 'c', 'd', 'e'])
  }),
]

const tooOld = (version: number): RegExp => new RegExp(`^too old resource version: ${version} \\(\\d+\\)$`)

export const watching: readonly Check[] = [
  check(71, 'a watch from the list delivers create, update and delete once, in order', async (t) => {
    const path = await t.core('secrets')
    const list = (await t.get(path)).is(200)
    const stream = await t.watch(`${path}?watch=true&resourceVersion=${list.metadata.resourceVersion}`)
    await t.create(path, { metadata: { name: 'one' } })
    ;(await t.patch(`${path}/one`, mergePatch, { metadata: { labels: { a: 'b' } } })).is(200)
    ;(await t.del(`${path}/one`)).is(200)
    await t.create(path, { metadata: { name: 'end' } })
    const events = await stream.until(({ object }) => object.metadata.name === 'end')
    deepEqual(kinds(events), ['ADDED one', 'MODIFIED one', 'DELETED one', 'ADDED end'])
    const versions = events.map(({ object }) => version(object))
    deepEqual(
      versions,
      [...versions].sort((a, b) => a - b),
    )
    equal(events[0]?.object.kind, 'Secret')
  }),
  check(72, 'a delete between list and watch is delivered', async (t) => {
    const path = await t.core('secrets')
    await t.create(path, { metadata: { name: 'one' } })
    const list = (await t.get(path)).is(200)
    ;(await t.del(`${path}/one`)).is(200)
    const stream = await t.watch(`${path}?watch=true&resourceVersion=${list.metadata.resourceVersion}`)
    deepEqual(kinds([(await stream.next())!]), ['DELETED one'])
  }),
  check(73, 'a watch without a version, or at 0, begins with ADDED for what is there', async (t) => {
    const path = await t.core('secrets')
    await t.create(path, { metadata: { name: 'one' } })
    for (const query of ['', '&resourceVersion=', '&resourceVersion=0']) {
      const stream = await t.watch(`${path}?watch=1${query}`)
      deepEqual(kinds([(await stream.next())!]), ['ADDED one'], query)
      stream.close()
    }
  }),
  check(74, 'watch=1, true, True and an empty value all stream; 0 and false list', async (t) => {
    const path = await t.core('secrets')
    await t.create(path, { metadata: { name: 'one' } })
    for (const query of ['watch=1', 'watch=true', 'watch=True', 'watch=', 'watch']) {
      const stream = await t.watch(`${path}?${query}`)
      equal((await stream.next())?.type, 'ADDED', query)
      stream.close()
    }
    for (const query of ['watch=0', 'watch=false', 'watch=False'])
      equal((await t.get(`${path}?${query}`)).is(200).kind, 'SecretList')
  }),
  check(75, 'headers of an idle watch arrive at once, in every form, and the watch is live', async (t) => {
    const path = await t.core('secrets')
    const { resourceVersion } = (await t.get(path)).is(200).metadata
    const meta = 'application/json;g=meta.k8s.io;v=v1;as='
    const streams = []
    for (const [accept, query] of [
      ['application/json', `&resourceVersion=${resourceVersion}`],
      ['application/json', ''],
      [`${meta}Table`, `&resourceVersion=${resourceVersion}`],
      [`${meta}PartialObjectMetadata`, `&resourceVersion=${resourceVersion}`],
    ] as const) {
      // Bounded by patience, not by a figure: an idle watch whose headers wait for an event never gets here.
      const stream = await t.watch(`${path}?watch=1${query}`, { headers: { accept } })
      match(stream.response.headers['content-type'] ?? '', /^application\/json/)
      equal(stream.seen.length, 0)
      streams.push(stream)
    }
    await t.create(path, { metadata: { name: 'one' } })
    for (const stream of streams) equal((await stream.next())?.type, 'ADDED')
  }),
  check(76, 'an object that begins to match is ADDED, one that ceases to is DELETED', async (t) => {
    const path = await t.core('secrets')
    await t.create(path, { metadata: { name: 'one' } })
    const { metadata } = (await t.get(path)).is(200)
    const stream = await t.watch(`${path}?watch=1&labelSelector=on%3Dyes&resourceVersion=${metadata.resourceVersion}`)
    for (const value of ['yes', 'yes-still', null]) {
      const labels = value === 'yes-still' ? { more: 'x' } : { on: value }
      ;(await t.patch(`${path}/one`, mergePatch, { metadata: { labels } })).is(200)
    }
    const events = await stream.until(({ type }) => type === 'DELETED')
    deepEqual(kinds(events), ['ADDED one', 'MODIFIED one', 'DELETED one'])
  }),
  check(77, 'DELETED carries the last state and a newer version', async (t) => {
    const path = await t.core('secrets')
    const stored = await t.create(path, { metadata: { name: 'one' }, stringData: { a: 'b' } })
    const stream = await t.watch(`${path}?watch=1&resourceVersion=${stored.metadata.resourceVersion}`)
    ;(await t.del(`${path}/one`)).is(200)
    const event = await stream.next()
    deepEqual([event?.type, event?.object.data.a], ['DELETED', Buffer.from('b').toString('base64')])
    ok(version(event!.object) > version(stored))
  }),
  check(78, 'timeoutSeconds=1 ends the watch cleanly', async (t) => {
    const stream = await t.watch(`${await t.core('secrets')}?watch=1&timeoutSeconds=1`)
    deepEqual(await stream.untilEnd(), [])
    ok(stream.response.complete)
  }),
  check(
    79,
    'a version that is too old gives 200 and one ERROR event, 410 Expired',
    async (t) => {
      const expired = async (path: string, resourceVersion: number): Promise<string> => {
        const stream = await t.watch(`${path}?watch=1&resourceVersion=${resourceVersion}`)
        const event = await stream.next()
        equal(event?.type, 'ERROR')
        deepEqual([event?.object.kind, event?.object.code, event?.object.reason], ['Status', 410, 'Expired'])
        equal(await stream.next(), undefined)
        return event?.object.message ?? ''
      }
      const path = await t.core('configmaps')
      if (t.server.facts.mode === 'sqlite') {
        // A journal forgets what it has replaced, and a restart shows it.
        const first = version(await t.create(path, configMap('one')))
        for (const value of ['b', 'c']) (await t.patch(`${path}/one`, mergePatch, { data: { a: value } })).is(200)
        await t.server.restart()
        match(await expired(path, first), tooOld(first))
      } else {
        // The history of a kind begins with the kind, and in memory with the server.
        const group = `${t.unique('g')}.example.com`
        const schema = { type: 'object', properties: { spec: { type: 'object' } } }
        const definition = crd({ plural: 'things', group, kind: 'Thing', schema })
        await t.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
        const things = await t.group(`${group}/v1`, 'things')
        await t.eventually('served', async () => (await t.get(things)).status === 200)
        match(await expired(things, 1), tooOld(1))
        await t.del(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.${group}`)
      }
      if (t.isEmbedded) await expired(path, version((await t.get(path)).is(200)) + 1_000_000)
    },
    { exclusive: true, differs: 'the real one waits for a version of the future, the embedded one says 410' },
  ),
  check(80, 'sendInitialEvents: what is there, an annotated bookmark, then live', async (t) => {
    const path = await t.group(sandboxes, 'sandboxes')
    await t.create(path, sandbox('one'))
    const query = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    const stream = await t.watch(`${path}?${query}`)
    const events = await stream.until(({ type }) => type === 'BOOKMARK')
    deepEqual(
      events.map(({ type }) => type),
      ['ADDED', 'BOOKMARK'],
    )
    const { object } = events[1]!
    deepEqual([object.kind, object.apiVersion], ['Sandbox', sandboxes])
    equal(object.metadata.annotations?.['k8s.io/initial-events-end'], 'true')
    ok(version(object) >= version(events[0]!.object))
    await t.create(path, sandbox('two'))
    deepEqual(kinds([(await stream.next())!]), ['ADDED two'])
  }),
  check(81, 'sendInitialEvents without NotOlderThan, or on a list, is 422', async (t) => {
    const path = await t.core('secrets')
    for (const query of [
      'watch=1&sendInitialEvents=true',
      'watch=1&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=5',
      'sendInitialEvents=true&resourceVersionMatch=NotOlderThan',
      'resourceVersionMatch=NotOlderThan',
      'resourceVersionMatch=Exact&resourceVersion=0',
    ]) {
      const error = (await t.get(`${path}?${query}`)).is(422)
      deepEqual(
        [error.reason, error.details.kind, error.details.group],
        ['Invalid', 'ListOptions', 'meta.k8s.io'],
        query,
      )
    }
  }),
  check(82, 'bookmarks come only when allowed, and never go back', async (t) => {
    const path = await t.core('secrets')
    const { metadata } = (await t.get(path)).is(200)
    const query = `watch=1&resourceVersion=${metadata.resourceVersion}&timeoutSeconds=5`
    const [with_, without] = await Promise.all(
      ['&allowWatchBookmarks=true', ''].map((more) => t.watch(`${path}?${query}${more}`)),
    )
    await t.create(path, { metadata: { name: 'one' } })
    const [marked, plain] = await Promise.all([with_!.untilEnd(), without!.untilEnd()])
    deepEqual(kinds(plain), ['ADDED one'])
    const marks = marked.filter(({ type }) => type === 'BOOKMARK')
    for (const { object } of marks) equal(object.kind, 'Secret')
    ok(marks.length > 0, 'one before the end')
    const versions = marked.map(({ object }) => version(object))
    deepEqual(
      versions,
      [...versions].sort((a, b) => a - b),
    )
  }),
  check(
    88,
    "a reader that stopped does not grow the server's memory beyond its cap",
    async (t) => {
      const path = await t.core('secrets')
      const response = await t.http.open('GET', `${path}?watch=1`)
      t.after(() => void response.destroy())
      response.pause()
      const blob = Buffer.alloc(150_000, 'x').toString('base64')
      for (let index = 0; index < 150; index += 1)
        await t.create(path, { metadata: { name: `s-${index}` }, data: { blob } })
      // 30 MB were written for a reader with a cap of 16: it is cut off, and reading what is left shows the end.
      const ended = new Promise<void>((resolve) => {
        response.once('close', resolve)
      })
      response.resume()
      await Promise.race([
        ended,
        new Promise((_, reject) => setTimeout(() => reject(new Error('still connected')), 20_000).unref()),
      ])
    },
    { embeddedOnly: 'the cap is a promise of the embedded server', heavy: true },
  ),
  check(
    89,
    'a hundred watchers see a thousand writes, all, in order',
    async (t) => {
      const path = await t.core('secrets')
      const { metadata } = (await t.get(path)).is(200)
      const size = { watchers: 100, writes: 1_000 }
      const opening = Array.from({ length: size.watchers }, () =>
        t.watch(`${path}?watch=1&resourceVersion=${metadata.resourceVersion}`),
      )
      const streams = await Promise.all(opening)
      let next = 0
      const writer = async (): Promise<void> => {
        for (let index = next++; index < size.writes; index = next++)
          await t.create(path, { metadata: { name: `w-${index}` } })
      }
      await Promise.all(Array.from({ length: 8 }, writer))
      await t.create(path, { metadata: { name: 'zz-end' } })
      const seen = await Promise.all(
        streams.map((stream) => stream.until(({ object }) => object.metadata.name === 'zz-end', 60_000)),
      )
      const wanted = kinds(seen[0]!)
      equal(new Set(wanted).size, size.writes + 1)
      for (const events of seen) deepEqual(kinds(events), wanted)
      const versions = seen[0]!.map(({ object }) => version(object))
      deepEqual(
        versions,
        [...versions].sort((a, b) => a - b),
      )
    },
    { heavy: true },
  ),
]

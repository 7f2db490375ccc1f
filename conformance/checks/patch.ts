import { deepEqual, equal, match } from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { clientNodePatches } from '../clients/client-node.js'
import { runPython } from '../clients/python.js'
import { type Check, check } from '../harness/check.js'
import { jsonPatch, mergePatch, strategicPatch } from '../harness/context.js'
import { at } from '../harness/kube-body.js'
import { anyKubectl } from '../harness/kubectl.js'
import { configMap, pod, sandbox, sandboxes } from '../harness/objects.js'

export const patch: readonly Check[] = [
  check(51, 'a merge patch deletes with null and replaces lists', async (t) => {
    const path = await t.group(sandboxes, 'sandboxes')
    await t.create(
      path,
      sandbox('one', { metadata: { labels: { a: '1', b: '2' }, finalizers: ['example.com/a', 'example.com/b'] } }),
    )
    const body = { metadata: { labels: { a: null, c: '3' }, finalizers: ['example.com/c'] } }
    const { metadata } = (await t.patch(`${path}/one`, mergePatch, body)).is(200)
    deepEqual([metadata.labels, metadata.finalizers], [{ b: '2', c: '3' }, ['example.com/c']])
    ;(await t.patch(`${path}/one`, mergePatch, { metadata: { finalizers: null } })).is(200)
    // The last label takes the map with it.
    const maps = await t.core('configmaps')
    await t.create(maps, { metadata: { name: 'two', labels: { a: '1' } } })
    for (const object of [`${maps}/two`, `${path}/one`]) {
      const emptied = (await t.patch(object, mergePatch, { metadata: { labels: { a: null, b: null, c: null } } })).is(
        200,
      )
      equal(emptied.metadata.labels, undefined, object)
    }
  }),
  check(52, 'a resourceVersion in a merge patch is a lock', async (t) => {
    const path = await t.core('configmaps')
    const stored = await t.create(path, configMap('one'))
    ;(await t.patch(`${path}/one`, mergePatch, { data: { a: '2' } })).is(200)
    const { resourceVersion } = stored.metadata
    equal(
      (await t.patch(`${path}/one`, mergePatch, { metadata: { resourceVersion }, data: { a: '3' } })).is(409).reason,
      'Conflict',
    )
    const now = (await t.get(`${path}/one`)).is(200).metadata.resourceVersion
    const answer = (
      await t.patch(`${path}/one`, mergePatch, { metadata: { resourceVersion: now }, data: { a: '3' } })
    ).is(200)
    equal(answer.data.a, '3')
  }),
  check(53, 'JSON patch: all six operations; a failing test is 422, a body that is no list 400', async (t) => {
    const path = await t.core('configmaps')
    await t.create(path, configMap('one', { a: '1', b: '2', c: '3' }))
    const operations = [
      { op: 'test', path: '/data/a', value: '1' },
      { op: 'replace', path: '/data/a', value: '9' },
      { op: 'remove', path: '/data/b' },
      { op: 'add', path: '/data/d', value: '4' },
      { op: 'copy', from: '/data/d', path: '/data/e' },
      { op: 'move', from: '/data/c', path: '/data/f' },
    ]
    deepEqual((await t.patch(`${path}/one`, jsonPatch, operations)).is(200).data, { a: '9', d: '4', e: '4', f: '3' })
    equal(
      (await t.patch(`${path}/one`, jsonPatch, [{ op: 'test', path: '/data/a', value: 'no' }])).is(422).reason,
      'Invalid',
    )
    equal((await t.patch(`${path}/one`, jsonPatch, [{ op: 'remove', path: '/data/none' }])).is(422).reason, 'Invalid')
    equal((await t.patch(`${path}/one`, jsonPatch, { op: 'remove' })).is(400).reason, 'BadRequest')
  }),
  check(54, 'a strategic patch merges containers by name, deletes, and keeps the order it is told', async (t) => {
    const path = await t.group('apps/v1', 'deployments')
    const container = (name: string, change: object = {}): object => ({ name, image: 'i:1', ...change })
    const containers = [container('a'), container('b'), container('c')]
    const labels = { app: 'x' }
    await t.create(path, {
      metadata: { name: 'one' },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
    })
    const send = async (change: object): Promise<unknown> =>
      at(
        (await t.patch(`${path}/one`, strategicPatch, { spec: { template: { spec: change } } })).is(200),
        'spec.template.spec.containers',
      )
    const names = (list: unknown): unknown[] =>
      (list as { name: string; image: string }[]).map(({ name, image }) => [name, image])
    deepEqual(names(await send({ containers: [{ name: 'b', image: 'i:2' }] })), [
      ['a', 'i:1'],
      ['b', 'i:2'],
      ['c', 'i:1'],
    ])
    deepEqual(names(await send({ containers: [{ name: 'a', $patch: 'delete' }] })), [
      ['b', 'i:2'],
      ['c', 'i:1'],
    ])
    const order = {
      '$setElementOrder/containers': [{ name: 'c' }, { name: 'd' }, { name: 'b' }],
      containers: [container('d')],
    }
    deepEqual(names(await send(order)), [
      ['c', 'i:1'],
      ['d', 'i:1'],
      ['b', 'i:2'],
    ])
    deepEqual(names(await send({ containers: [{ $patch: 'replace' }, container('z')] })), [['z', 'i:1']])
  }),
  check(55, 'a strategic patch on a CR is 415', async (t) => {
    const path = await t.group(sandboxes, 'sandboxes')
    await t.create(path, sandbox('one'))
    const error = (await t.patch(`${path}/one`, strategicPatch, { metadata: { labels: { a: 'b' } } })).is(415)
    equal(error.reason, 'UnsupportedMediaType')
  }),
  check(
    56,
    "Python's and client-node's default patches succeed on a Pod and a CR",
    async (t) => {
      const namespace = await t.ns()
      await t.create(await t.core('pods'), pod('one'))
      await t.create(await t.group(sandboxes, 'sandboxes'), sandbox('one'))
      await clientNodePatches(t.server.kubeconfig, namespace, 'one')
      await runPython(t, 'patches', [namespace, 'one'])
      for (const path of [await t.core('pods', 'one'), await t.group(sandboxes, 'sandboxes', 'one')]) {
        const { labels } = (await t.get(path)).is(200).metadata
        deepEqual([labels?.python, labels?.node], ['yes', 'yes'], path)
      }
    },
    { heavy: true },
  ),
  check(57, 'fifty patches at a time to different keys all land', async (t) => {
    const path = await t.core('configmaps')
    await t.create(path, configMap('one', {}))
    const keys = Array.from({ length: 50 }, (_, index) => `key-${index}`)
    await t.eventually('all landed', async () => {
      const answers = await Promise.all(keys.map((key) => t.patch(`${path}/one`, mergePatch, { data: { [key]: 'x' } })))
      // A real server gives up after five rounds of its own and says Conflict; then a client sends the patch again.
      for (const answer of answers) if (answer.status !== 409 || t.isEmbedded) answer.is(200)
      return answers.every(({ status }) => status === 200)
    })
    deepEqual(Object.keys((await t.get(`${path}/one`)).is(200).data).sort(), [...keys].sort())
  }),
  check(
    58,
    'kubectl edit, label, annotate and the three types of patch succeed',
    async (t) => {
      await t.create(await t.core('configmaps'), configMap('one'))
      const run = (...args: string[]): Promise<string> => t.ok(anyKubectl, args)
      await run('label', 'cm/one', 'color=blue')
      await run('annotate', 'cm/one', 'note=hello')
      await run('patch', 'cm/one', '-p', '{"data":{"strategic":"1"}}')
      await run('patch', 'cm/one', '--type=merge', '-p', '{"data":{"merge":"1"}}')
      await run('patch', 'cm/one', '--type=json', '-p', '[{"op":"add","path":"/data/json","value":"1"}]')
      const editor = join(t.directory(), 'editor.sh')
      writeFileSync(editor, '#!/bin/sh\nsed -i "s/a: \\"1\\"/a: \\"edited\\"/" "$1"\n', { mode: 0o755 })
      match(await t.ok(anyKubectl, ['edit', 'cm/one'], { env: { EDITOR: editor } }), /edited/)
      const stored = (await t.get(await t.core('configmaps', 'one'))).is(200)
      deepEqual([stored.metadata.labels, stored.metadata.annotations], [{ color: 'blue' }, { note: 'hello' }])
      deepEqual(stored.data, { a: 'edited', strategic: '1', merge: '1', json: '1' })
    },
    { heavy: true },
  ),
]

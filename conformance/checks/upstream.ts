import { equal, ok } from 'node:assert/strict'
import { startInstantNode } from '../../packages/testing/src/instant-node.js'
import { startUpstreamController } from '../../tools/oracle/index.js'
import { type Check, check } from '../harness/check.js'
import { type Context, mergePatch } from '../harness/context.js'
import { at, type KubeBody } from '../harness/kube-body.js'
import { remoteClient } from '../harness/kube-client.js'
import { extensions, sandbox, sandboxes, template } from '../harness/objects.js'

const isReady = (body: KubeBody): boolean =>
  (at(body, 'status.conditions') as { type: string; status: string }[] | undefined)?.some(
    ({ type, status }) => type === 'Ready' && status === 'True',
  ) ?? false

const until = (t: Context, what: string, path: string, fits: (body: KubeBody) => boolean): Promise<KubeBody> => {
  let last: KubeBody | undefined
  return t
    .eventually(what, async () => {
      last = (await t.get(path)).is(200)
      return fits(last) && last
    })
    .catch((cause: unknown) => {
      throw new Error(`${what}: ${JSON.stringify(last?.status ?? last?.items)}`, { cause })
    })
}

export const upstream: readonly Check[] = [
  check(
    130,
    "upstream's unmodified controller reconciles a Sandbox, a claim from a pool, suspend, resume and deletion",
    async (t) => {
      const controller = await startUpstreamController({ kubeconfig: t.server.kubeconfig, crds: !t.isEmbedded })
      t.after(() => controller.stop())
      const { name, version, sha256 } = controller.binary
      t.usesBinary({ name, version, sha256 })
      const client = await remoteClient(t.server.kubeconfig)
      const node = startInstantNode({ client, nodeName: '', withoutScheduler: true })
      t.after(async () => {
        await node.stop()
        await client.close()
      })
      const box = await t.group(sandboxes, 'sandboxes', 'box')
      await t.create(await t.group(sandboxes, 'sandboxes'), sandbox('box'))
      await until(t, 'sandbox ready', box, isReady)
      const pods = await t.core('pods')
      equal((await t.get(pods)).is(200).items.length, 1)
      ;(await t.patch(box, mergePatch, { spec: { operatingMode: 'Suspended' } })).is(200)
      await until(t, 'suspended', pods, ({ items }) => items.length === 0)
      ;(await t.patch(box, mergePatch, { spec: { operatingMode: 'Running' } })).is(200)
      // Ready may still be told of the Pod that went.
      await until(t, 'a Pod again', pods, ({ items }) => items.length === 1)
      await until(t, 'resumed', box, isReady)

      await t.create(await t.group(extensions, 'sandboxtemplates'), template('tmpl'))
      const pools = await t.group(extensions, 'sandboxwarmpools')
      await t.create(pools, {
        apiVersion: extensions,
        kind: 'SandboxWarmPool',
        metadata: { name: 'pool' },
        spec: { replicas: 2, sandboxTemplateRef: { name: 'tmpl' } },
      })
      await until(t, 'pool filled', `${pools}/pool`, (body) => at(body, 'status.readyReplicas') === 2)
      const all = (await t.get(await t.group(sandboxes, 'sandboxes'))).is(200)
      const waiting = all.items.map(({ metadata }) => metadata.name).filter((name) => name !== 'box')
      equal(waiting.length, 2)
      const claims = await t.group(extensions, 'sandboxclaims')
      await t.create(claims, {
        apiVersion: extensions,
        kind: 'SandboxClaim',
        metadata: { name: 'claim' },
        spec: { warmPoolRef: { name: 'pool' } },
      })
      const claim = await until(t, 'claim ready', `${claims}/claim`, isReady)
      const adopted = String(at(claim, 'status.sandbox.name'))
      ok(waiting.includes(adopted), `${adopted} is one of the pool's: ${waiting.join()}`)
      ;(await t.del(`${claims}/claim`)).is(200)
      await t.gone(`${claims}/claim`)
      ;(await t.del(box)).is(200)
      await t.gone(box)
      ;(await t.del(`${pools}/pool`)).is(200)
      await until(t, 'nothing left', pods, ({ items }) => items.length === 0)
    },
    { needsGo: true, exclusive: true },
  ),
]

import { type KubeClient, kubeClientFromConfig, loadKubeConfig, type PatchBody } from '@corral/kube'
import { startInstantNode } from '../packages/testing/src/instant-node.js'
import { serveWorker } from './common/worker.js'

// Marks the Pods of a cluster without scheduler Running and Ready as soon as it sees them.
const [kubeconfig = ''] = process.argv.slice(2)
const access = await loadKubeConfig({ path: kubeconfig })
const client = kubeClientFromConfig(access, { userAgent: 'corral-bench-node' })
const node = startInstantNode({ client: withOneAddress(client), withoutScheduler: true })
await node.ready
await serveWorker({ ready: true }, async () => {
  await node.stop()
  await client.close()
})

/** Addresses play no part in the figures, and a real API server checks them: every Pod gets the same valid one. */
function withOneAddress(inner: KubeClient): KubeClient {
  return { ...inner, patch: (kind, ref, patch, options) => inner.patch(kind, ref, readdressed(patch), options) }
}

function readdressed(patch: PatchBody): PatchBody {
  if (patch.type !== 'merge') return patch
  const { status } = patch.body as { status?: { podIP?: string } }
  if (!status?.podIP) return patch
  const address = '100.64.0.1'
  return { type: 'merge', body: { status: { ...status, podIP: address, podIPs: [{ ip: address }] } } }
}

import { kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { startInstantNode } from '../packages/testing/src/instant-node.js'
import { serveWorker } from './common/worker.js'

// Marks the Pods of a cluster without scheduler Running and Ready as soon as it sees them.
const [kubeconfig = ''] = process.argv.slice(2)
const access = await loadKubeConfig({ path: kubeconfig })
const client = kubeClientFromConfig(access, { userAgent: 'corral-bench-node' })
const node = startInstantNode({ client, withoutScheduler: true })
await node.ready
await serveWorker({ ready: true }, async () => {
  await node.stop()
  await client.close()
})

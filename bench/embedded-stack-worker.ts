import { join } from 'node:path'
import { createApiServer, serveHttps, sqliteStorage, writeKubeconfig } from '@corral/apiserver'
import { defaultManagerOptions, startManager } from '@corral/controllers'
import { inProcessKubeClient } from '@corral/kube'
import { embeddedCrds } from '@corral/resources'
import { startInstantNode } from '../packages/testing/src/instant-node.js'
import { serveWorker } from './common/worker.js'

// The API server, the manager and an instant node in one process, plugged together as `corral up` does it.
const [dataDir = '', refill = 'on', threadProgram = ''] = process.argv.slice(2)
const server = await createApiServer({
  storage: sqliteStorage({ directory: join(dataDir, 'api'), threadProgram }),
  crds: embeddedCrds(),
})
const https = await serveHttps({ server, port: 0, dataDir })
const kubeconfig = join(dataDir, 'kubeconfig')
writeKubeconfig(kubeconfig, https)
const client = inProcessKubeClient(server, { userAgent: 'corral' })
const node = startInstantNode({ client })
await node.ready
const defaults = defaultManagerOptions()
const hour = 3_600_000
const pool = { ...defaults.pool, ...(refill === 'off' ? { replenishDelayMs: hour } : {}) }
const manager = startManager({ client, options: { ...defaults, pool } })
await manager.ready
await serveWorker({ kubeconfig }, async () => {
  await manager.stop()
  await node.stop()
  await client.close()
  await https.close()
  await server.close()
})

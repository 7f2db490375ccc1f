import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { findProvider } from '@corral/agents'
import { silentLogger } from '@corral/ports'
import { createTaskTokens, startBroker } from '@corral/tasks'
import httpProxy from 'http-proxy'
import { serveWorker } from './common/worker.js'

// Our broker or http-proxy, in front of the model at a port, in a process of its own as in `corral server`.
const [subject = 'corral', model = ''] = process.argv.slice(2)
const baseUrl = `http://127.0.0.1:${model}`

if (subject === 'corral') {
  const broker = await startBroker({
    tokens: createTaskTokens('bench'),
    findTask: async (uid) => ({ uid, provider: findProvider('anthropic')!, spent: { tokens: 0, costUsd: 0 } }),
    findKey: async () => 'key',
    baseUrlOf: () => baseUrl,
    recordCall: () => undefined,
    maxRequestsPerMinute: 1_000_000,
    port: 0,
    log: silentLogger,
  })
  await serveWorker({ port: broker.port }, () => broker.close())
} else {
  const proxy = httpProxy.createProxyServer({ target: baseUrl })
  const server = createServer((request, response) => proxy.web(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  await serveWorker({ port: (server.address() as AddressInfo).port }, async () => {
    server.closeAllConnections()
    server.close()
  })
}

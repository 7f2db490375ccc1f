import { createHmac } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type ApiServer,
  createApiServer,
  type HttpsEndpoint,
  memoryStorage,
  serveHttps,
  sqliteStorage,
  writeKubeconfig,
} from '@corral/apiserver'
import { inProcessKubeClient } from '@corral/kube'
import { embeddedCrds } from '@corral/resources'
import { type PodRunner, startPodRunner } from './pod-runner.js'
import { resignedToken } from './resigned-token.js'
import type { ServerUnderTest } from './server-under-test.js'

/** The embedded server in this process, over real TLS, with a node that runs pods as child processes. */
export async function startEmbeddedServer(mode: 'memory' | 'sqlite'): Promise<ServerUnderTest> {
  const directory = mkdtempSync(join(tmpdir(), 'corral-conformance-'))
  const kubeconfig = join(directory, 'kubeconfig')
  const tokenKey = Buffer.from('conformance: the key of service account tokens')
  let server: ApiServer
  let endpoint: HttpsEndpoint
  let node: PodRunner

  async function start(port: number): Promise<void> {
    const storage = mode === 'memory' ? memoryStorage() : sqliteStorage({ directory: join(directory, 'api') })
    server = await createApiServer({ storage, crds: embeddedCrds(), tokenKey, schedulesPods: false })
    await server.ready
    endpoint = await serveHttps({ server, port, dataDir: directory })
    node = await startPodRunner({ client: inProcessKubeClient(server) })
    server.setPodStreams(node.podStreams)
  }
  async function stop(): Promise<void> {
    await node.stop()
    await endpoint.close()
    await server.close()
  }

  await start(0)
  writeKubeconfig(kubeconfig, endpoint!)
  const { url, tls, token, port } = endpoint!
  return {
    kind: 'embedded',
    title: `embedded (${mode})`,
    kubeconfig,
    target: { url, token, ca: tls.ca.cert, cert: tls.admin.cert, key: tls.admin.key },
    nodeName: node!.nodeName,
    facts: { server: 'embedded', mode, node: process.version, isolation: node!.tier },
    resignToken: (token, change) =>
      resignedToken(token, change, (text) => createHmac('sha256', tokenKey).update(text).digest()),
    async restart() {
      await stop()
      await start(port)
    },
    async close() {
      await stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

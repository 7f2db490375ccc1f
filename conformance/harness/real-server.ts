import { sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { startKubeletServer, subjectAccess } from '@corral/node'
import { type CustomResourceDefinition, CustomResourceDefinitions, crdManifests } from '@corral/resources'
import { type ControlPlane, freePorts, startControlPlane } from '../../tools/oracle/index.js'
import { conformanceNode, startPodRunner } from './pod-runner.js'
import { resignedToken } from './resigned-token.js'
import type { ServerUnderTest } from './server-under-test.js'

/** A real kube-apiserver with etcd and controller manager, our CRDs of the `cluster` set, and the same node. */
export async function startRealServer(): Promise<ServerUnderTest> {
  const plane = await startControlPlane()
  try {
    return await serverOn(plane)
  } catch (error) {
    await plane.stop()
    throw error
  }
}

async function serverOn(plane: ControlPlane): Promise<ServerUnderTest> {
  const [kubeletPort = 0] = await freePorts(1)
  const client = kubeClientFromConfig(await loadKubeConfig({ path: plane.kubeconfig }))
  await installCrds(client)
  const node = await startPodRunner({ client, kubeletPort })
  const file = (name: string): string => readFileSync(join(plane.directory, 'tls', name), 'utf8')
  const kubelet = await startKubeletServer({
    node,
    port: kubeletPort,
    tls: { cert: file('server.crt'), key: file('server.key'), clientCa: file('ca.crt') },
    authorize: subjectAccess(client, conformanceNode),
    host: '127.0.0.1',
  })
  const signingKey = readFileSync(join(plane.directory, 'service-account.key'), 'utf8')
  const { 'kube-apiserver': apiserver } = plane.binaries
  return {
    kind: 'real',
    title: `kube-apiserver ${apiserver.version}`,
    kubeconfig: plane.kubeconfig,
    target: { url: plane.url, token: plane.token, ca: plane.ca, cert: file('admin.crt'), key: file('admin.key') },
    nodeName: conformanceNode,
    facts: {
      server: 'real',
      isolation: node.tier,
      binaries: Object.values(plane.binaries).map(({ name, version, sha256 }) => ({ name, version, sha256 })),
    },
    resignToken: (token, change) =>
      resignedToken(token, change, (text) => sign('sha256', Buffer.from(text), signingKey)),
    restart: () => plane.restartApiserver(),
    async close() {
      await kubelet.close()
      await node.stop()
      await plane.stop()
    },
  }
}

type Client = ReturnType<typeof kubeClientFromConfig>

async function installCrds(client: Client): Promise<void> {
  const crds: readonly CustomResourceDefinition[] = crdManifests('cluster')
  for (const crd of crds)
    await client.apply(CustomResourceDefinitions, crd, { force: true, fieldManager: 'conformance' })
  const deadline = Date.now() + 240_000
  for (const crd of crds) {
    const name = crd.metadata?.name ?? ''
    while (!(await isEstablished(client, name))) {
      if (Date.now() > deadline) throw new Error(`${name} is not established`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

async function isEstablished(client: Client, name: string): Promise<boolean> {
  const { status } = await client.get(CustomResourceDefinitions, { name })
  return (
    status?.conditions?.some((condition) => condition.type === 'Established' && condition.status === 'True') ?? false
  )
}

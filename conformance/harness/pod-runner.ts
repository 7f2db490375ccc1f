import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeClient } from '@corral/kube'
import { type NodeAgent, type NodeOptions, pickIsolation, startNode } from '@corral/node'
import { type PodStreams, silentLogger, systemClock } from '@corral/resources'

/** Our node agent with the best isolation this machine has: it serves any API server's exec, logs and port-forward. */
export interface PodRunner {
  readonly nodeName: string
  readonly podStreams: PodStreams
  stop(): Promise<void>
}

export const conformanceNode = 'conformance-node'

export interface PodRunnerOptions {
  client: KubeClient
  /** Where the kubelet's routes are served, for an API server in another process. */
  kubeletPort?: number
}

export async function startPodRunner({ client, kubeletPort }: PodRunnerOptions): Promise<PodRunner> {
  const directory = mkdtempSync(join(tmpdir(), 'corral-conformance-node-'))
  chmodSync(directory, 0o711) // pods run as other users, and nothing below a closed directory can be mounted for them
  const { isolation } = await pickIsolation({ dataDir: directory, allowProcess: true, log: silentLogger })
  const options: NodeOptions = {
    client,
    isolation,
    dataDir: directory,
    nodeName: conformanceNode,
    images: {},
    services: [],
    hostIP: '127.0.0.1',
    clock: systemClock,
    log: silentLogger,
    ...(kubeletPort ? { kubeletPort } : {}),
  }
  const agent: NodeAgent = await startNode(options)
  await agent.ready
  return {
    nodeName: conformanceNode,
    podStreams: agent.podStreams,
    async stop() {
      await agent.stop({ endPods: true })
      await isolation.close({ endPods: true })
      await client.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

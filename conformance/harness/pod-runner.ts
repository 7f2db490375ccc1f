import { mkdirSync } from 'node:fs'
import type { KubeClient } from '@corral/kube'
import { type NodeAgent, type NodeOptions, startNode } from '@corral/node'
import { type PodStreams, silentLogger, systemClock } from '@corral/resources'
import { fakeIsolation } from '@corral/testing'

/** A node whose pods are plain child processes: enough for exec, logs, attach and port-forward on any API server. */
export interface PodRunner {
  readonly nodeName: string
  readonly podStreams: PodStreams
  stop(): Promise<void>
}

export const conformanceNode = 'conformance-node'

export interface PodRunnerOptions {
  client: KubeClient
  directory: string
  /** Where the kubelet's routes are served, for an API server in another process. */
  kubeletPort?: number
}

export async function startPodRunner({ client, directory, kubeletPort }: PodRunnerOptions): Promise<PodRunner> {
  mkdirSync(directory, { recursive: true, mode: 0o711 })
  const isolation = fakeIsolation()
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
    },
  }
}

import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeClient } from '@corral/kube'
import { type NodeAgent, type NodeOptions, pickIsolation, startNode } from '@corral/node'
import { type PodStreams, silentLogger, systemClock } from '@corral/ports'

/** Our node agent with the best isolation this machine has: it serves any API server's exec, logs and port-forward. */
export interface PodRunner {
  readonly nodeName: string
  readonly podStreams: PodStreams
  /** How pods are kept apart. */
  readonly tier: string
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
  const { isolation, report, rejected } = await pickIsolation({
    dataDir: directory,
    allowUnconfined: true,
    idleShutdownMs: 30_000, // a suite that was killed leaves no pods behind
    log: silentLogger,
  })
  // Plain processes share the machine's ports, so the checks about pods disturb each other: say why before they do.
  for (const { tier, checks } of rejected) {
    const why = checks.flatMap(({ name, passed, detail }) => (passed ? [] : [`${name}: ${detail ?? 'no'}`]))
    process.stderr.write(`conformance: pods run as plain processes, ${tier} cannot be used: ${why.join('; ')}\n`)
  }
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
    tier: report.tier,
    async stop() {
      await agent.stop({ endPods: true })
      await isolation.close({ endPods: true })
      await client.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

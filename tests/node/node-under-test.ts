import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ApiServer, createApiServer, memoryStorage } from '@corral/apiserver'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import { type Isolation, type NodeAgent, type NodeOptions, startNode } from '@corral/node'
import { silentLogger, systemClock } from '@corral/ports'
import { Events, embeddedCrds, type Pod, Pods, type Stored } from '@corral/resources'
import { expect, vi } from 'vitest'

/** A node on a real API server in memory, with everything it needs and nothing left over afterwards. */
export interface NodeUnderTest extends AsyncDisposable {
  readonly client: KubeClient
  readonly server: ApiServer
  readonly dataDir: string
  readonly agent: NodeAgent
  /** Creates a pod that is bound to the node. */
  create(name: string, spec: Pod['spec'], metadata?: Pod['metadata']): Promise<Stored<Pod>>
  /** Waits until the pod is as described and answers it. */
  until(name: string, describe: (pod: Stored<Pod>) => boolean): Promise<Stored<Pod>>
  untilGone(name: string): Promise<void>
  logs(name: string, container?: string): Promise<string>
  run(
    name: string,
    command: string[],
    container?: string,
  ): Promise<{ exitCode: number; stdout: string; stderr: string }>
  events(name: string): Promise<{ type: string; reason: string; message: string }[]>
  /** Stops the agent and starts another one on the same directory. */
  restart(options: { endPods: boolean; isolation?: Isolation }): Promise<void>
}

export const nodeName = 'node-under-test'
const waitMs = 240_000

export async function nodeUnderTest(
  isolationFor: (dataDir: string) => Isolation,
  options: Partial<NodeOptions> = {},
): Promise<NodeUnderTest> {
  const dataDir = mkdtempSync(join(tmpdir(), 'corral-node-'))
  chmodSync(dataDir, 0o711)
  const server = await createApiServer({ storage: memoryStorage(), crds: embeddedCrds() })
  await server.ready
  const client = inProcessKubeClient(server)
  let isolation = isolationFor(dataDir)
  const start = async (): Promise<NodeAgent> => {
    const base = {
      client,
      isolation,
      dataDir,
      nodeName,
      images: {},
      services: [],
      clock: systemClock,
      log: silentLogger,
    }
    const agent = await startNode({ ...base, ...options, isolation })
    await agent.ready
    server.setPodStreams(agent.podStreams)
    return agent
  }
  async function closeAll(): Promise<void> {
    await isolation.close({ endPods: true })
    await client.close()
    await server.close()
    rmSync(dataDir, { recursive: true, force: true })
    expect(existsSync(dataDir)).toBe(false)
  }
  let agent = await start().catch(async (error: unknown) => {
    await closeAll()
    throw error
  })
  const at = (name: string) => ({ namespace: 'default', name })

  return {
    client,
    server,
    dataDir,
    get agent() {
      return agent
    },
    create: (name, spec, metadata) =>
      client.create(Pods, {
        metadata: { ...at(name), ...metadata },
        spec: { terminationGracePeriodSeconds: 2, ...spec!, nodeName },
      }),
    async until(name, describe) {
      return vi.waitFor(
        async () => {
          const pod = await client.find(Pods, at(name))
          if (pod && describe(pod)) return pod
          throw new Error(`pod ${name} stays ${JSON.stringify(pod?.status, null, 1)}`)
        },
        { timeout: waitMs, interval: 20 },
      )
    },
    async untilGone(name) {
      await expect.poll(() => client.find(Pods, at(name)), { timeout: waitMs, interval: 20 }).toBe(undefined)
    },
    async logs(name, container) {
      return text(client.logs(at(name), container ? { container } : {}))
    },
    async run(name, command, container) {
      const child = await client.exec(at(name), { command, ...(container ? { container } : {}) })
      const [stdout, stderr, exit] = await Promise.all([text(child.stdout), text(child.stderr), child.exited])
      return { exitCode: exit.exitCode, stdout, stderr }
    },
    async events(name) {
      const all = await client.list(Events, { namespace: 'default' })
      return all.items
        .filter((event) => event.involvedObject?.name === name)
        .map(({ type = '', reason = '', message = '' }) => ({ type, reason, message }))
    },
    async restart({ endPods, isolation: next }) {
      await agent.stop({ endPods })
      if (next) isolation = next
      agent = await start()
    },
    async [Symbol.asyncDispose]() {
      await agent.stop({ endPods: true })
      await closeAll()
    },
  }
}

export async function text(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) parts.push(chunk)
  return Buffer.concat(parts).toString('utf8')
}

export function condition(pod: Pod, type: string): string | undefined {
  return pod.status?.conditions?.find((entry) => entry.type === type)?.status
}

export const isReady = (pod: Pod): boolean => condition(pod, 'Ready') === 'True'
export const hasPhase =
  (phase: string) =>
  (pod: Pod): boolean =>
    pod.status?.phase === phase

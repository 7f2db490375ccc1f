import type { KubeClient } from '@corral/kube'
import type { AgentTask, Stored } from '@corral/resources'
import { expect, it } from 'vitest'
import { attachSnapshot } from './attach-snapshot.js'

const { signal } = new AbortController()
const task = {
  metadata: { uid: 'u1', name: 't', namespace: 'corral' },
  status: { sandbox: { podName: 'p' } },
} as unknown as Stored<AgentTask>

type Client = Pick<KubeClient, 'find' | 'patch'>

/** A cluster whose controllers never come round: what reaches the pod was told to it. */
function cluster({ wanted, hasPod = true }: { wanted?: string; hasPod?: boolean }) {
  const told: { kind: string; body: unknown }[] = []
  const claim = { spec: { additionalPodMetadata: { annotations: { 'corral.dev/snapshot': wanted } } } }
  const client = {
    async find({ kind }: { kind: string }) {
      if (kind !== 'Pod') return claim
      const isTold = wanted !== undefined || told.some((each) => each.kind === 'Pod')
      const condition = { type: 'corral.dev/SnapshotAttached', status: 'True', message: 'snap: attached' }
      return hasPod ? { status: { conditions: isTold ? [condition] : [] } } : undefined
    },
    async patch({ kind }: { kind: string }, _: unknown, { body }: { body: unknown }) {
      told.push({ kind, body })
      if (kind === 'Pod' && !hasPod) throw Object.assign(new Error('not found'), { code: 'NotFound' })
    },
  } as unknown as Client
  return { client, told }
}

it('a snapshot is asked for in the claim, and the pod is told without waiting for the controllers', async () => {
  const { client, told } = cluster({})
  expect(await attachSnapshot(client, task, 'snap', signal)).toBe(true)
  const annotations = { 'corral.dev/snapshot': 'snap' }
  expect(told).toEqual([
    { kind: 'SandboxClaim', body: { spec: { additionalPodMetadata: { annotations } } } },
    { kind: 'Pod', body: { metadata: { annotations } } },
  ])
})

it('a snapshot that was asked for before is not asked for again', async () => {
  const { client, told } = cluster({ wanted: 'snap' })
  expect(await attachSnapshot(client, task, 'snap', signal)).toBe(true)
  expect(told).toEqual([])
})

it('a pod that is gone is a lost sandbox', async () => {
  const { client } = cluster({ hasPod: false })
  await expect(attachSnapshot(client, task, 'snap', signal)).rejects.toMatchObject({ code: 'SandboxLost' })
})

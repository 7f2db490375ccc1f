import { type KubeClient, runLeaderElection } from '@corral/kube'
import type { Clock, Logger } from '@corral/ports'

/** The lease of upstream's manager: ours and theirs never act at once on one cluster. */
export const leaseName = 'a3317529.agent-sandbox.x-k8s.io'

/** Acts while this process holds the lease. Rejects when it was lost: another manager acts then. */
export async function lead(election: {
  namespace: string
  identity: string
  client: KubeClient
  clock: Clock
  log: Logger
  act: (signal: AbortSignal) => Promise<void>
  told: (isLeader: boolean) => void
  signal: AbortSignal
}): Promise<void> {
  const { act, told, ...options } = election
  told(false)
  let isLost = false
  await runLeaderElection({
    ...options,
    name: leaseName,
    leaseMs: 15_000,
    renewMs: 10_000,
    retryMs: 2_000,
    async onStarted(signal) {
      told(true)
      try {
        await act(signal)
      } finally {
        told(false)
      }
    },
    onLost() {
      isLost = true
    },
    releaseOnCancel: true,
  })
  if (isLost && !election.signal.aborted)
    throw Object.assign(new Error('leader election lost'), { code: 'LeadershipLost' })
}

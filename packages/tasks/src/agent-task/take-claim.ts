import { type AgentTask, type SandboxClaim, SandboxClaims, type Stored } from '@corral/resources'
import { claimFor } from './claim.js'
import { append } from './recording.js'
import type { TaskPorts } from './task-ports.js'

/**
 * The held claim as a follow-up's: its owner, its label and a shutdown time of its own. Its name stays; what the pod may
 * reach stays as well until the follow-up enters a phase of its own.
 */
export function takenClaim(held: Stored<SandboxClaim>, task: Stored<AgentTask>, now: Date): Stored<SandboxClaim> {
  const { metadata = {}, spec } = claimFor(task, held.spec.warmPoolRef.name, now)
  return {
    ...held,
    metadata: {
      ...held.metadata,
      labels: { ...held.metadata.labels, ...metadata.labels },
      ...(metadata.ownerReferences ? { ownerReferences: metadata.ownerReferences } : {}),
    },
    spec: { ...held.spec, ...(spec.lifecycle ? { lifecycle: spec.lifecycle } : {}) },
  }
}

/** One write passes the sandbox on. After a conflicting write it is refused, and the next pass reads again. */
export async function takeClaim(
  held: Stored<SandboxClaim>,
  task: Stored<AgentTask>,
  ports: Pick<TaskPorts, 'client' | 'clock' | 'records' | 'log'>,
): Promise<void> {
  await ports.client.update(SandboxClaims, takenClaim(held, task, ports.clock.now()))
  const from = task.spec.continues?.task ?? ''
  await append(ports as TaskPorts, task.metadata.uid, [
    { type: 'stage', stage: 'claim', state: 'started', detail: `sandbox held by ${from}` },
  ])
  ports.log.info('a held sandbox was taken over', { task: task.metadata.name, from, claim: held.metadata.name })
}

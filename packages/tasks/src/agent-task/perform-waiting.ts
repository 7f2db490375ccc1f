import { type AgentTask, AgentTasks, isNotFound, SandboxClaims, type Stored } from '@corral/resources'
import { claimNameOf } from '../held/find-claim.js'
import { awaitingApproval, nextRun, released } from '../plan-approval/plan-status.js'
import { claimFor } from './claim.js'
import type { TaskAction } from './plan.js'
import { append } from './recording.js'
import type { TaskPorts } from './task-ports.js'

type WaitingAction = Extract<TaskAction, { kind: 'awaitApproval' | 'releaseSandbox' | 'nextRun' }>

/** Carries out what a task with a plan needs. Each is one write of the status, after everything it says is true. */
export async function performWaiting(action: WaitingAction, task: Stored<AgentTask>, ports: TaskPorts): Promise<void> {
  const { client, clock, records } = ports
  const { namespace = 'default', name, uid } = task.metadata
  const claimName = claimNameOf(task)
  const write = async (next: Stored<AgentTask>): Promise<void> => {
    await client.updateStatus(AgentTasks, next)
    ports.log.info('task recorded', { task: name, action: action.kind, phase: next.status?.phase })
  }
  switch (action.kind) {
    case 'awaitApproval':
      return write(awaitingApproval(task, clock.now()))
    case 'releaseSandbox':
      // The claim first: with the status written and the claim still there the old sandbox would be taken for a new one.
      await client.delete(SandboxClaims, { namespace, name: claimName }).catch(ignoreMissing)
      return write(released(task))
    case 'nextRun': {
      const { decision } = action
      const { agentEvents } = await records.events.tail(uid)
      await append(ports, uid, [
        {
          type: 'plan_decision',
          revision: decision.revision,
          verdict: decision.verdict,
          ...(decision.plan ? { edited: true } : {}),
          ...(decision.remark ? { remark: decision.remark.slice(0, 60_000) } : {}),
        },
      ])
      await prolongClaim(task, ports, clock.now())
      return write(nextRun(task, decision, agentEvents, clock.now()))
    }
  }
}

/** A sandbox that was held gets the time that a new one at `from` would have. */
export async function prolongClaim(task: Stored<AgentTask>, { client }: TaskPorts, from: Date): Promise<void> {
  const { namespace = 'default' } = task.metadata
  const name = claimNameOf(task)
  const claim = await client.find(SandboxClaims, { namespace, name })
  if (!claim || claim.metadata.deletionTimestamp) return
  const { lifecycle } = claimFor(task, claim.spec.warmPoolRef.name, from).spec
  await client.update(SandboxClaims, { ...claim, spec: { ...claim.spec, ...(lifecycle ? { lifecycle } : {}) } })
}

function ignoreMissing(error: unknown): void {
  if (!isNotFound(error)) throw error
}

import type { AgentTask, AgentTaskStatus, SandboxClaim, Stored } from '@corral/resources'

/** What the status of a task says of the sandbox it got. */
export function sandboxRecord({
  task,
  claim,
  podName,
  isolation,
  provider,
}: {
  task: Stored<AgentTask>
  claim: Stored<SandboxClaim>
  /** Of the sandbox's pod, which may be named otherwise than the sandbox. */
  podName: string | undefined
  isolation: string | undefined
  provider: string | undefined
}): Partial<AgentTaskStatus> {
  const claimName = claim.metadata.name
  const isTaken = claimName !== task.metadata.name
  const sandboxName = claim.status?.sandbox?.name
  return {
    sandbox: {
      claimName,
      ...(isTaken ? { takenFrom: task.spec.continues?.task ?? claimName } : {}),
      ...(sandboxName ? { sandboxName } : {}),
      ...(podName ? { podName } : {}),
      ...(isolation ? { isolation } : {}),
      ...(provider === undefined ? {} : { provider }),
    },
    ...(task.spec.egress ? { egress: task.spec.egress } : {}),
  }
}

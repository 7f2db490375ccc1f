import type { AgentTask } from '@corral/resources'

/** On a claim, and from there on its pod: what the sandbox may reach. */
export const egressAnnotation = 'corral.dev/egress'

/** Parts of a task that may reach different places: set-up, and everything from the agent on. */
export type NetworkPhase = 'setup' | 'agent'

type Granted = Pick<AgentTask, 'spec' | 'status'>

/** What the task may reach in this phase, each once: what it was granted, and what its environment asks for. Pure. */
export function egressOf({ spec, status }: Granted, phase: NetworkPhase): string[] {
  const { environment } = status ?? {}
  const always = [...(spec.egress ?? []), ...(environment?.egress ?? [])]
  return [
    ...new Set(
      phase === 'setup' ? [...always, ...(spec.setupEgress ?? []), ...(environment?.setupEgress ?? [])] : always,
    ),
  ]
}

export function isGranted(task: Granted, phase: NetworkPhase, rule: string): boolean {
  return egressOf(task, phase).some((granted) => granted.toLowerCase() === rule)
}

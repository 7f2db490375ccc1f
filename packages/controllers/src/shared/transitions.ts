import type { EventNote } from '@corral/kube'
import { findCondition, isConditionTrue, type Sandbox, type SandboxStatus, type Stored } from '@corral/resources'

/** Something that became true of a Sandbox with one status. */
export type Transition = 'ready' | 'suspending' | 'suspended' | 'resuming' | 'succeeded' | 'failed' | 'expired'

/** What is new in a status. Each is told once, because the status that is written is the next one's past. */
export function sandboxTransitions(sandbox: Stored<Sandbox>, after: SandboxStatus): Transition[] {
  const before = sandbox.status?.conditions
  const { conditions } = after
  const became = (type: string): boolean => !isConditionTrue(before, type) && isConditionTrue(conditions, type)
  const reason = (list: typeof before, type: string): string | undefined => findCondition(list, type)?.reason
  const isLeaving = (list: typeof before): boolean => (reason(list, 'Suspended') ?? 'NotSuspended') !== 'NotSuspended'
  const found: Transition[] = []
  if (became('Ready')) found.push('ready')
  if (!isLeaving(before) && isLeaving(conditions)) found.push('suspending')
  if (became('Suspended')) found.push('suspended')
  if (isLeaving(before) && !isLeaving(conditions)) found.push('resuming')
  if (became('Finished')) found.push(reason(conditions, 'Finished') === 'PodSucceeded' ? 'succeeded' : 'failed')
  const hasExpired = (list: typeof before): boolean => reason(list, 'Ready') === 'SandboxExpired'
  if (!hasExpired(before) && hasExpired(conditions)) found.push('expired')
  return found
}

/** What users are told about a transition. An expired Sandbox that is deleted takes its events along, so none is sent. */
export function transitionNote(transition: Transition, { spec }: Stored<Sandbox>): EventNote | undefined {
  const note = (reason: string, text: string, type: EventNote['type'] = 'Normal'): EventNote => ({
    type,
    reason,
    action: 'Reconciling',
    note: text,
  })
  switch (transition) {
    case 'ready':
      return note('SandboxReady', 'Sandbox is ready')
    case 'suspended':
      return note('SandboxSuspended', 'Sandbox is suspended')
    case 'succeeded':
      return note('PodSucceeded', 'Pod completed successfully')
    case 'failed':
      return note('PodFailed', 'Pod failed', 'Warning')
    case 'expired':
      return spec.shutdownPolicy === 'Delete' ? undefined : note('SandboxExpired', 'Sandbox has expired')
    case 'suspending':
    case 'resuming':
      return undefined
  }
}

import { findCondition, type Sandbox, type SandboxStatus, type Stored } from '@corral/resources'
import { combineErrors, errorText } from '../shared/error-text.js'
import { quote } from '../shared/ownership.js'
import { sandboxTransitions, transitionNote } from '../shared/transitions.js'
import type { PodOutcome } from './pod-step.js'
import type { SandboxPorts } from './ports.js'
import { multiplePodsText } from './status.js'

/** Tells and counts what a status just written says for the first time. */
export function reportTransitions(sandbox: Stored<Sandbox>, status: SandboxStatus, ports: SandboxPorts): void {
  const { events, lifecycle, options } = ports
  if (!options.upstreamRelease?.sandboxEvents && !lifecycle) return
  for (const transition of sandboxTransitions(sandbox, status)) {
    lifecycle?.became(sandbox, transition)
    const note = options.upstreamRelease?.sandboxEvents ? transitionNote(transition, sandbox) : undefined
    if (note) events.record(sandbox, note)
  }
}

/** Tells whether the Pod could be made. */
export function reportPod(
  sandbox: Stored<Sandbox>,
  { creates, object, errors }: PodOutcome,
  ports: SandboxPorts,
): void {
  if (errors.length > 0) ports.lifecycle?.failed(sandbox)
  if (!creates || !ports.options.upstreamRelease?.sandboxEvents) return
  const said = object
    ? ({ type: 'Normal', reason: 'SandboxPodCreated', note: `Created Pod ${quote(object.metadata.name)}` } as const)
    : ({ type: 'Warning', reason: 'SandboxPodCreateFailed', note: errorText(combineErrors(errors)) } as const)
  ports.events.record(sandbox, { ...said, action: 'Reconciling' })
}

/** Complains once about Pods that should not be. */
export function reportMultiplePods(sandbox: Stored<Sandbox>, count: number, { events }: SandboxPorts): void {
  if (findCondition(sandbox.status?.conditions, 'Ready')?.reason === 'MultiplePods') return
  events.record(sandbox, {
    type: 'Warning',
    reason: 'MultiplePods',
    action: 'Reconciling',
    note: multiplePodsText(count),
  })
}

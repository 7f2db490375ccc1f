import type { KubeClient } from '@corral/kube'
import type { Logger } from '@corral/ports'
import {
  type AgentTask,
  egressCondition,
  type Pod,
  Pods,
  packagesGrant,
  SandboxClaims,
  type Stored,
} from '@corral/resources'
import { claimNameOf } from '../held/find-claim.js'
import { TaskError } from '../task-error.js'
import { egressAnnotation, egressOf, isGranted, type NetworkPhase } from './phase-egress.js'

/** The network as it stands once a phase has begun. */
export interface PhaseNetwork {
  /** The package mirror is served on the sandbox's loopback. */
  hasPackages: boolean
  /** Something was asked for, and nodes open nothing by name. */
  isUnsupported?: boolean
}

export interface NetworkPhasePorts {
  client: Pick<KubeClient, 'find' | 'patch'>
  /** False where nodes open nothing by name: a phase then begins without network, and nothing is waited for. */
  hasEgressByName?: boolean
  log: Logger
}

/** A node that is busy answers late; one that does not speak of the network at all is not waited for that long. */
const confirmMs = 120_000
const firstWordMs = 20_000
const lookEveryMs = 50

/**
 * Opens what the task may reach in this phase and closes what it may not reach any more, and waits for the node to say
 * so. Safe to repeat. A task without grants has nothing to wait for. A node that knows no such thing has opened nothing:
 * the phase begins without network.
 */
export async function enterPhase(
  ports: NetworkPhasePorts,
  task: Stored<AgentTask>,
  phase: NetworkPhase,
  signal: AbortSignal,
): Promise<PhaseNetwork> {
  // Where set-up may reach nothing, the agent may neither: there is nothing to close.
  if (egressOf(task, 'setup').length === 0) return { hasPackages: false }
  if (ports.hasEgressByName === false) return { hasPackages: false, isUnsupported: true }
  const wanted = egressOf(task, phase).join(', ')
  if (!(await ask(ports, task, wanted))) return { hasPackages: false }
  const state = await confirmation(ports, task, wanted, signal)
  return { hasPackages: state === 'Applied' && isGranted(task, phase, packagesGrant) }
}

/**
 * The claim passes its annotations on to the Sandbox, and that to its pod. False where nothing was ever opened and nothing is to
 * be: a node has no word for that.
 */
async function ask({ client }: NetworkPhasePorts, task: Stored<AgentTask>, wanted: string): Promise<boolean> {
  const { namespace = 'default' } = task.metadata
  const name = claimNameOf(task)
  const claim = await client.find(SandboxClaims, { namespace, name })
  if (!claim) throw new TaskError('SandboxLost', `the claim ${name} is gone`)
  const asked = claim.spec.additionalPodMetadata?.annotations?.[egressAnnotation]
  if (asked === undefined && wanted === '') return false
  if (asked === wanted) return true
  const annotations = { [egressAnnotation]: wanted }
  await client.patch(
    SandboxClaims,
    { namespace, name },
    { type: 'merge', body: { spec: { additionalPodMetadata: { annotations } } } },
  )
  return true
}

async function confirmation(
  { client, log }: NetworkPhasePorts,
  task: Stored<AgentTask>,
  wanted: string,
  signal: AbortSignal,
): Promise<'Applied' | 'Unrestricted' | 'Unknown'> {
  const { namespace = 'default' } = task.metadata
  const name = task.status?.sandbox?.podName
  if (!name) return 'Unknown'
  let word = ''
  for (let waitedMs = 0; waitedMs < (word ? confirmMs : firstWordMs); waitedMs += lookEveryMs) {
    signal.throwIfAborted()
    const pod = await client.find(Pods, { namespace, name })
    if (!pod) throw new TaskError('SandboxLost', `the pod ${name} is gone`)
    const condition = conditionOf(pod)
    if (condition?.status === 'True' && (condition.message ?? '') === wanted)
      return condition.reason === 'Unrestricted' ? 'Unrestricted' : 'Applied'
    if (condition?.reason === 'InvalidEgress' && annotationOf(pod) === wanted)
      throw new TaskError('InvalidTask', condition.message ?? 'the egress of the task cannot be read')
    word = condition?.message || condition?.reason || word
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs))
  }
  if (word) throw new Error(`the network of the sandbox could not be changed to "${wanted}": ${word}`)
  log.warn('the node does not say what the sandbox may reach', { pod: name, wanted })
  return 'Unknown'
}

const conditionOf = (pod: Pod) => pod.status?.conditions?.find(({ type }) => type === egressCondition)
const annotationOf = (pod: Pod): string => pod.metadata?.annotations?.[egressAnnotation] ?? ''

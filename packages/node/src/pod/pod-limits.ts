import { type Pod, parseResources, quantityToNumber, resourcesAnnotation, withResources } from '@corral/resources'
import type { Isolation, PodLimits } from '../isolation/isolation.js'
import { containerLimits, podLimits } from '../launch/amounts.js'
import type { PodFacts } from '../launch/downward-api.js'

/** How the limits of a pod stand, as its condition tells it. */
export interface LimitsState {
  status: 'True' | 'False'
  reason: 'Applied' | 'Unenforced' | 'Invalid' | 'Infeasible' | 'Failed'
  /** The annotation that is in force; what is wrong where the status is False. */
  message: string
}

/** The pod with the limits its annotation asks for; as it is, with the reason, where they cannot be had. Pure. */
export function limitedPod<T extends Pod>(
  pod: T,
  allocatable: PodFacts['allocatable'],
): { pod: T; refusal?: Pick<LimitsState, 'reason' | 'message'> } {
  const text = textOf(pod)
  if (text === '') return { pod }
  const asked = parseResources(text)
  const refuse = (reason: 'Invalid' | 'Infeasible', message: string) => ({ pod, refusal: { reason, message } })
  if (!asked) return refuse('Invalid', `"${text}" is not of the form cpu=2, memory=8Gi, disk=20Gi`)
  if ((pod.spec?.containers.length ?? 0) + (pod.spec?.initContainers?.length ?? 0) !== 1)
    return refuse('Invalid', `${resourcesAnnotation} is for pods of one container`)
  const has = {
    cpu: allocatable.cpuMillis / 1000,
    memory: allocatable.memoryBytes,
    disk: allocatable.ephemeralStorageBytes,
  }
  const tooMuch = (['cpu', 'memory', 'disk'] as const).find(
    (name) => (quantityToNumber(asked[name] ?? 0) ?? 0) > has[name],
  )
  if (tooMuch) {
    const there = tooMuch === 'cpu' ? String(has.cpu) : `${Math.floor(has[tooMuch] / 2 ** 20)}Mi`
    return refuse('Infeasible', `${tooMuch} ${asked[tooMuch]} is more than the ${there} of this node`)
  }
  // The type stays: nothing but limits of containers is other than before.
  return { pod: withResources(pod, asked) as T }
}

/** Keeps a pod to the limits its annotation asks for while it runs. Its condition appears with the first annotation and stays. */
export class PodLimiter {
  #applied: string | undefined
  #state: LimitsState | undefined

  constructor(private readonly ports: { isolation: Isolation; pidsLimit?: number | undefined }) {}

  get state(): LimitsState | undefined {
    return this.#state
  }

  /** Nothing is known of the pod's limits: its processes are gone, or were started by an earlier process of ours. */
  forget(): void {
    this.#applied = undefined
  }

  /** Carries a changed annotation out. Throws what the isolation throws; the next pass tries again. */
  async follow(pod: Pod, podUid: string, refusal: Pick<LimitsState, 'reason' | 'message'> | undefined): Promise<void> {
    const text = textOf(pod)
    if (text === (this.#applied ?? '')) return
    if (refusal) {
      this.#applied = text
      this.#state = { status: 'False', ...refusal }
      return
    }
    try {
      const { enforced } = await this.ports.isolation.setLimits(podUid, limitsOf(pod, this.ports.pidsLimit))
      this.#applied = text
      this.#state = { status: 'True', reason: enforced ? 'Applied' : 'Unenforced', message: text }
    } catch (error) {
      this.#state = {
        status: 'False',
        reason: 'Failed',
        message: error instanceof Error ? error.message : String(error),
      }
      throw error
    }
  }
}

function limitsOf({ spec }: Pod, pidsLimit: number | undefined): PodLimits {
  const containers = spec?.containers ?? []
  return {
    pod: spec ? podLimits(spec, pidsLimit) : {},
    containers: Object.fromEntries(containers.map((each) => [each.name, containerLimits(each, pidsLimit)])),
  }
}

const textOf = (pod: Pod): string => pod.metadata?.annotations?.[resourcesAnnotation] ?? ''

import { egressCondition, type Pod } from '@corral/resources'
import { admitPod } from '../admission.js'
import { egressAnnotation } from '../egress/egress-annotation.js'
import type { HostService, Isolation, PodReach } from '../isolation/isolation.js'

/** How the network of a pod stands, as its condition tells it. */
export interface EgressState {
  status: 'True' | 'False'
  reason: 'Applied' | 'Unrestricted' | 'Failed' | 'InvalidEgress'
  /** What is open, in the words of the annotation; what is wrong where the status is False. */
  message: string
}

/** What the pod's annotation opens, with the services of the node it may have. Pure. */
export function reachOf(pod: Pod, services: readonly HostService[]): PodReach {
  const { rules, grants } = admitPod(pod).egress
  return { egress: rules, services: services.filter(({ grant }) => grant === undefined || grants.includes(grant)) }
}

/**
 * Keeps a pod's network as its annotation says while the pod runs, and knows how it stands. The annotation of a pod that
 * was never opened is no news: its condition appears with the first annotation and stays.
 */
export class PodEgress {
  #applied: string | undefined
  #state: EgressState | undefined

  constructor(private readonly ports: { isolation: Isolation; services: readonly HostService[] }) {}

  get state(): EgressState | undefined {
    return this.#state
  }

  /** The pod was made with what it says now. */
  prepared(pod: Pod, isRestricted: boolean): void {
    this.#applied = textOf(pod)
    this.#tell(pod, isRestricted)
  }

  /** Nothing is known of the pod's network: it is gone, or was made by an earlier process. */
  forget(): void {
    this.#applied = undefined
  }

  /** Carries a changed annotation out. Throws what the isolation throws; the next pass tries again. */
  async follow(pod: Pod, podUid: string): Promise<void> {
    const text = textOf(pod)
    if (text === this.#applied) return
    const { refusal } = admitPod(pod)
    if (refusal) {
      this.#applied = text
      this.#state = { status: 'False', reason: 'InvalidEgress', message: refusal.message }
      return
    }
    try {
      const { restricted } = await this.ports.isolation.setNetwork(podUid, reachOf(pod, this.ports.services))
      this.#applied = text
      this.#tell(pod, restricted)
    } catch (error) {
      this.#state = {
        status: 'False',
        reason: 'Failed',
        message: error instanceof Error ? error.message : String(error),
      }
      throw error
    }
  }

  #tell(pod: Pod, isRestricted: boolean): void {
    const wasTold = pod.status?.conditions?.some(({ type }) => type === egressCondition) ?? false
    if (pod.metadata?.annotations?.[egressAnnotation] === undefined && !this.#state && !wasTold) return
    this.#state = { status: 'True', reason: isRestricted ? 'Applied' : 'Unrestricted', message: textOf(pod) }
  }
}

const textOf = (pod: Pod): string => pod.metadata?.annotations?.[egressAnnotation] ?? ''

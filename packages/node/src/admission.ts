import type { Pod } from '@corral/resources'
import { EgressError, egressAnnotation, parseEgress } from './egress/egress-annotation.js'
import type { EgressRule } from './isolation/isolation.js'

/** Whether the node takes a pod on, and what its users should be told. */
export interface Admission {
  egress: EgressRule[]
  /** Set when the pod cannot run here at all. */
  refusal?: { reason: string; message: string }
}

/** The node's first look at a pod. Pure. */
export function admitPod(pod: Pod): Admission {
  try {
    return { egress: parseEgress(pod.metadata?.annotations?.[egressAnnotation]) }
  } catch (error) {
    if (!(error instanceof EgressError)) throw error
    return { egress: [], refusal: { reason: error.code, message: error.message } }
  }
}

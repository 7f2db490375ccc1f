import type { Pod, PodSpec } from '@corral/resources'
import { type Egress, EgressError, egressAnnotation, parseEgress } from './egress/egress-annotation.js'
import { refusedFields } from './fields/refused-fields.js'

/** Whether the node takes a pod on, and what it may reach. */
export interface Admission {
  egress: Egress
  /** Set when the pod cannot run here at all. */
  refusal?: { reason: string; message: string }
}

/** The node's first look at a pod. Pure. */
export function admitPod(pod: Pod): Admission {
  const refused = refusedFields(withoutInjected(pod.spec ?? { containers: [] }))
  if (refused.length > 0) {
    const list = refused.map(({ path, reason }) => `${path}: ${reason}`).join('; ')
    return {
      egress: { rules: [], grants: [] },
      refusal: { reason: 'UnsupportedField', message: `the node cannot do what the pod asks for: ${list}` },
    }
  }
  try {
    return { egress: parseEgress(pod.metadata?.annotations?.[egressAnnotation]) }
  } catch (error) {
    if (!(error instanceof EgressError)) throw error
    return { egress: { rules: [], grants: [] }, refusal: { reason: error.code, message: error.message } }
  }
}

/** Volumes that an API server adds to every pod for its service account; their token is simply not in them here. */
function withoutInjected(spec: PodSpec): PodSpec {
  const volumes = spec.volumes?.filter((volume) => !volume.name.startsWith('kube-api-access-'))
  return volumes ? { ...spec, volumes } : spec
}

import type { Sandbox } from './agent-sandbox/v1beta1.js'

/** Where the controller notes a pod that is not named like its Sandbox: one adopted from a pool. */
export const podNameAnnotation = 'agents.x-k8s.io/pod-name'

/** The pod of a Sandbox. An empty annotation counts as none. */
export function podNameOf({ metadata }: Pick<Sandbox, 'metadata'>): string {
  return metadata?.annotations?.[podNameAnnotation] || (metadata?.name ?? '')
}

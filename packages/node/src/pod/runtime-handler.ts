import type { KubeClient } from '@corral/kube'
import { type PodSpec, RuntimeClasses } from '@corral/resources'
import type { Tier } from '../isolation/isolation.js'

/** The names under which RuntimeClasses find what this node runs pods with. */
export const runtimeHandlers = (tier: Tier): string[] => [tier]

/**
 * Throws, in the words of kubelet and containerd, where the pod names a RuntimeClass that is gone or whose handler this
 * node does not have: a weaker sandbox than the one that was asked for would be worse than none.
 */
export async function requireRuntime(
  spec: PodSpec,
  node: { client: KubeClient; tier: Tier; signal: AbortSignal },
): Promise<void> {
  const name = spec.runtimeClassName
  if (name === undefined || name === '') return
  const found = await node.client.find(RuntimeClasses, { name }, { signal: node.signal })
  if (!found) throw new Error(`RuntimeClass ${JSON.stringify(name)} not found`)
  const handlers = runtimeHandlers(node.tier)
  if (handlers.includes(found.handler)) return
  throw new Error(
    `no runtime for ${JSON.stringify(found.handler)} is configured (RuntimeClass ${JSON.stringify(name)}); this node has ${handlers.join(', ')}`,
  )
}

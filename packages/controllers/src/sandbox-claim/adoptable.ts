import { controllerOf, isControlledBy, type Pod, type Sandbox, type SandboxClaim, type Stored } from '@corral/resources'
import { labels } from '../shared/names.js'
import { poolOf, quote } from '../shared/ownership.js'

/** Why the Sandbox cannot be adopted from a pool, or undefined when it can. Readiness does not matter here. */
export function whyNotAdoptable(sandbox: Sandbox): string | undefined {
  const { metadata = {} } = sandbox
  if (metadata.deletionTimestamp) return 'sandbox is deleted'
  if (metadata.labels?.[labels.warmPool] === undefined) return 'sandbox is missing the warm pool sandbox label'
  if (metadata.labels[labels.templateRefHash] === undefined) {
    return 'sandbox is missing the sandbox template ref hash label'
  }
  const where = `${metadata.namespace}/${metadata.name}`
  const controller = controllerOf(sandbox)
  if (!controller) return `sandbox ${where} is unowned and cannot be safely adopted`
  if (poolOf(sandbox) === undefined) {
    return `sandbox ${where} is not managed by warm pool. Controller: ${controller.kind}/${controller.name}`
  }
  return undefined
}

/** The same for one claim: its namespace and its pool only. */
export function whyNotCandidate(sandbox: Sandbox, claim: SandboxClaim): string | undefined {
  const namespace = claim.metadata?.namespace ?? ''
  const found = sandbox.metadata?.namespace ?? ''
  if (found !== namespace) {
    return `cross-namespace adoption forbidden: sandbox is in ${quote(found)}, claim is in ${quote(namespace)}`
  }
  const reason = whyNotAdoptable(sandbox)
  if (reason) return reason
  const wanted = claim.spec.warmPoolRef.name
  return poolOf(sandbox) === wanted ? undefined : `incorrect warm pool, expected ${wanted}`
}

/** Whether it has an address; without one it serves no claim. */
export const isReachable = ({ status }: Sandbox): boolean => (status?.podIPs?.length ?? 0) > 0

/** Whether its Pod has none any more, which the Sandbox's status says a moment later: what ran in the Pod is gone. */
export const isPodLost = (sandbox: Stored<Sandbox>, pod: Pod | undefined): boolean =>
  pod !== undefined && isControlledBy(pod, sandbox) && (pod.status?.podIPs?.length ?? 0) === 0

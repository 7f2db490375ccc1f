import {
  labelValueError,
  type PodMetadata,
  qualifiedNameError,
  type SandboxClaim,
  type SandboxTemplate,
} from '@corral/resources'
import { annotations, labels } from '../shared/names.js'
import { quote } from '../shared/ownership.js'
import { ClaimProblem } from './claim-problem.js'

export const defaultLabelDomains: readonly string[] = ['sandbox.users.io']
const refusedAnnotationDomains = ['kubernetes.io', 'k8s.io', 'agents.x-k8s.io']

type Names = Record<string, string>

/** Throws `InvalidMetadata` unless every key and value the claim wants on its Pod is allowed there. */
export function checkAdditionalMetadata(metadata: PodMetadata | undefined, labelDomains: readonly string[]): void {
  for (const [key, value] of Object.entries(metadata?.labels ?? {})) {
    const problem = labelProblem(key, value, labelDomains)
    if (problem) throw invalid(`failed to validate label ${quote(key)}: ${problem}`)
  }
  for (const key of Object.keys(metadata?.annotations ?? {})) {
    const problem = annotationProblem(key)
    if (problem) throw invalid(`failed to validate annotation ${quote(key)}: ${problem}`)
  }
}

function invalid(detail: string): ClaimProblem {
  return new ClaimProblem('InvalidMetadata', `invalid additionalPodMetadata: ${detail}`)
}

/** The library upstream is built with says bytes where the API server of 1.34 says characters. */
const inBytes = (problem: string | undefined): string | undefined => problem?.replace('63 characters', '63 bytes')

function labelProblem(key: string, value: string, labelDomains: readonly string[]): string | undefined {
  const bad = inBytes(qualifiedNameError(key))
  if (bad) return `invalid label key: ${quote(key)}: ${bad}`
  if (key.toLowerCase() === 'app' && value.toLowerCase() === 'sandbox-router') {
    return `restricted system label value: ${quote(key)}=${quote(value)} is not allowed in AdditionalPodMetadata`
  }
  const domain = domainOf(key)
  if (domain === undefined) {
    return `label ${quote(key)} must have a domain prefix (e.g. 'sandbox.users.io/my-label') to prevent opting into unintended policy domains`
  }
  if (!isWithin(domain, labelDomains)) {
    return `label domain ${quote(domain)} is not in the allowlist (configure the allowed-label-domains key of the agent-sandbox-config ConfigMap in the controller namespace; default: sandbox.users.io)`
  }
  const badValue = inBytes(labelValueError(value))
  return badValue && `invalid label value: ${quote(value)} does not match allowed pattern: ${badValue}`
}

function annotationProblem(key: string): string | undefined {
  const bad = inBytes(qualifiedNameError(key))
  if (bad) return `invalid annotation key: ${quote(key)}: ${bad}`
  const domain = domainOf(key)
  if (domain === undefined || key === annotations.safeToEvict || !isWithin(domain, refusedAnnotationDomains))
    return undefined
  return `restricted system domain: ${quote(key)} is not allowed in AdditionalPodMetadata`
}

function domainOf(key: string): string | undefined {
  const slash = key.indexOf('/')
  return slash < 0 ? undefined : key.slice(0, slash).toLowerCase()
}

function isWithin(domain: string, domains: readonly string[]): boolean {
  return domains.some((allowed) => domain === allowed || domain.endsWith(`.${allowed}`))
}

/** Metadata of the claim's pod template: the template's own, who claims it, and what the claim adds. */
export function claimPodMetadata(
  claim: SandboxClaim & { metadata: { uid: string } },
  template: SandboxTemplate,
  templateRefHash: string,
): PodMetadata {
  const base = template.spec.podTemplate.metadata
  const own = withIdentity({ ...base?.labels, [labels.templateRefHash]: templateRefHash }, claim)
  return mergeMetadata({ labels: own, ...(base?.annotations && { annotations: base.annotations }) }, claim)
}

/** Adds what the claim asks for. A key the template sets to another value is refused. */
export function mergeMetadata(base: PodMetadata, claim: SandboxClaim): PodMetadata {
  const extra = claim.spec.additionalPodMetadata
  refuseConflicts('label', base.labels, extra?.labels)
  refuseConflicts('annotation', base.annotations, extra?.annotations)
  const result: PodMetadata = { ...base }
  if (hasKeys(extra?.labels)) result.labels = { ...base.labels, ...extra?.labels }
  if (hasKeys(extra?.annotations)) result.annotations = { ...base.annotations, ...extra?.annotations }
  return result
}

function refuseConflicts(what: string, base: Names | undefined, extra: Names | undefined): void {
  for (const [key, value] of Object.entries(extra ?? {})) {
    const set = base?.[key]
    if (set === undefined || set === value) continue
    throw new Error(
      `metadata override conflict: ${what} ${quote(key)} is defined in template with value ${quote(set)}, but claim requests ${quote(value)}`,
    )
  }
}

/** Labels that say which claim an object serves; a creator the claim does not name is removed. */
export function withIdentity(base: Names | undefined, claim: SandboxClaim & { metadata: { uid: string } }): Names {
  const { [labels.createdBy]: _, ...rest } = base ?? {}
  const creator = claim.metadata.labels?.[labels.createdBy]
  return { ...rest, [labels.claimUid]: claim.metadata.uid, ...(creator && { [labels.createdBy]: creator }) }
}

function hasKeys(names: Names | undefined): boolean {
  return names !== undefined && Object.keys(names).length > 0
}

import {
  nameHash,
  ownerReferenceTo,
  type PodMetadata,
  type Sandbox,
  type SandboxClaim,
  SandboxClaims,
  type SandboxTemplate,
  type Stored,
} from '@corral/resources'
import { mergeDiff } from '../shared/merge-diff.js'
import { annotations, labels } from '../shared/names.js'
import { claimPodMetadata, mergeMetadata, withIdentity } from './pod-metadata.js'

/**
 * The merge patch that hands a pool's Sandbox to the claim: owner, labels and pod metadata in one write. It carries the
 * Sandbox's version, so that of two claims that want it only one succeeds.
 */
export function adoptionPatch(
  claim: Stored<SandboxClaim>,
  sandbox: Stored<Sandbox>,
  template: Stored<SandboxTemplate> | undefined,
): object {
  const templateRefHash =
    sandbox.metadata.labels?.[labels.templateRefHash] || (template ? nameHash(template.metadata.name) : '')
  const { resourceVersion, labels: ownLabels, annotations: ownAnnotations } = sandbox.metadata
  const trace = claim.metadata.annotations?.[annotations.traceContext]
  const metadata = mergeDiff(
    {
      labels: ownLabels ?? {},
      annotations: ownAnnotations ?? {},
      ownerReferences: sandbox.metadata.ownerReferences ?? [],
    },
    {
      labels: adoptedLabels(ownLabels, claim, templateRefHash),
      annotations: { ...ownAnnotations, ...(trace !== undefined && { [annotations.traceContext]: trace }) },
      ownerReferences: [ownerReferenceTo(claim, SandboxClaims)],
    },
  )
  const podMetadata = mergeDiff(
    sandbox.spec.podTemplate.metadata ?? {},
    normalized(adoptedPodMetadata(claim, sandbox, template, templateRefHash)),
  )
  return {
    metadata: { resourceVersion, ...metadata },
    ...(podMetadata && { spec: { podTemplate: { metadata: podMetadata } } }),
  }
}

/** The claim's wishes against a bound Sandbox that drifted: pod metadata and two labels. Undefined when nothing differs. */
export function boundPatch(
  claim: Stored<SandboxClaim>,
  sandbox: Stored<Sandbox>,
  template: Stored<SandboxTemplate>,
): object | undefined {
  const templateRefHash = nameHash(template.metadata.name)
  const creator = claim.metadata.labels?.[labels.createdBy]
  const { [labels.createdBy]: _, ...rest } = sandbox.metadata.labels ?? {}
  const wanted = { ...rest, [labels.templateRefHash]: templateRefHash, ...(creator && { [labels.createdBy]: creator }) }
  const labelDiff = mergeDiff(sandbox.metadata.labels ?? {}, wanted)
  const podMetadata = mergeDiff(
    sandbox.spec.podTemplate.metadata ?? {},
    normalized(claimPodMetadata(claim, template, templateRefHash)),
  )
  if (!labelDiff && !podMetadata) return undefined
  return {
    ...(labelDiff && { metadata: { labels: labelDiff } }),
    ...(podMetadata && { spec: { podTemplate: { metadata: podMetadata } } }),
  }
}

function adoptedLabels(
  own: Record<string, string> | undefined,
  claim: Stored<SandboxClaim>,
  templateRefHash: string,
): Record<string, string> {
  const { [labels.warmPool]: _, [labels.podTemplateHash]: __, [labels.templateHash]: ___, ...kept } = own ?? {}
  const adopted = {
    ...kept,
    [labels.launchType]: 'warm',
    ...(templateRefHash && { [labels.templateRefHash]: templateRefHash }),
  }
  return withIdentity(adopted, claim)
}

/** With a template at hand the metadata is what it says; without, what is there minus the pool's eviction mark. */
function adoptedPodMetadata(
  claim: Stored<SandboxClaim>,
  sandbox: Stored<Sandbox>,
  template: Stored<SandboxTemplate> | undefined,
  templateRefHash: string,
): PodMetadata {
  if (template) return claimPodMetadata(claim, template, templateRefHash)
  const { labels: podLabels, annotations: podAnnotations } = sandbox.spec.podTemplate.metadata ?? {}
  const { [annotations.safeToEvict]: evict, ...others } = podAnnotations ?? {}
  const keptAnnotations =
    evict === 'true' || evict === undefined ? others : { ...others, [annotations.safeToEvict]: evict }
  const withHash = { ...podLabels, ...(templateRefHash && { [labels.templateRefHash]: templateRefHash }) }
  return mergeMetadata({ labels: withIdentity(withHash, claim), annotations: keptAnnotations }, claim)
}

/** Without empty maps, so that the last key to go takes its map along. */
function normalized(metadata: PodMetadata = {}): PodMetadata {
  const isFilled = (map: Record<string, string> | undefined): boolean => Object.keys(map ?? {}).length > 0
  return {
    ...(isFilled(metadata.labels) && { labels: metadata.labels }),
    ...(isFilled(metadata.annotations) && { annotations: metadata.annotations }),
  } as PodMetadata // a filled map is there
}

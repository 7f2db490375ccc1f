import type { SandboxTemplate, VolumeClaimTemplate } from '@corral/resources'
import { StepError } from '../shared/error-text.js'
import { quote } from '../shared/ownership.js'
import { ClaimProblem } from './claim-problem.js'

type Policy = NonNullable<SandboxTemplate['spec']['volumeClaimTemplatesPolicy']>

/** The volumes of a cold sandbox: the template's, and the claim's as far as the template's policy allows. */
export function mergeVolumeTemplates(
  template: readonly VolumeClaimTemplate[],
  claim: readonly VolumeClaimTemplate[],
  policy: Policy | undefined,
): VolumeClaimTemplate[] {
  if (claim.length === 0) {
    check(template, 'invalid volume claim templates in template')
    return [...template]
  }
  check(template, 'failed to merge volume claim templates: template')
  check(claim, 'failed to merge volume claim templates: claim')
  switch (policy ?? 'Disallowed') {
    case 'Disallowed':
      throw refused('volume claim templates are disallowed by the template')
    case 'Allowed':
      return [...template, ...withoutClash(template, claim)]
    case 'Overrides':
      return override(template, claim)
    default: {
      const unknown = new Error(`unknown volume claim templates policy ${quote(String(policy))}`)
      throw new StepError('failed to merge volume claim templates', unknown)
    }
  }
}

function withoutClash(
  template: readonly VolumeClaimTemplate[],
  claim: readonly VolumeClaimTemplate[],
): readonly VolumeClaimTemplate[] {
  const taken = new Set(template.map(nameOf))
  const clash = claim.find((volume) => taken.has(nameOf(volume)))
  if (!clash) return claim
  throw refused(
    `overriding volume claim templates is forbidden by the template: cannot override template volume ${quote(nameOf(clash))}`,
  )
}

function override(
  template: readonly VolumeClaimTemplate[],
  claim: readonly VolumeClaimTemplate[],
): VolumeClaimTemplate[] {
  const own = new Map(claim.map((volume) => [nameOf(volume), volume]))
  const known = new Set(template.map(nameOf))
  return [
    ...template.map((volume) => own.get(nameOf(volume)) ?? volume),
    ...claim.filter((volume) => !known.has(nameOf(volume))),
  ]
}

function check(volumes: readonly VolumeClaimTemplate[], where: string): void {
  const seen = new Set<string>()
  for (const [index, volume] of volumes.entries()) {
    const name = nameOf(volume)
    const detail = !name
      ? `name at index ${index} is empty`
      : seen.has(name)
        ? `duplicate name ${quote(name)}`
        : undefined
    if (detail) {
      throw new ClaimProblem('VolumeClaimTemplatesError', `${where}: invalid volume claim templates: ${detail}`)
    }
    seen.add(name)
  }
}

function refused(detail: string): ClaimProblem {
  return new ClaimProblem('VolumeClaimTemplatesError', `failed to merge volume claim templates: ${detail}`)
}

function nameOf(volume: VolumeClaimTemplate): string {
  return volume.metadata?.name ?? ''
}

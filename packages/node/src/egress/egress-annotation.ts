import { packagesGrant } from '@corral/resources'
import type { EgressRule } from '../isolation/isolation.js'

/** The annotation that opens the pod's network: `"packages, files.example.com:443, *.example.org:443"`. */
export const egressAnnotation = 'corral.dev/egress'

/** A part of the annotation that cannot be read. */
export class EgressError extends Error {
  override readonly name: string = 'EgressError'
  readonly code = 'InvalidEgress'
}

const label = '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?'
const rulePattern = new RegExp(`^((?:\\*\\.)?${label}(?:\\.${label})*):([0-9]{1,5})$`)

export interface Egress {
  rules: EgressRule[]
  /** Services of the node that only pods which name them have, such as `packages`. */
  grants: string[]
}

/** What the annotation allows, each once. Throws an `EgressError` that names the part it cannot read. */
export function parseEgress(text: string | undefined): Egress {
  const rules = new Map<string, EgressRule>()
  const grants = new Set<string>()
  for (const part of (text ?? '').split(/[\s,]+/).filter(Boolean)) {
    if (part.toLowerCase() === packagesGrant) {
      grants.add(packagesGrant)
      continue
    }
    const rule = parseRule(part)
    rules.set(`${rule.host}:${rule.port}`, rule)
  }
  return { rules: [...rules.values()], grants: [...grants] }
}

function parseRule(part: string): EgressRule {
  const match = rulePattern.exec(part.toLowerCase())
  const port = Number(match?.at(-1))
  if (!match || port < 1 || port > 65_535) {
    throw new EgressError(
      `${egressAnnotation}: "${part}" is neither "${packagesGrant}" nor HOST:PORT, such as files.example.com:443 or *.example.org:443`,
    )
  }
  return { host: match[1]!, port }
}

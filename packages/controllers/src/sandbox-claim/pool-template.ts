import type { SandboxClaim, SandboxTemplate, SandboxWarmPool, Stored } from '@corral/resources'
import { quote } from '../shared/ownership.js'
import { ClaimProblem } from './claim-problem.js'
import type { ClaimPorts } from './ports.js'

/** The template of the claim's pool; a `ClaimProblem` says which of the two is missing. */
export function getTemplate(claim: Stored<SandboxClaim>, ports: ClaimPorts): Stored<SandboxTemplate> {
  const pool = findPool(claim, ports)
  const poolName = claim.spec.warmPoolRef.name
  if (!pool) {
    const shown = `SandboxWarmPool ${quote(poolName)} not found`
    throw new ClaimProblem('WarmPoolNotFound', `${shown}: SandboxWarmPool not found`, { shown })
  }
  const templateName = pool.spec.sandboxTemplateRef.name
  const template = ports.state.templates.get(`${claim.metadata.namespace ?? ''}/${templateName}`)
  if (template) return template
  const shown = `SandboxTemplate ${quote(templateName)} not found`
  throw new ClaimProblem('TemplateNotFound', `${shown}: SandboxTemplate not found`, { shown })
}

/** The same, where it may be missing. */
export function findTemplate(claim: Stored<SandboxClaim>, ports: ClaimPorts): Stored<SandboxTemplate> | undefined {
  const pool = findPool(claim, ports)
  return pool && ports.state.templates.get(`${claim.metadata.namespace ?? ''}/${pool.spec.sandboxTemplateRef.name}`)
}

function findPool(claim: Stored<SandboxClaim>, { state }: ClaimPorts): Stored<SandboxWarmPool> | undefined {
  return state.pools.get(`${claim.metadata.namespace ?? ''}/${claim.spec.warmPoolRef.name}`)
}

import type { AgentSandboxClient } from '@corral/agent-sandbox-sdk'
import { controllerOf, type Sandbox, type SandboxClaim, type Stored } from '@corral/resources'
import { CliError } from '../cli-error.js'

/** A sandbox as people know it: by the name they gave, and by whose it is. */
export interface SandboxRow {
  /** What every `corral sandbox` command takes: the claim's name where it is claimed. */
  name: string
  /** The Sandbox object; null while a claim waits for one. */
  sandbox: string | null
  /** `task NAME`, `claim NAME` or `pool NAME`; empty for one that nothing owns. */
  owner: string
  ready: string
  reason: string
  created: string
}

/** Every sandbox with its owner, and every claim that has none yet, in the order of their names. */
export function sandboxRows(
  sandboxes: readonly Stored<Sandbox>[],
  claims: readonly Stored<SandboxClaim>[],
): SandboxRow[] {
  const claimOf = new Map(claims.map((claim) => [claim.status?.sandbox?.name, claim]))
  const known = new Set(sandboxes.map(({ metadata }) => metadata.name))
  const waiting = claims.filter(({ status }) => !known.has(status?.sandbox?.name ?? ''))
  const rows = [
    ...sandboxes.map((sandbox) => rowOf(sandbox, claimOf.get(sandbox.metadata.name))),
    ...waiting.map((claim) => ({ ...rowOf(claim, claim), sandbox: null })),
  ]
  return rows.sort((a, b) => (a.name < b.name ? -1 : 1))
}

function rowOf(object: Stored<Sandbox> | Stored<SandboxClaim>, claim: Stored<SandboxClaim> | undefined): SandboxRow {
  const { metadata, status } = object
  const ready = status?.conditions?.find((condition) => condition.type === 'Ready')
  return {
    name: claim?.metadata.name ?? metadata.name,
    sandbox: metadata.name,
    owner: claim ? ownerOfClaim(claim) : ownerOfSandbox(object),
    ready: ready?.status ?? 'Unknown',
    reason: ready?.reason ?? '',
    created: metadata.creationTimestamp,
  }
}

const ownerWords: Readonly<Record<string, string>> = { SandboxWarmPool: 'pool', SandboxClaim: 'claim' }

function ownerOfSandbox(object: Stored<Sandbox> | Stored<SandboxClaim>): string {
  const owner = controllerOf(object)
  const word = ownerWords[owner?.kind ?? '']
  return owner && word ? `${word} ${owner.name}` : ''
}

function ownerOfClaim(claim: Stored<SandboxClaim>): string {
  const owner = controllerOf(claim)
  return owner?.kind === 'AgentTask' ? `task ${owner.name}` : `claim ${claim.metadata.name}`
}

/**
 * The sandbox behind a name: that of the claim, which is what `corral sandbox create NAME` makes and what a task's own
 * is called, else the Sandbox itself. `CliError` where there is neither, or where the claim still waits.
 */
export async function findSandbox(client: AgentSandboxClient, name: string): Promise<string> {
  const claim = await client.claims.find(name)
  if (claim?.status?.sandbox?.name) return claim.status.sandbox.name
  if (await client.sandboxes.objects.find(name)) return name
  if (!claim) throw noSandbox(name)
  const ready = claim.status?.conditions?.find((condition) => condition.type === 'Ready')
  throw new CliError(`sandbox "${name}" is not there yet${ready ? ` (${ready.reason}: ${ready.message})` : ''}`, {
    hint: 'See whether it comes with `corral sandbox list`.',
  })
}

export function noSandbox(name: string): CliError {
  return new CliError(`there is no sandbox "${name}"`, { hint: 'List them with `corral sandbox list`.' })
}

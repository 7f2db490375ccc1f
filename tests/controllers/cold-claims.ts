import {
  type Sandbox,
  type SandboxClaim,
  SandboxClaims,
  Sandboxes,
  type SandboxTemplate,
  SandboxTemplates,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { claim, condition, pool, template } from './cluster.js'
import { ref } from './objects.js'
import { type Passes, startPasses } from './passes.js'

/** A template, a pool without warm sandboxes, and the claim `c`, before the first pass. */
export async function started(
  spec: Partial<SandboxClaim['spec']> = {},
  templateSpec: Partial<SandboxTemplate['spec']> = {},
  options?: Parameters<typeof startPasses>[0],
): Promise<Passes> {
  const passes = await startPasses(options)
  await passes.client.create(SandboxTemplates, template('tmpl', templateSpec))
  await passes.client.create(SandboxWarmPools, pool('pool', 0))
  await passes.client.create(SandboxClaims, claim('c', spec))
  return passes
}

export const readClaim = (passes: Passes): Promise<Stored<SandboxClaim>> => passes.client.get(SandboxClaims, ref('c'))
export const readSandbox = (passes: Passes): Promise<Stored<Sandbox>> => passes.client.get(Sandboxes, ref('c'))
export const ready = async (passes: Passes): Promise<ReturnType<typeof condition>> =>
  condition(await readClaim(passes), 'Ready')

import {
  type Sandbox,
  Sandboxes,
  type SandboxTemplate,
  SandboxTemplates,
  type SandboxWarmPool,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { namespace, pool, template } from './cluster.js'
import { readyStatus, ref, setSandboxStatus } from './objects.js'
import { type Passes, startPasses } from './passes.js'

export const minuteMs = 60_000

/** A template and a pool of it, before the first pass. */
export async function started(
  replicas: number | undefined,
  spec: Partial<SandboxWarmPool['spec']> = {},
  options?: Parameters<typeof startPasses>[0],
): Promise<Passes> {
  const passes = await startPasses(options)
  await passes.client.create(SandboxTemplates, template())
  const object = pool('pool', 0, spec)
  const { replicas: _, ...rest } = object.spec
  await passes.client.create(SandboxWarmPools, {
    ...object,
    spec: replicas === undefined ? rest : { ...rest, replicas },
  })
  return passes
}

/** Every Sandbox there is. */
export const members = async (passes: Passes): Promise<Stored<Sandbox>[]> =>
  (await passes.client.list(Sandboxes, { namespace })).items
export const readPool = (passes: Passes): Promise<Stored<SandboxWarmPool>> =>
  passes.client.get(SandboxWarmPools, ref('pool'))
/** How often the controllers asked for a new member, and below for the end of one. */
export const creates = (passes: Passes): number => passes.writes.filter(({ what }) => what === 'POST sandboxes').length
export const deletes = (passes: Passes): number =>
  passes.writes.filter(({ what }) => what.startsWith('DELETE sandboxes')).length
export const scaleTo = (passes: Passes, replicas: number): Promise<void> =>
  passes.client.scale(SandboxWarmPools, ref('pool'), replicas)
export const editTemplate = (passes: Passes, spec: object): Promise<Stored<SandboxTemplate>> =>
  passes.client.patch(SandboxTemplates, ref('tmpl'), { type: 'merge', body: { spec } })
export const allReady = async (passes: Passes): Promise<void> => {
  for (const { metadata } of await members(passes)) await setSandboxStatus(passes.client, metadata.name, readyStatus())
}
/** How many members there are once a pool of this size has come to rest. */
export async function sizeAt(passes: Passes, replicas: number): Promise<number> {
  await scaleTo(passes, replicas)
  await settle(passes)
  return (await members(passes)).length
}
/** Passes until nothing is written any more. */
export async function settle(passes: Passes): Promise<void> {
  for (let count = 0; count < 10; count += 1) {
    const before = passes.writes.length
    await passes.pool('pool')
    if (passes.writes.length === before) return
  }
  throw new Error('the pool does not come to rest')
}

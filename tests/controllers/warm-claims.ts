import {
  nameHash,
  type Sandbox,
  type SandboxClaim,
  SandboxClaims,
  Sandboxes,
  type SandboxStatus,
  SandboxTemplates,
  type SandboxWarmPool,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { claim, namespace, pool, sandbox, template } from './cluster.js'
import { ownerRef, readyStatus, ref, setSandboxStatus } from './objects.js'
import { type Passes, startPasses } from './passes.js'

export const assigned = 'agents.x-k8s.io/sandbox-name'
export const launchType = 'agents.x-k8s.io/launch-type'

/** Passes with a pool whose members the test makes itself. */
export interface Warm extends Passes {
  swp: Stored<SandboxWarmPool>
}

/** A template and a pool without members. */
export async function started(
  spec: Partial<SandboxWarmPool['spec']> = {},
  options?: Parameters<typeof startPasses>[0],
): Promise<Warm> {
  const passes = await startPasses(options)
  await passes.client.create(SandboxTemplates, template())
  return Object.assign(passes, { swp: await passes.client.create(SandboxWarmPools, pool('pool', 0, spec)) })
}

/** A pool member as the pool controller makes it, with the given status. */
export async function member(
  passes: Warm,
  name: string,
  status: SandboxStatus | undefined = readyStatus(),
  change: Partial<NonNullable<Sandbox['metadata']>> = {},
): Promise<Stored<Sandbox>> {
  const base = sandbox(name)
  const labels = {
    'agents.x-k8s.io/warm-pool-sandbox': nameHash('pool'),
    'agents.x-k8s.io/sandbox-template-ref-hash': nameHash('tmpl'),
    'agents.x-k8s.io/sandbox-template-hash': 'abc',
    'agents.x-k8s.io/sandbox-pod-template-hash': 'abc',
    [launchType]: 'warm',
    'agents.x-k8s.io/created-by': 'controller',
  }
  const made = await passes.client.create(Sandboxes, {
    ...base,
    metadata: {
      ...base.metadata,
      labels,
      annotations: { 'agents.x-k8s.io/sandbox-template-ref': 'tmpl' },
      ownerReferences: [ownerRef(passes.swp)],
      ...change,
    },
    spec: {
      podTemplate: {
        metadata: {
          annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'true' },
          labels: { 'agents.x-k8s.io/warm-pool-sandbox': nameHash('pool') },
        },
        spec: {
          containers: [{ name: 'main', image: 'busybox:1' }],
          automountServiceAccountToken: false,
          dnsPolicy: 'None',
          dnsConfig: { nameservers: ['8.8.8.8', '1.1.1.1'] },
        },
      },
    },
  })
  const result = status ? await setSandboxStatus(passes.client, name, status) : made
  await passes.refresh() // the queue learns of members in the order in which they appear
  return result
}

/** A member that has a node and no address yet, and one that has an address and is not Ready. */
export const unreachable: SandboxStatus = { nodeName: 'n9' }
export const notReady: SandboxStatus = { podIPs: ['10.0.0.9'] }
export const readClaim = (passes: Passes, name = 'c'): Promise<Stored<SandboxClaim>> =>
  passes.client.get(SandboxClaims, ref(name))
export const boundTo = async (passes: Passes, name = 'c'): Promise<string | undefined> =>
  (await readClaim(passes, name)).status?.sandbox?.name
export const newClaim = (
  passes: Passes,
  name = 'c',
  change: Partial<SandboxClaim['spec']> = {},
): Promise<Stored<SandboxClaim>> => passes.client.create(SandboxClaims, claim(name, change))
/** Key of the pool's queue. */
export const line = `${namespace}/pool`

import { kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { AgentTasks, SandboxWarmPools } from '@corral/resources'
import { advisePools, type PoolAdvice } from '@corral/tasks'
import { platformNamespace } from '../platform/names.js'
import { findPlatform } from './find-platform.js'
import type { KubeOptions } from './kube-access.js'

/** Advice for each pool that tasks used, beside what it keeps now. */
export async function poolAdvice(
  options: KubeOptions & { since: number },
): Promise<(PoolAdvice & { kept: number | undefined })[]> {
  const platform = options.kubeconfig ? undefined : await findPlatform({ dataDir: options.dataDir })
  const path = options.kubeconfig ?? platform?.kubeconfig
  const { context, namespace = platformNamespace } = options
  const access = await loadKubeConfig({ ...(path ? { path } : {}), ...(context ? { context } : {}) })
  const client = kubeClientFromConfig(access)
  try {
    const { items: tasks } = await client.list(AgentTasks, { namespace })
    const { items: pools } = await client.list(SandboxWarmPools, { namespace })
    const kept = new Map(pools.map(({ metadata, spec }) => [metadata.name, spec.replicas ?? 1]))
    const since = new Date(Date.now() - options.since * 1000)
    return advisePools(tasks, since).map((advice) => ({ ...advice, kept: kept.get(advice.pool) }))
  } finally {
    await client.close()
  }
}

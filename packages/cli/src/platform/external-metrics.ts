import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { KubeClient } from '@corral/kube'
import type { Logger } from '@corral/ports'
import { ConfigMaps } from '@corral/resources'
import { createExternalMetricsApp, type ExternalMetric, listenAggregated } from '@corral/server'
import type { TaskDemand } from '@corral/tasks'
import { CliError } from '../cli-error.js'
import type { ListenAddress } from '../output/parse-address.js'

export interface ExternalMetricsServerOptions {
  client: KubeClient
  address: ListenAddress
  /** With `tls.crt` and `tls.key`. */
  certificates: string
  namespace: string
  /** Undefined while another process reconciles tasks. */
  demand(): TaskDemand | undefined
  log: Logger
}

/**
 * Serves `external.metrics.k8s.io` to the aggregation layer of the cluster and to no other client. Undefined where there is
 * no certificate: an installation without autoscaling has none.
 */
export async function startExternalMetrics(
  options: ExternalMetricsServerOptions,
): Promise<{ close(): Promise<void> } | undefined> {
  const file = (name: string): string => join(options.certificates, name)
  if (!existsSync(file('tls.crt'))) return undefined
  const { authority, names } = await aggregatorOf(options.client)
  const listening = await listenAggregated({
    fetch: createExternalMetricsApp({
      namespace: options.namespace,
      read: () => figuresOf(options.demand()),
      now: () => new Date(),
    }),
    ...options.address,
    cert: readFileSync(file('tls.crt')),
    key: readFileSync(file('tls.key')),
    authority,
    names,
  })
  options.log.info('external metrics are served', { port: options.address.port })
  return listening
}

/** What the API server tells every server behind it: by which authority and names it shows itself. */
async function aggregatorOf(client: KubeClient): Promise<{ authority: string; names: string[] }> {
  const name = 'extension-apiserver-authentication'
  const { data = {} } = await client.get(ConfigMaps, { namespace: 'kube-system', name })
  const authority = data['requestheader-client-ca-file']
  if (!authority)
    throw new CliError(`the cluster has no aggregation layer: ConfigMap kube-system/${name} names no authority`, {
      exitCode: 3,
      hint: 'Install without externalMetrics, or turn the aggregation layer of the API server on.',
    })
  return { authority, names: JSON.parse(data['requestheader-allowed-names'] ?? '[]') as string[] }
}

/** The figures by name; a pool without demand has a figure too, or the autoscaler would never shrink it. Pure. */
export function figuresOf(demand: TaskDemand | undefined): ExternalMetric[] | undefined {
  if (!demand) return undefined
  const { waiting, running, byPool } = demand
  const pools = new Map([['default', 0], ...byPool])
  return [
    { name: 'corral_tasks_waiting', labels: {}, value: waiting },
    { name: 'corral_tasks_running', labels: {}, value: running },
    ...[...pools].map(([pool, value]) => ({ name: 'corral_pool_demand', labels: { pool }, value })),
  ]
}

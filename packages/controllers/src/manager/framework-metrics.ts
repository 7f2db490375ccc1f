import { Counter, Gauge, type Registry } from 'prom-client'

/** Counters of upstream's framework for parts that this manager does not have: they stay 0, so that rules about them hold. */
const absent: readonly [name: string, help: string][] = [
  ['controller_runtime_webhook_panics_total', 'Always 0: there is no webhook.'],
  ['controller_runtime_conversion_webhook_panics_total', 'Always 0: there is no conversion webhook.'],
]

export interface FrameworkMetrics {
  /** Whether this process leads under the given lease. */
  leads(lease: string, isLeader: boolean): void
  /** A certificate was read from its files, or could not be. */
  certificateRead(error?: unknown): void
}

/** What upstream's framework reports besides controllers and queues. Managers that share a registry share the series. */
export function frameworkMetrics(registry: Registry): FrameworkMetrics {
  const registers = [registry]
  const counter = (name: string, help: string): Counter =>
    (registry.getSingleMetric(name) as Counter | undefined) ?? new Counter({ name, help, registers })
  for (const [name, help] of absent) counter(name, help)
  const readings = counter('certwatcher_read_certificate_total', 'Readings of the certificate files.')
  const failed = counter('certwatcher_read_certificate_errors_total', 'Readings of the certificate files that failed.')
  const name = 'leader_election_master_status'
  const leading =
    (registry.getSingleMetric(name) as Gauge | undefined) ??
    new Gauge({ name, help: '1 while this process leads, else 0.', labelNames: ['name'], registers })
  return {
    leads: (lease, isLeader) => leading.set({ name: lease }, isLeader ? 1 : 0),
    certificateRead(error) {
      readings.inc()
      if (error !== undefined) failed.inc()
    },
  }
}

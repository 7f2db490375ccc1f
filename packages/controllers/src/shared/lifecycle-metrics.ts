import type { Clock } from '@corral/ports'
import type { Sandbox, Stored } from '@corral/resources'
import { controllerOf, findCondition, isConditionTrue } from '@corral/resources'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { sandboxLabels } from './metrics.js'
import { isExtensionsOwner } from './ownership.js'
import type { Transition } from './transitions.js'

const latencyBuckets = [50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000, 240_000, 300_000, 600_000]
const whose = ['namespace', 'sandbox_template', 'owned_by']

/** Counts what becomes of Sandboxes. */
export interface LifecycleMetrics {
  became(sandbox: Stored<Sandbox>, transition: Transition): void
  /** A suspension or resumption ran into an error. */
  failed(sandbox: Stored<Sandbox>): void
}

/** The families that upstream added after 1.0.3. Latencies are measured by the process that saw both ends. */
export function lifecycleMetrics(registry: Registry, clock: Clock): LifecycleMetrics {
  const registers = [registry]
  const counter = (name: string, help: string, label: string): Counter =>
    new Counter({ name, help, labelNames: [...whose, label], registers })
  const latency = (name: string, help: string): Histogram =>
    new Histogram({ name, help, labelNames: whose, buckets: latencyBuckets, registers })
  const suspends = counter('agent_sandbox_suspend_total', 'Suspensions by how far they came.', 'result')
  const resumes = counter('agent_sandbox_resume_total', 'Resumptions by how far they came.', 'result')
  const finishes = counter('agent_sandbox_finished_total', 'Sandboxes whose Pod ended by itself.', 'reason')
  const expiries = counter('agent_sandbox_expired_total', 'Sandboxes that ran out of time.', 'shutdown_policy')
  const suspending = latency('agent_sandbox_suspend_latency_ms', 'Milliseconds until a suspended Pod was gone.')
  const resuming = latency('agent_sandbox_resume_latency_ms', 'Milliseconds until a resumed Sandbox was Ready.')
  const begun = new Map<string, { what: 'suspend' | 'resume'; atMs: number }>()
  const labelsOf = (sandbox: Stored<Sandbox>): Record<string, string> => {
    const { namespace = '', sandbox_template = '', owned_by = '' } = sandboxLabels(sandbox)
    return { namespace, sandbox_template, owned_by }
  }
  /** Ends what was begun, if it was this. */
  const end = (uid: string, what: 'suspend' | 'resume'): number | undefined => {
    const known = begun.get(uid)
    if (known?.what !== what) return undefined
    begun.delete(uid)
    return Math.round(clock.now().getTime() - known.atMs)
  }
  return {
    became(sandbox, transition) {
      const labels = labelsOf(sandbox)
      const { uid } = sandbox.metadata
      const begin = (what: 'suspend' | 'resume'): void => void begun.set(uid, { what, atMs: clock.now().getTime() })
      switch (transition) {
        case 'suspending':
          begin('suspend')
          return suspends.inc({ ...labels, result: 'requested' })
        case 'suspended': {
          const tookMs = end(uid, 'suspend')
          if (tookMs !== undefined) suspending.observe(labels, tookMs)
          return suspends.inc({ ...labels, result: 'pod_terminated' })
        }
        case 'resuming':
          begin('resume')
          return resumes.inc({ ...labels, result: 'requested' })
        case 'ready': {
          const tookMs = end(uid, 'resume')
          if (tookMs === undefined) return
          resuming.observe(labels, tookMs)
          return resumes.inc({ ...labels, result: 'ready' })
        }
        case 'succeeded':
          return finishes.inc({ ...labels, reason: 'PodSucceeded' })
        case 'failed':
          return finishes.inc({ ...labels, reason: 'PodFailed' })
        case 'expired':
          begun.delete(uid)
          return expiries.inc({ ...labels, shutdown_policy: sandbox.spec.shutdownPolicy ?? 'Retain' })
      }
    },
    failed(sandbox) {
      const known = begun.get(sandbox.metadata.uid)
      if (!known) return
      const counted = known.what === 'suspend' ? suspends : resumes
      counted.inc({ ...labelsOf(sandbox), result: 'error' })
    },
  }
}

/** `agent_sandbox_warmpool_size`: members of each pool by state, counted at every scrape. */
export function poolSizeGauge(registry: Registry, list: () => Iterable<Stored<Sandbox>>): void {
  const gauge: Gauge = new Gauge({
    name: 'agent_sandbox_warmpool_size',
    help: 'Sandboxes in pools, by state.',
    labelNames: ['namespace', 'warmpool_name', 'sandbox_template', 'sandbox_status'],
    registers: [registry],
    collect() {
      gauge.reset()
      for (const sandbox of list()) {
        const controller = controllerOf(sandbox)
        if (!controller || !isExtensionsOwner(controller, 'SandboxWarmPool')) continue
        const { namespace = '', sandbox_template = '' } = sandboxLabels(sandbox)
        gauge.inc({ namespace, sandbox_template, warmpool_name: controller.name, sandbox_status: stateOf(sandbox) })
      }
    },
  })
}

function stateOf({ status }: Stored<Sandbox>): 'ready' | 'succeeded' | 'failed' | 'pending' {
  if (isConditionTrue(status?.conditions, 'Ready')) return 'ready'
  if (!isConditionTrue(status?.conditions, 'Finished')) return 'pending'
  return findCondition(status?.conditions, 'Finished')?.reason === 'PodSucceeded' ? 'succeeded' : 'failed'
}

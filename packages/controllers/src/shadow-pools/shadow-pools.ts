import { hostname } from 'node:os'
import { type EventRecorder, eventSink, type KubeClient } from '@corral/kube'
import { type Clock, type Logger, silentLogger, systemClock } from '@corral/ports'
import {
  isAlreadyExists,
  type SandboxClaim,
  type SandboxWarmPool,
  SandboxWarmPools,
  type Stored,
} from '@corral/resources'
import { enqueueEvent, itself, type Reconcile, startController, WorkQueue } from '@corral/runtime'
import { type ExtensionsState, startExtensionsState } from '../shared/cluster-state.js'
import { quote } from '../shared/ownership.js'

const prefix = 'shadow-pool-'
const stateAnnotation = 'api.agents.x-k8s.io/v1alpha1-sandboxclaim-state'
const longestNameLength = 63

export interface ShadowPoolPorts {
  client: KubeClient
  clock?: Clock
  log?: Logger
  signal?: AbortSignal
}

export type ShadowPlan =
  | { kind: 'none' }
  | { kind: 'create'; pool: SandboxWarmPool; note: string }
  | { kind: 'tooLong'; note: string }

/**
 * A v1alpha1 claim may name a template without a pool; v1beta1 cannot say that. Conversion points such a claim at
 * `shadow-pool-<template>`, and this plan makes that pool, empty, so that the claim starts cold as it always did.
 */
export function planShadowPool(claim: SandboxClaim, pool: SandboxWarmPool | undefined): ShadowPlan {
  const name = claim.spec.warmPoolRef.name
  const cameFromAlpha = claim.metadata?.annotations?.[stateAnnotation] !== undefined
  if (!name.startsWith(prefix) || !cameFromAlpha || pool || claim.metadata?.deletionTimestamp) return { kind: 'none' }
  const template = name.slice(prefix.length)
  const advice = `create a SandboxWarmPool for SandboxTemplate ${quote(template)} and name it in spec.warmPoolRef (v1beta1)`
  if (name.length > longestNameLength) {
    return { kind: 'tooLong', note: `The name ${quote(name)} is too long for a pool: ${advice}` }
  }
  return {
    kind: 'create',
    note: `Created empty SandboxWarmPool ${quote(name)} because the v1alpha1 claim names only a template; to change that, ${advice}`,
    pool: {
      apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
      kind: 'SandboxWarmPool',
      metadata: {
        name,
        ...(claim.metadata?.namespace !== undefined && { namespace: claim.metadata.namespace }),
        annotations: {
          'agents.x-k8s.io/migration-shadow': 'true',
          'agents.x-k8s.io/migration-source-template': template,
        },
      },
      spec: { replicas: 0, sandboxTemplateRef: { name: template } },
    },
  }
}

/** Makes shadow pools for as long as it runs. For the embedded API only: elsewhere v1alpha1 is not served. */
export function startShadowPools(ports: ShadowPoolPorts): { ready: Promise<void>; stop(): Promise<void> } {
  const { client, clock = systemClock, log = silentLogger } = ports
  const lifetime = new AbortController()
  const abort = (): void => lifetime.abort()
  ports.signal?.addEventListener('abort', abort, { once: true })
  const sink = eventSink({ client, clock, log, instance: hostname() })
  const state = startExtensionsState({ client, clock, log, signal: lifetime.signal, onlyLabelled: false }, [
    'claims',
    'pools',
  ])
  const queue = new WorkQueue({ name: 'shadowpool' })
  state.claims.onEvent((event) => enqueueEvent(queue, event, itself))
  const reconcile = shadowPoolReconciler({ client, state, events: sink.recorder('shadowpool-controller') })
  const controller = Promise.all([state.claims.synced, state.pools.synced]).then(() =>
    startController({ name: 'shadowpool', workers: 2, queue, reconcile, log, signal: lifetime.signal }),
  )
  controller.catch(() => {}) // the caller sees it through `ready`
  return {
    ready: controller.then(() => undefined),
    async stop() {
      ports.signal?.removeEventListener('abort', abort)
      lifetime.abort()
      queue.close()
      await controller.then((running) => running.stopped).catch(() => {})
      await Promise.all([state.claims.stop(), state.pools.stop()])
      await sink.drain()
    },
  }
}

function shadowPoolReconciler(ports: {
  client: KubeClient
  state: Pick<ExtensionsState, 'claims' | 'pools'>
  events: EventRecorder
}): Reconcile {
  return async ({ key, namespace, signal }) => {
    const claim: Stored<SandboxClaim> | undefined = ports.state.claims.get(key)
    if (!claim) return {}
    const pool = ports.state.pools.get(`${namespace}/${claim.spec.warmPoolRef.name}`)
    const plan = planShadowPool(claim, pool)
    if (plan.kind === 'none') return {}
    if (plan.kind === 'tooLong') {
      ports.events.record(claim, {
        type: 'Warning',
        reason: 'ShadowPoolNameTooLong',
        action: 'Converting',
        note: plan.note,
      })
      return {}
    }
    try {
      ports.state.pools.remember(await ports.client.create(SandboxWarmPools, plan.pool, { signal }))
    } catch (error) {
      if (!isAlreadyExists(error)) throw error
      return {}
    }
    ports.events.record(claim, { type: 'Warning', reason: 'ShadowPoolCreated', action: 'Converting', note: plan.note })
    return {}
  }
}

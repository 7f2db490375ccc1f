import type { SandboxClaim, SandboxWarmPool } from '@corral/resources'
import { expect, it } from 'vitest'
import { planShadowPool } from './shadow-pools.js'

const alpha = { 'api.agents.x-k8s.io/v1alpha1-sandboxclaim-state': '{}' }
const claim = (name: string, annotations: Record<string, string> = alpha): SandboxClaim => ({
  apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
  kind: 'SandboxClaim',
  metadata: { name: 'c', namespace: 'ns', annotations },
  spec: { warmPoolRef: { name } },
})

it.each<{ when: string; claim: SandboxClaim; pool?: SandboxWarmPool; does: string }>([
  { when: 'a v1alpha1 claim names only a template', claim: claim('shadow-pool-t'), does: 'create' },
  {
    when: 'the pool is there',
    claim: claim('shadow-pool-t'),
    pool: { spec: { sandboxTemplateRef: { name: 't' } } } as SandboxWarmPool,
    does: 'none',
  },
  { when: 'the claim names a pool', claim: claim('mine'), does: 'none' },
  { when: 'a v1beta1 claim names a pool called so', claim: claim('shadow-pool-t', {}), does: 'none' },
  { when: 'the name would be too long', claim: claim(`shadow-pool-${'t'.repeat(60)}`), does: 'tooLong' },
])('shadow pool when $when: $does', ({ claim: subject, pool, does }) => {
  const plan = planShadowPool(subject, pool)
  expect(plan.kind).toBe(does)
  if (plan.kind !== 'create') return
  expect(plan.pool).toMatchObject({
    metadata: {
      name: 'shadow-pool-t',
      namespace: 'ns',
      annotations: { 'agents.x-k8s.io/migration-shadow': 'true', 'agents.x-k8s.io/migration-source-template': 't' },
    },
    spec: { replicas: 0, sandboxTemplateRef: { name: 't' } },
  })
})

import { describe, expect, it } from 'vitest'
import { sandboxV1alpha1Schema } from './agent-sandbox/v1alpha1.js'
import {
  sandboxClaimSchema,
  sandboxClaimStatusSchema,
  sandboxSchema,
  sandboxStatusSchema,
  sandboxTemplateSchema,
  sandboxWarmPoolSchema,
} from './agent-sandbox/v1beta1.js'
import { type AgentTask, agentTaskSchema } from './agent-task.js'
import { isFinalPhase } from './task-words.js'

const podTemplate = { spec: { containers: [{ name: 'a', image: 'b' }] } }
const task: AgentTask = {
  apiVersion: 'corral.dev/v1alpha1',
  kind: 'AgentTask',
  metadata: { name: 't' },
  spec: { repository: { url: 'file:///r' }, prompt: 'do it', agent: { name: 'command' } },
}

describe('schemas', () => {
  it('S0-B4 S2-I2 S3-5 S3-6: accept the smallest object of each kind, in both versions', () => {
    expect(sandboxSchema.parse({ spec: { podTemplate } })).toEqual({ spec: { podTemplate } })
    expect(sandboxV1alpha1Schema.safeParse({ spec: { podTemplate, replicas: 1 } }).success).toBe(true)
    expect(sandboxClaimSchema.safeParse({ spec: { warmPoolRef: { name: 'p' } } }).success).toBe(true)
    expect(sandboxTemplateSchema.safeParse({ spec: { podTemplate } }).success).toBe(true)
    expect(sandboxWarmPoolSchema.safeParse({ spec: { sandboxTemplateRef: { name: 't' } } }).success).toBe(true)
    expect(agentTaskSchema.safeParse(task).success).toBe(true)
  })

  it('know the status a claim mirrors', () => {
    const status = { sandbox: { name: 's', podIPs: ['10.0.0.1'], serviceFQDN: 's.ns.svc.cluster.local' } }
    expect(sandboxClaimStatusSchema.parse(status)).toEqual(status)
  })

  it.each<{
    that: string
    result: { success: boolean; error?: { issues: { path: PropertyKey[] }[] } | undefined }
    path: string
  }>([
    {
      that: 'a sandbox of another kind',
      result: sandboxSchema.safeParse({ kind: 'Pod', spec: { podTemplate } }),
      path: 'kind',
    },
    { that: 'a sandbox without spec', result: sandboxSchema.safeParse({}), path: 'spec' },
    {
      that: 'a container without name',
      result: sandboxSchema.safeParse({ spec: { podTemplate: { spec: { containers: [{}] } } } }),
      path: 'spec.podTemplate.spec.containers.0.name',
    },
    {
      that: 'an operating mode that is none',
      result: sandboxSchema.safeParse({ spec: { podTemplate, operatingMode: 'Asleep' } }),
      path: 'spec.operatingMode',
    },
    {
      that: 'two replicas of a sandbox',
      result: sandboxV1alpha1Schema.safeParse({ spec: { podTemplate, replicas: 2 } }),
      path: 'spec.replicas',
    },
    {
      that: 'a condition without reason',
      result: sandboxStatusSchema.safeParse({
        conditions: [
          { type: 'Ready', status: 'True', reason: '', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
        ],
      }),
      path: 'conditions.0.reason',
    },
    {
      that: 'a task without time',
      result: agentTaskSchema.safeParse({ ...task, spec: { ...task.spec, timeoutSeconds: 0 } }),
      path: 'spec.timeoutSeconds',
    },
    {
      that: 'labels that are no texts',
      result: agentTaskSchema.safeParse({ ...task, metadata: { labels: { a: 1 } } }),
      path: 'metadata.labels.a',
    },
  ])('refuse $that', ({ result, path }) => {
    expect(result.success).toBe(false)
    expect(result.error?.issues[0]?.path.join('.')).toBe(path)
  })

  it('call four phases final', () => {
    expect((['SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELLED'] as const).every(isFinalPhase)).toBe(true)
    expect([undefined, 'QUEUED', 'PROVISIONING', 'RUNNING'].some((phase) => isFinalPhase(phase as undefined))).toBe(
      false,
    )
  })
})

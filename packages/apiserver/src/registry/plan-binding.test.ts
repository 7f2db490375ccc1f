import { describe, expect, it } from 'vitest'
import { planBinding, type SchedulingNode, type SchedulingPod } from './plan-binding.js'

const node = (
  name: string,
  options: { ready?: boolean; cordoned?: boolean; labels?: Record<string, string> } = {},
): SchedulingNode => ({
  metadata: { name, labels: options.labels ?? {} },
  spec: options.cordoned ? { unschedulable: true } : {},
  status: { conditions: [{ type: 'Ready', status: (options.ready ?? true) ? 'True' : 'False' }] },
})
const pod = (
  spec: SchedulingPod['spec'] = {},
  status: NonNullable<SchedulingPod['status']> = { phase: 'Pending' },
): SchedulingPod => ({
  metadata: { name: 'p' },
  spec,
  status,
})
const told = (reason: string, message: string): NonNullable<SchedulingPod['status']> => ({
  phase: 'Pending',
  conditions: [{ type: 'PodScheduled', status: 'False', reason, message }],
})

describe('planBinding', () => {
  it.each<{ when: string; pod: SchedulingPod; nodes: SchedulingNode[]; does: object }>([
    { when: 'a node is ready', pod: pod(), nodes: [node('a')], does: { type: 'bind', node: 'a' } },
    {
      when: 'the first node is not ready',
      pod: pod(),
      nodes: [node('a', { ready: false }), node('b')],
      does: { type: 'bind', node: 'b' },
    },
    {
      when: 'the first node is cordoned',
      pod: pod(),
      nodes: [node('a', { cordoned: true }), node('b')],
      does: { type: 'bind', node: 'b' },
    },
    {
      when: 'the selector names the second',
      pod: pod({ nodeSelector: { disk: 'ssd' } }),
      nodes: [node('a'), node('b', { labels: { disk: 'ssd' } })],
      does: { type: 'bind', node: 'b' },
    },
    {
      when: 'there is no node',
      pod: pod(),
      nodes: [],
      does: { type: 'unschedulable', reason: 'Unschedulable', message: '0/0 nodes are available' },
    },
    {
      when: 'the pod knows that already',
      pod: pod({}, told('Unschedulable', '0/0 nodes are available')),
      nodes: [],
      does: { type: 'none' },
    },
    {
      when: 'a gate holds the pod',
      pod: pod({ schedulingGates: [{ name: 'g' }] }),
      nodes: [node('a')],
      does: { type: 'unschedulable', reason: 'SchedulingGated' },
    },
    { when: 'the pod has a node', pod: pod({ nodeName: 'x' }), nodes: [node('a')], does: { type: 'none' } },
    {
      when: 'the pod is for another scheduler',
      pod: pod({ schedulerName: 'mine' }),
      nodes: [node('a')],
      does: { type: 'none' },
    },
    { when: 'the pod is over', pod: pod({}, { phase: 'Failed' }), nodes: [node('a')], does: { type: 'none' } },
  ])('when $when', ({ pod: subject, nodes, does }) => {
    expect(planBinding(subject, nodes)).toMatchObject(does)
  })
})

import type { AgentTask } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { egressOf, isGranted } from './phase-egress.js'

const task = (
  spec: Partial<AgentTask['spec']>,
  environment?: NonNullable<AgentTask['status']>['environment'],
): Pick<AgentTask, 'spec' | 'status'> => ({
  spec: { repository: { url: '/r' }, prompt: 'p', agent: { name: 'command' }, ...spec },
  ...(environment ? { status: { environment } } : {}),
})

describe('egressOf', () => {
  it.each<{
    when: string
    spec: Partial<AgentTask['spec']>
    environment?: NonNullable<AgentTask['status']>['environment']
    setup: string[]
    agent: string[]
  }>([
    { when: 'nothing is granted', spec: {}, setup: [], agent: [] },
    { when: 'a grant is for the whole task', spec: { egress: ['a:1'] }, setup: ['a:1'], agent: ['a:1'] },
    { when: 'a grant is for set-up alone', spec: { setupEgress: ['packages'] }, setup: ['packages'], agent: [] },
    {
      when: 'the environment asks for more',
      spec: { egress: ['a:1'] },
      environment: { commit: 'c', setupEgress: ['packages'], egress: ['b:2'] },
      setup: ['a:1', 'b:2', 'packages'],
      agent: ['a:1', 'b:2'],
    },
    {
      when: 'something is granted twice',
      spec: { egress: ['a:1'], setupEgress: ['a:1', 'b:2'] },
      setup: ['a:1', 'b:2'],
      agent: ['a:1'],
    },
  ])('when $when', ({ spec, environment, setup, agent }) => {
    expect(egressOf(task(spec, environment), 'setup')).toEqual(setup)
    expect(egressOf(task(spec, environment), 'agent')).toEqual(agent)
  })

  it('a host named like the grant is no grant', () => {
    expect(isGranted(task({ egress: ['packages:443'] }), 'agent', 'packages')).toBe(false)
  })
})

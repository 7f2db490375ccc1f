import type { PodSpec } from '@corral/resources'
import { expect, it } from 'vitest'
import { podLimits } from './amounts.js'

const container = (resources?: PodSpec['containers'][number]['resources']): PodSpec['containers'][number] => ({
  name: 'main',
  image: 'busybox',
  ...(resources ? { resources } : {}),
})

it.each<{ when: string; spec: PodSpec; weighs: number; quota?: number }>([
  { when: 'it asks for nothing', spec: { containers: [container()] }, weighs: 100 },
  { when: 'it asks for 250m', spec: { containers: [container({ requests: { cpu: '250m' } })] }, weighs: 250 },
  {
    when: 'its containers ask for 250m and 1',
    spec: { containers: [container({ requests: { cpu: '250m' } }), container({ requests: { cpu: 1 } })] },
    weighs: 1250,
  },
  {
    when: 'the pod itself asks for 2',
    spec: { containers: [container({ requests: { cpu: '250m' } })], resources: { requests: { cpu: '2' } } },
    weighs: 2000,
  },
  {
    when: 'its template sets a limit',
    spec: { containers: [container({ requests: { cpu: '250m' }, limits: { cpu: '500m' } })] },
    weighs: 250,
    quota: 500,
  },
  {
    when: 'only one of two containers has a limit',
    spec: { containers: [container({ limits: { cpu: '500m' } }), container()] },
    weighs: 100,
  },
])('a pod always has a weight, and a quota only where one is set: $when', ({ spec, weighs, quota }) => {
  const { cpuWeightMillis, cpuMillis } = podLimits(spec)
  expect({ cpuWeightMillis, cpuMillis }).toEqual({ cpuWeightMillis: weighs, cpuMillis: quota })
})

import type { Pod } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { limitedPod } from './pod-limits.js'

const allocatable = { cpuMillis: 2000, memoryBytes: 8 * 2 ** 30, ephemeralStorageBytes: 50 * 2 ** 30 }
const container = { name: 'main', image: 'x', resources: { limits: { memory: '4Gi' } } }
const podOf = (text: string | undefined, containers = [container]): Pod => ({
  metadata: text === undefined ? {} : { annotations: { 'corral.dev/resources': text } },
  spec: { containers },
})

describe('the limits a pod’s annotation asks for', () => {
  it.each<{ when: string; text?: string; limits: Record<string, string> }>([
    { when: 'there is none', limits: { memory: '4Gi' } },
    { when: 'it names some', text: 'memory=6Gi, cpu=1', limits: { memory: '6Gi', cpu: '1' } },
    { when: 'it names disk', text: 'disk=20Gi', limits: { memory: '4Gi', 'ephemeral-storage': '20Gi' } },
  ])('when $when', ({ text, limits }) => {
    const { pod, refusal } = limitedPod(podOf(text), allocatable)
    expect(refusal).toBeUndefined()
    expect(pod.spec?.containers[0]?.resources?.limits).toEqual(limits)
  })

  it.each([
    { when: 'it cannot be read', text: 'lots', reason: 'Invalid', says: /not of the form/ },
    { when: 'an amount is below what a sandbox needs', text: 'memory=1Mi', reason: 'Invalid', says: /not of the form/ },
    { when: 'the node has less memory', text: 'memory=9Gi', reason: 'Infeasible', says: /more than the 8192Mi/ },
    { when: 'the node has fewer cores', text: 'cpu=3', reason: 'Infeasible', says: /more than the 2 / },
    { when: 'the node has less disk', text: 'disk=1Ti', reason: 'Infeasible', says: /disk 1Ti/ },
  ])('are refused when $when, and the pod stays as it is', ({ text, reason, says }) => {
    const given = podOf(text)
    const { pod, refusal } = limitedPod(given, allocatable)
    expect(refusal).toMatchObject({ reason, message: expect.stringMatching(says) })
    expect(pod).toBe(given)
  })

  it('are for pods of one container', () => {
    const { refusal } = limitedPod(podOf('cpu=1', [container, { ...container, name: 'other' }]), allocatable)
    expect(refusal).toMatchObject({ reason: 'Invalid', message: expect.stringContaining('one container') })
  })
})

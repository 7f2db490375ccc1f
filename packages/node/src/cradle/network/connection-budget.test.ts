import { describe, expect, it } from 'vitest'
import { ConnectionBudget, networkLimits, readOpenFilesLimit } from './connection-budget.js'

describe('networkLimits', () => {
  it.each([256, 512, 1024, 4096, 20_000, 1_048_576])('leaves a reserve of %i descriptors', (openFiles) => {
    const limits = networkLimits(openFiles)
    const held = 2 * (limits.connections + limits.connectionsBeyond) + limits.listeners
    expect(held).toBeLessThanOrEqual(openFiles * 0.9)
    expect(limits.connectionsPerPod).toBeLessThanOrEqual(limits.connections / 2)
  })

  it('knows the limit of this process', () => {
    expect(readOpenFilesLimit()).toBeGreaterThan(100)
  })
})

describe('ConnectionBudget', () => {
  const limits = {
    connectionsPerPod: 3,
    connections: 4,
    connectionsGuaranteed: 1,
    connectionsBeyond: 1,
    listenersPerPod: 2,
    listeners: 3,
    arrivals: { connections: { burst: 9, perSecond: 9 }, questions: { burst: 9, perSecond: 9 } },
  }

  it('refuses a pod past its own limit and gives back what was returned', () => {
    const pod = new ConnectionBudget(limits).forPod()
    expect([1, 2, 3, 4].map(() => pod.takeConnection())).toEqual(['taken', 'taken', 'taken', 'pod'])
    pod.returnConnection()
    expect(pod.takeConnection()).toBe('taken')
  })

  it('refuses all past the limit of all, except the first connection of a pod, as far as the reserve goes', () => {
    const budget = new ConnectionBudget(limits)
    const [first, second, third, fourth] = [budget.forPod(), budget.forPod(), budget.forPod(), budget.forPod()]
    for (let i = 0; i < 3; i++) first.takeConnection()
    expect(second.takeConnection()).toBe('taken')
    expect(second.takeConnection()).toBe('node')
    expect(third.takeConnection()).toBe('taken')
    expect(fourth.takeConnection()).toBe('node')
  })

  it('counts listeners of a pod and of all, and gets them back with the pod', () => {
    const budget = new ConnectionBudget(limits)
    const [first, second] = [budget.forPod(), budget.forPod()]
    expect(first.takeListeners(3)).toBe(false)
    expect(first.takeListeners(2)).toBe(true)
    expect(second.takeListeners(2)).toBe(false)
    first.returnListeners()
    expect(second.takeListeners(2)).toBe(true)
  })
})

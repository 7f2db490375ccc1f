import { defaultManagerOptions, startManager } from '@corral/controllers'
import { isConditionTrue, SandboxClaims, Sandboxes, SandboxTemplates, SandboxWarmPools } from '@corral/resources'
import { type FakeIsolation, fakeIsolation } from '@corral/testing'
import { expect, it, vi } from 'vitest'
import { isReady, nodeUnderTest } from './node-under-test.js'

const forever = 'trap "exit 0" TERM; while :; do sleep 0.1; done'
const at = (name: string) => ({ namespace: 'default', name })
const waiting = { timeout: 240_000, interval: 20 }

it('a claim is not bound to a warm pod of a lost cradle while that is made again', async () => {
  let isolation: FakeIsolation | undefined
  await using node = await nodeUnderTest(() => {
    isolation = fakeIsolation()
    return isolation
  })
  const manager = startManager({ client: node.client, options: defaultManagerOptions() })
  try {
    await manager.ready
    const containers = [{ name: 'main', image: 'x', command: ['sh', '-c', forever] }]
    await node.client.create(SandboxTemplates, {
      metadata: at('plain'),
      spec: { networkPolicyManagement: 'Unmanaged', podTemplate: { spec: { containers } } },
    })
    await node.client.create(SandboxWarmPools, {
      metadata: at('warm'),
      spec: { replicas: 1, sandboxTemplateRef: { name: 'plain' } },
    })
    const warm = await vi.waitFor(async () => {
      const [sandbox] = (await node.client.list(Sandboxes, { namespace: 'default' })).items
      expect(isConditionTrue(sandbox?.status?.conditions ?? [], 'Ready')).toBe(true)
      return sandbox!
    }, waiting)
    const pod = await node.until(warm.metadata.name, isReady)

    let mayMakeAgain = (): void => undefined
    const gate = new Promise<void>((resolve) => {
      mayMakeAgain = resolve
    })
    const { preparePod } = isolation!
    const isAsked = new Promise<void>((resolve) => {
      isolation!.preparePod = async (plan) => {
        if (plan.podUid === pod.metadata.uid) {
          resolve()
          await gate
        }
        return preparePod(plan)
      }
    })
    isolation!.lose(pod.metadata.uid, 'main')
    await isAsked
    await node.client.create(SandboxClaims, { metadata: at('claim'), spec: { warmPoolRef: { name: 'warm' } } })

    const claim = await vi.waitFor(async () => {
      const found = await node.client.get(SandboxClaims, at('claim'))
      expect(found.status?.sandbox?.name).toBeDefined()
      return found
    }, waiting)
    expect(claim.status?.sandbox?.name).not.toBe(warm.metadata.name)
    await vi.waitFor(async () => {
      const { status } = await node.client.get(SandboxClaims, at('claim'))
      expect(isConditionTrue(status?.conditions ?? [], 'Ready')).toBe(true)
    }, waiting)
    mayMakeAgain()
    await node.until(warm.metadata.name, isReady)
  } finally {
    await manager.stop()
  }
})

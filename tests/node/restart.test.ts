import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bubblewrapIsolation, type Isolation } from '@corral/node'
import { type Pod, Pods } from '@corral/resources'
import { type FakeIsolation, fakeIsolation } from '@corral/testing'
import { afterEach, describe, expect, it } from 'vitest'
import { hasPhase, isReady, type NodeUnderTest, nodeUnderTest } from './node-under-test.js'

const forever = {
  name: 'main',
  image: 'busybox',
  command: ['sh', '-c', 'echo up; trap "exit 0" TERM; while :; do sleep 0.1; done'],
}
const restartCount = (pod: { status?: { containerStatuses?: { restartCount: number }[] } }): number =>
  pod.status?.containerStatuses?.[0]?.restartCount ?? 0

describe('a node that is started again', () => {
  let node: NodeUnderTest | undefined
  afterEach(async () => {
    await node?.[Symbol.asyncDispose]()
    node = undefined
  })

  it('takes over the pods that went on without it', async () => {
    let isolation: Isolation | undefined
    node = await nodeUnderTest((dataDir) => {
      isolation = bubblewrapIsolation({ dataDir })
      return isolation
    })
    await node.create('kept', { containers: [forever] })
    const before = await node.until('kept', isReady)
    expect((await node.run('kept', ['sh', '-c', 'echo mark > /tmp/mark'])).exitCode).toBe(0)

    await node.agent.stop({ endPods: false })
    await isolation?.close({ endPods: false })
    await node.restart({ endPods: false, isolation: bubblewrapIsolation({ dataDir: node.dataDir }) })

    const after = await node.until('kept', isReady)
    expect(after.status?.containerStatuses).toEqual(before.status?.containerStatuses)
    expect((await node.run('kept', ['cat', '/tmp/mark'])).stdout).toBe('mark\n')
    expect(await node.logs('kept')).toBe('up\n')
    await node.client.delete(Pods, { namespace: 'default', name: 'kept' })
    await node.untilGone('kept')
  })

  it.each(['while the node runs', 'together with the node'])(
    'makes the pods of a cradle that was killed %s again, with their volumes and never as they were',
    async (when) => {
      let isolation: Isolation | undefined
      node = await nodeUnderTest((dataDir) => {
        isolation = bubblewrapIsolation({ dataDir })
        return isolation
      })
      const work = [{ name: 'work', mountPath: '/work' }]
      await node.create('kept', {
        containers: [{ ...forever, volumeMounts: work }],
        volumes: [{ name: 'work', emptyDir: {} }],
      })
      const before = await node.until('kept', isReady)
      await node.run('kept', ['sh', '-c', 'echo mark > /work/mark; sleep 900 >/dev/null 2>&1 &'])

      if (when === 'together with the node') await node.agent.stop({ endPods: false })
      process.kill(Number(readFileSync(join(node.dataDir, 'cradle', 'cradle.pid'), 'utf8')), 'SIGKILL')
      if (when === 'together with the node')
        await node.restart({ endPods: false, isolation: bubblewrapIsolation({ dataDir: node.dataDir }) })

      const after = await node.until('kept', (pod) => isReady(pod) && restartCount(pod) === 1)
      expect(after.metadata.uid).toBe(before.metadata.uid)
      expect(after.status?.containerStatuses?.[0]?.lastState?.terminated).toMatchObject({
        reason: 'ContainerStatusUnknown',
      })
      expect((await node.run('kept', ['cat', '/work/mark'])).stdout).toBe('mark\n')
      const processes = await node.run('kept', ['sh', '-c', 'cat /proc/[0-9]*/cmdline | tr "\\0" " "'])
      expect(processes.stdout).not.toContain('sleep 900')
      await node.client.delete(Pods, { namespace: 'default', name: 'kept' })
      await node.untilGone('kept')
    },
  )

  it('calls the pods of a lost cradle not ready, and without an address, before it makes them again', async () => {
    let isolation: FakeIsolation | undefined
    let whenMadeAgain: Promise<Pod> | undefined
    node = await nodeUnderTest(() => {
      isolation = fakeIsolation()
      return isolation
    })
    await node.create('warm', { containers: [forever, { ...forever, name: 'second' }] })
    const before = await node.until('warm', isReady)

    const { client } = node
    const { preparePod } = isolation!
    isolation!.preparePod = async (plan) => {
      whenMadeAgain ??= client.get(Pods, { namespace: 'default', name: 'warm' })
      await whenMadeAgain
      return preparePod(plan)
    }
    for (const container of ['main', 'second']) isolation!.lose(before.metadata.uid, container)

    const after = await node.until('warm', (pod) => isReady(pod) && restartCount(pod) === 1)
    const { conditions, podIP, podIPs } = (await whenMadeAgain)?.status ?? {}
    expect(conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'False' }))
    expect([podIP, podIPs]).toEqual([undefined, undefined])
    expect(after.status?.podIPs).toEqual(before.status?.podIPs)
  })

  it('ends the pods it is not told to keep', async () => {
    let isolation: FakeIsolation | undefined
    node = await nodeUnderTest(() => {
      isolation = fakeIsolation()
      return isolation
    })
    await node.create('kept', { containers: [forever] })
    await node.create('ended', { containers: [forever] })
    await node.until('kept', isReady)
    await node.until('ended', isReady)

    await node.agent.stop({ endPods: true, keeps: (pod) => pod.metadata?.name === 'kept' })

    expect([...isolation!.pods.values()].map(({ name }) => name)).toEqual(['kept'])
    await node.restart({ endPods: true })
    expect(restartCount(await node.until('kept', isReady))).toBe(0)
    await node.until('ended', (pod) => isReady(pod) && restartCount(pod) === 1)
  })

  it('starts again what it ended on its way down, by restart policy', async () => {
    node = await nodeUnderTest(() => fakeIsolation())
    await node.create('always', { containers: [forever] })
    await node.create('never', { restartPolicy: 'Never', containers: [forever] })
    await node.until('always', isReady)
    await node.until('never', isReady)

    await node.restart({ endPods: true })

    const always = await node.until('always', (pod) => isReady(pod) && restartCount(pod) === 1)
    expect(always.status?.containerStatuses?.[0]?.lastState?.terminated).toBeDefined()
    const never = await node.until('never', (pod) => pod.status?.phase !== 'Running')
    expect(restartCount(never)).toBe(0)
  })

  it('reports a container whose keeper died as lost, and follows the restart policy', async () => {
    let isolation: FakeIsolation | undefined
    node = await nodeUnderTest(() => {
      isolation = fakeIsolation()
      return isolation
    })
    await node.create('always', { containers: [forever] })
    await node.create('never', { restartPolicy: 'Never', containers: [forever] })
    const uids = [await node.until('always', isReady), await node.until('never', isReady)].map(
      (pod) => pod.metadata.uid,
    )

    await node.agent.stop({ endPods: false })
    for (const uid of uids) {
      const gone = (await isolation!.adopt()).find((cell) => cell.podUid === uid)!.exited
      isolation!.lose(uid, 'main')
      await gone
    }
    await node.restart({ endPods: false, isolation: isolation!.reopen() })

    const lost = {
      exitCode: 137,
      reason: 'ContainerStatusUnknown',
      message: expect.stringContaining('could not be located'),
    }
    const always = await node.until('always', (pod) => isReady(pod) && restartCount(pod) === 1)
    expect(always.status?.containerStatuses?.[0]?.lastState?.terminated).toMatchObject(lost)
    const never = await node.until('never', hasPhase('Failed'))
    expect(never.status?.containerStatuses?.[0]?.state?.terminated).toMatchObject(lost)
  })

  it('ends the pods whose object went away in the meantime', async () => {
    let isolation: FakeIsolation | undefined
    node = await nodeUnderTest(() => {
      isolation = fakeIsolation()
      return isolation
    })
    await node.create('orphan', { containers: [forever] })
    const { uid } = (await node.until('orphan', isReady)).metadata
    const [cell] = await isolation!.adopt()

    await node.agent.stop({ endPods: false })
    await node.client.delete(Pods, { namespace: 'default', name: 'orphan' }, { gracePeriodSeconds: 0 })
    await node.restart({ endPods: false })

    await cell!.exited
    await expect.poll(() => existsSync(join(node!.dataDir, 'pods', uid))).toBe(false)
  })
})

import { join } from 'node:path'
import { bubblewrapIsolation, ImageDirectory } from '@corral/node'
import {
  imageAnnotation,
  imageCondition,
  type Pod,
  Pods,
  resourcesAnnotation,
  resourcesCondition,
} from '@corral/resources'
import { tinyRoot } from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isReady, type NodeUnderTest, nodeUnderTest } from './node-under-test.js'

let node: NodeUnderTest
beforeAll(async () => {
  node = await nodeUnderTest((dataDir) => bubblewrapIsolation({ dataDir }))
  const archive = tinyRoot(node.dataDir, { programs: ['sh', 'cat', 'sleep', 'touch'], marker: 'tiny' })
  await new ImageDirectory(join(node.dataDir, 'images')).import('tiny:1', archive)
})
afterAll(() => node[Symbol.asyncDispose]())

const main = (image: string) => ({
  name: 'main',
  image,
  command: ['sh', '-c', 'trap "exit 0" TERM; while :; do sleep 0.1; done'],
  volumeMounts: [{ name: 'work', mountPath: '/workspace' }],
})
const volumes = [{ name: 'work', emptyDir: {} }]
const conditionOf = (pod: Pod, type: string) => pod.status?.conditions?.find((each) => each.type === type)
const sh = async (name: string, script: string): Promise<string> => {
  const { stdout, stderr, exitCode } = await node.run(name, ['sh', '-c', script])
  return exitCode === 0 ? stdout : `exit ${exitCode}: ${stderr}`
}
const annotate = (name: string, annotations: Record<string, string>) =>
  node.client.patch(Pods, { namespace: 'default', name }, { type: 'merge', body: { metadata: { annotations } } })

describe('an imported image', () => {
  it('is the root of a pod that names it, read-only, with the pod’s own names and directories in it', async () => {
    await node.create('rooted', { containers: [main('tiny:1')], volumes })
    await node.until('rooted', isReady)
    expect(await sh('rooted', 'cat /etc/marker')).toBe('tiny')
    expect(await sh('rooted', 'cat /etc/hosts')).toContain('rooted')
    expect(await sh('rooted', 'cat /usr/bin/env')).toMatch(/No such file/)
    expect(await sh('rooted', 'touch /usr/bin/x')).toMatch(/Read-only/)
    expect(await sh('rooted', 'touch ~/x /tmp/x /var/tmp/y /workspace/x && echo written')).toBe('written\n')
    expect(await sh('rooted', 'echo $CORRAL_ROOT_DIGEST')).toMatch(/^sha256:/)
    expect(JSON.stringify(await node.events('rooted'))).not.toContain('ImageMapped')
  })

  it('is not what another name stands for: that has the tools of the machine, and an event says so', async () => {
    await node.create('mapped', { containers: [main('tiny:2')], volumes })
    await node.until('mapped', isReady)
    expect(await sh('mapped', 'cat /etc/marker')).toMatch(/No such file/)
    expect(JSON.stringify(await node.events('mapped'))).toContain('ImageMapped')
  })

  it('becomes the root of a pod that runs; its files stay', async () => {
    await node.create('late', { containers: [main('busybox')], volumes })
    await node.until('late', isReady)
    await sh('late', 'echo kept > /workspace/kept; echo home > ~/kept')
    await annotate('late', { [imageAnnotation]: 'nothing:1' })
    const missing = await node.until('late', (pod) => conditionOf(pod, imageCondition) !== undefined)
    expect(conditionOf(missing, imageCondition)).toMatchObject({ status: 'False', reason: 'NotFound' })
    expect(missing.status?.containerStatuses?.[0]?.restartCount).toBe(0)
    await annotate('late', { [imageAnnotation]: 'tiny:1' })
    const pod = await node.until('late', (each) => conditionOf(each, imageCondition)?.status === 'True')
    expect(pod.status?.containerStatuses?.[0]?.restartCount).toBe(1)
    expect(await sh('late', 'cat /etc/marker /workspace/kept ~/kept')).toBe('tinykept\nhome\n')
    await node.restart({ endPods: false })
    expect(await sh('late', 'cat /etc/marker')).toBe('tiny')
  })
})

describe('other limits for a pod that runs', () => {
  it('are in force without a restart, and are taken back', async () => {
    const limited = { ...main('busybox'), resources: { limits: { memory: '1Gi' } } }
    await node.create('limited', { containers: [limited], volumes })
    await node.until('limited', isReady)
    await annotate('limited', { [resourcesAnnotation]: 'memory=512Mi, cpu=1' })
    const pod = await node.until('limited', (each) => conditionOf(each, resourcesCondition)?.status === 'True')
    expect(conditionOf(pod, resourcesCondition)?.message).toBe('memory=512Mi, cpu=1')
    expect(pod.status?.containerStatuses?.[0]?.restartCount).toBe(0)
    await annotate('limited', { [resourcesAnnotation]: 'memory=900Gi' })
    const refused = await node.until('limited', (each) => conditionOf(each, resourcesCondition)?.status === 'False')
    expect(conditionOf(refused, resourcesCondition)).toMatchObject({ reason: 'Infeasible' })
  })
})

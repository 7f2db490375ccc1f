import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { bubblewrapIsolation } from '@corral/node'
import { type Pod, Pods } from '@corral/resources'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hasBubblewrap } from '../../packages/node/src/isolation/workbench.test-suite.js'
import { condition, hasPhase, isReady, type NodeUnderTest, nodeUnderTest } from '../node/node-under-test.js'

const forever = 'exec sleep 600'
const limit = '8Mi'
const overAll = `Pod ephemeral local storage usage exceeds the total limit of containers ${limit}.`

/** A pod that may take 8 MiB and 300 files in all, with a workspace. */
const spec = (script: string): Pod['spec'] => ({
  restartPolicy: 'Always',
  volumes: [{ name: 'work', emptyDir: {} }],
  containers: [
    {
      name: 'main',
      image: 'busybox',
      command: ['sh', '-c', script],
      volumeMounts: [{ name: 'work', mountPath: '/workspace' }],
      resources: { limits: { 'ephemeral-storage': limit } },
    },
  ],
})
const annotations = { 'corral.dev/inodes': '300' }
const mebibytes = (count: number, file: string): string => `head -c ${count * 2 ** 20} /dev/zero > ${file}`

describe.skipIf(!hasBubblewrap)('13.5: attacks on the disk (bubblewrap installed)', () => {
  let node: NodeUnderTest
  beforeAll(async () => {
    node = await nodeUnderTest((dataDir) => bubblewrapIsolation({ dataDir }))
  })
  afterAll(() => node?.[Symbol.asyncDispose]())

  let count = 0
  const attack = async (script: string, more: Record<string, string> = {}): Promise<string> => {
    const name = `disk-${++count}`
    await node.create(name, spec(`${script}; ${forever}`), { annotations: { ...annotations, ...more } })
    return name
  }

  it.each<{ what: string; script: string; message: string }>([
    { what: 'filling the workspace', script: mebibytes(12, '/workspace/big'), message: overAll },
    { what: 'filling HOME', script: mebibytes(12, '$HOME/big'), message: overAll },
    { what: 'filling /tmp', script: mebibytes(12, '/tmp/big'), message: overAll },
    {
      what: 'filling all of them a little',
      script: `${mebibytes(4, '/tmp/big')}; ${mebibytes(4, '$HOME/big')}; ${mebibytes(4, '/workspace/big')}`,
      message: overAll,
    },
    {
      what: 'flooding the log',
      script: 'yes "a line that is long enough to make a difference" | head -c 9000000',
      message: overAll,
    },
    {
      what: 'hiding it in a directory nobody may read',
      script: `mkdir /tmp/a; ${mebibytes(12, '/tmp/a/big')}; chmod 0 /tmp/a`,
      message: overAll,
    },
    {
      what: 'taking many files',
      script: 'i=0; while [ $i -lt 400 ]; do : > /tmp/$i; i=$((i+1)); done',
      message: 'Pod inode usage exceeds the limit 300.',
    },
  ])('$what ends in an eviction that says so', async ({ script, message }) => {
    const pod = await node.until(await attack(script), hasPhase('Failed'))
    expect(pod.status).toMatchObject({ reason: 'Evicted', message })
    expect(condition(pod, 'DisruptionTarget')).toBe('True')
    expect(pod.status?.containerStatuses?.[0]?.state?.terminated?.exitCode).toBe(137)
  })

  it.skipIf(process.getuid?.() !== 0)('a file that was deleted and is still written to counts', async () => {
    const name = await attack('exec 3> /tmp/a; rm /tmp/a; head -c 12000000 /dev/zero >&3')
    expect((await node.until(name, hasPhase('Failed'))).status?.message).toBe(overAll)
  })

  it.skipIf(process.getuid?.() !== 0 || !existsSync('/usr/bin/python3'))(
    'a file that was deleted and that a process has mapped, without a descriptor, counts (root, Python for the mapping)',
    async () => {
      const map = [
        'import mmap, os, time',
        'file = os.open("/tmp/a", os.O_RDWR | os.O_CREAT)',
        'os.unlink("/tmp/a")',
        'os.write(file, b"x" * 12000000)',
        'mapped = mmap.mmap(file, 12000000)',
        'os.close(file)',
        'time.sleep(600)',
      ].join('\n')
      const name = await attack(`python3 -c '${map}'`)
      expect((await node.until(name, hasPhase('Failed'))).status?.message).toBe(overAll)
    },
  )

  it.each([
    { what: 'less than the limit', script: `${mebibytes(3, '/tmp/big')}; ${mebibytes(3, '$HOME/big')}` },
    { what: 'a sparse file of a gibibyte', script: 'truncate -s 1G /tmp/sparse' },
    {
      what: 'one file under many names',
      script: `${mebibytes(3, '/tmp/big')}; i=0; while [ $i -lt 20 ]; do ln /tmp/big /tmp/$i; i=$((i+1)); done`,
    },
    {
      what: 'what was deleted again',
      script: `${mebibytes(6, '/tmp/big')}; rm /tmp/big; ${mebibytes(6, '/tmp/more')}`,
    },
  ])('$what is nobody’s business', async ({ script }) => {
    const name = await attack(`${script}; touch /tmp/done`)
    const pod = await node.until(name, isReady)
    const directory = join(node.dataDir, 'pods', pod.metadata.uid)
    await expect.poll(() => existsSync(join(directory, 'tmp/done')), { timeout: 240_000 }).toBe(true)
    // Another pod that is over its limit goes in the same round of counting, this one stays.
    await node.until(await attack(mebibytes(12, '/tmp/big')), hasPhase('Failed'))
    expect((await node.until(name, isReady)).status?.reason).toBe(undefined)
    await node.client.delete(Pods, { namespace: 'default', name })
  })

  it('with a grace period the rest of the pod ends first, and its main process can still be asked for the work', async () => {
    const script = `sh -c 'echo work > /workspace/result; ${mebibytes(12, '/tmp/big')}; sleep 600' & ${forever}`
    const name = await attack(script, { 'corral.dev/eviction-grace-seconds': '600' })
    const halted = await node.until(name, (pod) => condition(pod, 'DisruptionTarget') === 'True')
    expect(halted.status?.conditions?.find(({ type }) => type === 'DisruptionTarget')).toMatchObject({
      reason: 'TerminationByKubelet',
      message: overAll,
    })
    expect(halted.status?.phase).toBe('Running')
    await expect.poll(async () => (await node.events(name)).map(({ reason }) => reason)).toContain('Evicting')
    const { stdout } = await node.run(name, [
      'sh',
      '-c',
      'cat /workspace/result; ps -e -o args= | grep -c "[s]leep 600"',
    ])
    expect(stdout).toBe('work\n1\n')
    // What grows in spite of it goes at once.
    await node.run(name, ['sh', '-c', mebibytes(12, '/tmp/more')])
    expect((await node.until(name, hasPhase('Failed'))).status).toMatchObject({ reason: 'Evicted', message: overAll })
  })

  it('the log of a pod stays readable after its eviction, and its files go with the pod', async () => {
    const name = await attack(`echo last words; ${mebibytes(12, '/tmp/big')}`)
    const pod = await node.until(name, hasPhase('Failed'))
    expect(await node.logs(name)).toBe('last words\n')
    const directory = join(node.dataDir, 'pods', pod.metadata.uid)
    expect(statSync(directory).isDirectory()).toBe(true)
    await node.client.delete(Pods, { namespace: 'default', name })
    await node.untilGone(name)
    await expect.poll(() => existsSync(directory), { timeout: 240_000 }).toBe(false)
  })
})

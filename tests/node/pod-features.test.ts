import { bubblewrapIsolation } from '@corral/node'
import { ConfigMaps, NetworkPolicies, PersistentVolumeClaims, Pods, Secrets } from '@corral/resources'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hasPhase, isReady, type NodeUnderTest, nodeUnderTest, text } from './node-under-test.js'

const shell = (script: string) => ({ name: 'main', image: 'busybox', command: ['sh', '-c', script] })
const forever = 'trap "exit 0" TERM; while :; do sleep 0.1; done'
const at = (name: string) => ({ namespace: 'default', name })

describe('what a pod may ask for', () => {
  let node: NodeUnderTest
  beforeAll(async () => {
    const images = { 'corral/daemon': { argv: ['sh', '-c', 'echo "image $MODE $0"; exit 0'], env: { MODE: 'daemon' } } }
    node = await nodeUnderTest((dataDir) => bubblewrapIsolation({ dataDir }), { images, upkeepMs: 100 })
  })
  afterAll(() => node?.[Symbol.asyncDispose]())

  it('runs what an image of the platform stands for, whatever its tag', async () => {
    await node.create('image', {
      restartPolicy: 'Never',
      containers: [{ name: 'main', image: 'corral/daemon:v1', args: ['arg'] }],
    })
    await node.until('image', hasPhase('Succeeded'))
    expect(await node.logs('image')).toBe('image daemon arg\n')
    expect((await node.events('image')).map((event) => event.reason)).not.toContain('ImageMapped')
  })

  it('calls postStart before the container counts as started, and preStop before it ends', async () => {
    await node.create('hooked', {
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'hooks' } }],
      containers: [
        {
          ...shell(forever),
          volumeMounts: [{ name: 'v', mountPath: '/v' }],
          lifecycle: {
            postStart: { exec: { command: ['sh', '-c', 'echo post >> /v/order'] } },
            preStop: { exec: { command: ['sh', '-c', 'echo pre >> /v/order'] } },
          },
        },
      ],
    })
    await node.client.create(PersistentVolumeClaims, {
      metadata: at('hooks'),
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    })
    await node.until('hooked', isReady)
    expect((await node.run('hooked', ['cat', '/v/order'])).stdout).toBe('post\n')
    await node.client.delete(Pods, at('hooked'))
    await node.untilGone('hooked')
    await node.create('after', {
      restartPolicy: 'Never',
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'hooks' } }],
      containers: [{ ...shell('cat /v/order'), volumeMounts: [{ name: 'v', mountPath: '/v', readOnly: true }] }],
    })
    await node.until('after', hasPhase('Succeeded'))
    expect(await node.logs('after')).toBe('post\npre\n')
  })

  it('kills what does not heed SIGTERM after the grace period', async () => {
    await node.create('stubborn', {
      terminationGracePeriodSeconds: 1,
      containers: [shell('trap "" TERM; while :; do sleep 0.1; done')],
    })
    await node.until('stubborn', isReady)
    await node.client.delete(Pods, at('stubborn'))
    await node.untilGone('stubborn')
  })

  it('reports a container the kernel ended for its memory', async () => {
    const hog = 'const kept = []; for (;;) kept.push(Buffer.alloc(1 << 20, 1))'
    await node.create('hog', {
      restartPolicy: 'Never',
      containers: [
        { name: 'main', image: 'node', command: ['node', '-e', hog], resources: { limits: { memory: '96Mi' } } },
      ],
    })
    const pod = await node.until('hog', hasPhase('Failed'))
    expect(pod.status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({ reason: 'OOMKilled', exitCode: 137 })
  })

  it('refreshes mounted ConfigMaps and keeps one file mounted by sub-path', async () => {
    await node.client.create(ConfigMaps, { metadata: at('live'), data: { v: 'one' } })
    await node.create('live', {
      volumes: [{ name: 'c', configMap: { name: 'live' } }],
      containers: [
        {
          ...shell(forever),
          volumeMounts: [
            { name: 'c', mountPath: '/c' },
            { name: 'c', mountPath: '/single', subPath: 'v' },
          ],
        },
      ],
    })
    await node.until('live', isReady)
    expect((await node.run('live', ['cat', '/c/v', '/single'])).stdout).toBe('oneone')
    await node.client.patch(ConfigMaps, at('live'), { type: 'merge', body: { data: { v: 'two' } } })
    await expect.poll(async () => (await node.run('live', ['cat', '/c/v'])).stdout).toBe('two')
  })

  it('evicts a pod that fills its emptyDir beyond the limit', async () => {
    await node.create('full-disk', {
      volumes: [{ name: 'v', emptyDir: { sizeLimit: '1Mi' } }],
      containers: [
        { ...shell(`head -c 3000000 /dev/zero > /v/f; ${forever}`), volumeMounts: [{ name: 'v', mountPath: '/v' }] },
      ],
    })
    const pod = await node.until('full-disk', hasPhase('Failed'))
    expect(pod.status).toMatchObject({
      reason: 'Evicted',
      message: 'Usage of EmptyDir volume "v" exceeds the limit "1Mi".',
    })
  })

  it('keeps a memory volume within its size', async () => {
    await node.create('ram', {
      restartPolicy: 'Never',
      volumes: [{ name: 'v', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }],
      containers: [
        { ...shell('head -c 3000000 /dev/zero > /ram/f'), volumeMounts: [{ name: 'v', mountPath: '/ram' }] },
      ],
    })
    await node.until('ram', hasPhase('Failed'))
    expect(await node.logs('ram')).toContain('No space left on device')
  })

  it('says in an event what a network policy asks for beyond what it does', async () => {
    await node.client.create(NetworkPolicies, {
      metadata: at('open'),
      spec: { podSelector: { matchLabels: { net: 'open' } }, policyTypes: ['Egress'], egress: [{}] },
    })
    await node.create('policed', { containers: [shell(forever)] }, { labels: { net: 'open' } })
    await expect
      .poll(() => node.events('policed'))
      .toContainEqual({
        type: 'Warning',
        reason: 'NetworkPolicyNotEnforced',
        message: expect.stringContaining('"open" allows egress'),
      })
  })

  it('refuses an egress annotation it cannot read', async () => {
    await node.create('typo', { containers: [shell('true')] }, { annotations: { 'corral.dev/egress': 'example.com' } })
    const pod = await node.until('typo', hasPhase('Failed'))
    expect(pod.status).toMatchObject({
      reason: 'InvalidEgress',
      message: expect.stringContaining('"example.com" is neither "packages" nor HOST:PORT'),
    })
  })

  it('runs nobody as root where the pod forbids it', async () => {
    await node.create('root', {
      containers: [{ ...shell('id -u'), securityContext: { runAsUser: 0, runAsNonRoot: true } }],
    })
    const pod = await node.until(
      'root',
      (it) => it.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CreateContainerConfigError',
    )
    expect(pod.status?.containerStatuses?.[0]?.state?.waiting?.message).toContain('non-root policy')
  })

  it('keeps a read-only root read-only', async () => {
    await node.create('readonly', {
      restartPolicy: 'Never',
      containers: [
        {
          ...shell('touch /x 2>/dev/null && echo open || echo closed; touch /tmp/y && echo tmp'),
          securityContext: { readOnlyRootFilesystem: true },
        },
      ],
    })
    await node.until('readonly', hasPhase('Succeeded'))
    expect(await node.logs('readonly')).toBe('closed\ntmp\n')
  })

  it('gives each container its own mounts and all of them one network', async () => {
    await node.client.create(Secrets, { metadata: at('only-one'), data: { k: Buffer.from('x').toString('base64') } })
    const server = `require('net').createServer((s) => s.end('hi')).listen(7777)`
    await node.create('pair', {
      restartPolicy: 'Never',
      volumes: [{ name: 's', secret: { secretName: 'only-one' } }],
      initContainers: [
        {
          name: 'server',
          image: 'node',
          restartPolicy: 'Always',
          command: ['node', '-e', server],
          volumeMounts: [{ name: 's', mountPath: '/s' }],
          startupProbe: { tcpSocket: { port: 7777 }, periodSeconds: 1 },
        },
      ],
      containers: [
        {
          name: 'main',
          image: 'node',
          command: [
            'node',
            '-e',
            `console.log(require('fs').existsSync('/s')); require('net').connect(7777, '127.0.0.1').pipe(process.stdout)`,
          ],
        },
      ],
    })
    await node.until('pair', hasPhase('Succeeded'))
    expect(await node.logs('pair', 'main')).toBe('false\nhi')
  })

  it('answers logs: followed to the end, the last lines, the run before', async () => {
    await node.create('talker', {
      restartPolicy: 'Never',
      containers: [shell('for i in 1 2 3; do echo line $i; sleep 0.1; done')],
    })
    await node.until('talker', (pod) => pod.status?.phase !== 'Pending')
    expect(await text(node.client.logs(at('talker'), { follow: true }))).toBe('line 1\nline 2\nline 3\n')
    expect(await text(node.client.logs(at('talker'), { tailLines: 1 }))).toBe('line 3\n')
    const stamped = await text(node.client.logs(at('talker'), { tailLines: 1, timestamps: true }))
    expect(stamped).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(Z|[+-]\d\d:\d\d) line 3\n$/)

    await node.create('twice', { containers: [shell('echo run; exit 1')] })
    await node.until('twice', (pod) => pod.status?.containerStatuses?.[0]?.restartCount === 1)
    expect(await text(node.client.logs(at('twice'), { previous: true }))).toBe('run\n')
  })

  it('attaches to the main process', async () => {
    await node.create('echoing', {
      restartPolicy: 'Never',
      containers: [{ ...shell('read line; echo "got $line"'), stdin: true }],
    })
    await node.until('echoing', isReady)
    const attached = await node.client.attach(at('echoing'), { stdin: true })
    const output = text(attached.stdout)
    await attached.writeStdin(Buffer.from('hello\n'))
    expect(await output).toBe('got hello\n')
    await node.until('echoing', hasPhase('Succeeded'))
  })

  it('writes a pod’s status only when it changes', async () => {
    await node.create('quiet', { containers: [shell(forever)] })
    await node.until('quiet', isReady)
    const body = { metadata: { annotations: { note: 'changed' } } }
    const patched = await node.client.patch(Pods, at('quiet'), { type: 'merge', body })
    // By the time a later pod is ready, the node has long seen the change.
    await node.create('fence', { containers: [shell(forever)] })
    await node.until('fence', isReady)
    const after = await node.client.get(Pods, at('quiet'))
    expect(after.metadata.resourceVersion).toBe(patched.metadata.resourceVersion)
  })
})

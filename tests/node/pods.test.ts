import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { bubblewrapIsolation } from '@corral/node'
import { ConfigMaps, Leases, Nodes, PersistentVolumeClaims, Pods, Secrets } from '@corral/resources'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { condition, hasPhase, isReady, type NodeUnderTest, nodeName, nodeUnderTest, text } from './node-under-test.js'

const shell = (script: string) => ({ name: 'main', image: 'busybox', command: ['sh', '-c', script] })
const forever = 'trap "exit 0" TERM; while :; do sleep 0.1; done'

describe('pods on a node', () => {
  let node: NodeUnderTest
  beforeAll(async () => {
    node = await nodeUnderTest((dataDir) => bubblewrapIsolation({ dataDir }))
  })
  afterAll(() => node?.[Symbol.asyncDispose]())

  it('registers the node, ready, with its isolation and a lease', async () => {
    const object = await node.client.get(Nodes, { name: nodeName })
    expect(object.metadata.labels).toMatchObject({ 'corral.dev/isolation': 'bubblewrap' })
    expect(object.status?.conditions?.find((entry) => entry.type === 'Ready')?.status).toBe('True')
    expect(Number(object.status?.allocatable?.cpu)).toBeGreaterThan(0)
    const lease = await node.client.get(Leases, { namespace: 'kube-node-lease', name: nodeName })
    expect(lease.spec?.holderIdentity).toBe(nodeName)
  })

  it('runs a command with its environment, arguments and volumes, and keeps its output', async () => {
    await node.client.create(ConfigMaps, {
      metadata: { namespace: 'default', name: 'settings' },
      data: { color: 'blue', 'a.conf': 'x=1' },
    })
    await node.client.create(Secrets, {
      metadata: { namespace: 'default', name: 'keys' },
      data: { token: Buffer.from('s3cret').toString('base64') },
    })
    await node.create('full', {
      restartPolicy: 'Never',
      volumes: [
        { name: 'work', emptyDir: {} },
        { name: 'conf', configMap: { name: 'settings', items: [{ key: 'a.conf', path: 'deep/a.conf' }] } },
        { name: 'keys', secret: { secretName: 'keys', defaultMode: 0o400 } },
        { name: 'about', downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
      ],
      containers: [
        {
          name: 'main',
          image: 'any/image:1',
          command: [
            'sh',
            '-c',
            'echo "$1 $COLOR $GREETING $TOKEN $POD"; cat /conf/deep/a.conf /about/name; echo done > /work/out; pwd; cat /work/out; echo oops >&2; exit 3',
          ],
          args: ['sh', 'arg-$(COLOR)'],
          workingDir: '/work',
          env: [
            { name: 'COLOR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'color' } } },
            { name: 'GREETING', value: 'hello-$(COLOR)' },
            { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'keys', key: 'token' } } },
            { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          ],
          volumeMounts: [
            { name: 'work', mountPath: '/work' },
            { name: 'conf', mountPath: '/conf' },
            { name: 'keys', mountPath: '/keys' },
            { name: 'about', mountPath: '/about' },
          ],
        },
      ],
    })
    const pod = await node.until('full', hasPhase('Failed'))
    expect(await node.logs('full')).toBe('arg-blue blue hello-blue s3cret full\nx=1full/work\ndone\noops\n')
    expect(pod.status?.containerStatuses?.[0]).toMatchObject({
      ready: false,
      restartCount: 0,
      state: { terminated: { exitCode: 3, reason: 'Error' } },
    })
    expect(pod.status?.qosClass).toBe('BestEffort')
    expect((await node.events('full')).map((event) => event.reason)).toContain('ImageMapped')
  })

  it('becomes ready when its readiness probe answers, takes exec, and ends within its grace period', async () => {
    const server = `require('http').createServer((_, response) => response.end('ok')).listen(8080)`
    await node.create('probed', {
      containers: [
        {
          name: 'main',
          image: 'node',
          command: ['node', '-e', `${server}; process.on('SIGTERM', () => process.exit(0))`],
          ports: [{ name: 'web', containerPort: 8080 }],
          readinessProbe: { httpGet: { port: 'web', path: '/healthz' } },
        },
      ],
    })
    const pod = await node.until('probed', isReady)
    expect(pod.status?.podIP).toMatch(/^100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\./)
    expect(pod.status?.phase).toBe('Running')
    expect(pod.status?.containerStatuses?.[0]).toMatchObject({ ready: true, started: true, state: { running: {} } })
    const result = await node.run('probed', ['sh', '-c', 'echo out; echo err >&2; exit 7'])
    expect(result).toEqual({ exitCode: 7, stdout: 'out\n', stderr: 'err\n' })
    const connection = await node.client.portForward({ namespace: 'default', name: 'probed' }, 8080)
    await connection.write(Buffer.from('GET / HTTP/1.0\r\n\r\n'))
    expect(await text(connection)).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*ok$/)
    const { uid } = pod.metadata
    await node.client.delete(Pods, { namespace: 'default', name: 'probed' })
    await node.untilGone('probed')
    await expect.poll(() => existsSync(join(node.dataDir, 'pods', uid))).toBe(false)
  })

  it('runs init containers one after another, then sidecars beside the main container', async () => {
    const step = (name: string, script: string) => ({
      ...shell(script),
      name,
      volumeMounts: [{ name: 'v', mountPath: '/v' }],
    })
    await node.create('ordered', {
      restartPolicy: 'Never',
      volumes: [{ name: 'v', emptyDir: {} }],
      initContainers: [
        step('one', 'echo one >> /v/order'),
        { ...step('side', `echo side >> /v/order; ${forever}`), restartPolicy: 'Always' },
        step('two', 'while ! grep -q side /v/order; do sleep 0.05; done; echo two >> /v/order'),
      ],
      containers: [step('main', 'echo main >> /v/order; cat /v/order')],
    })
    const pod = await node.until('ordered', hasPhase('Succeeded'))
    expect(await node.logs('ordered', 'main')).toBe('one\nside\ntwo\nmain\n')
    expect(pod.status?.initContainerStatuses?.map((status) => status.state?.terminated?.reason)).toEqual([
      'Completed',
      expect.any(String),
      'Completed',
    ])
  })

  it('restarts a failing container at once, then backs off', async () => {
    await node.create('crashing', { containers: [shell('echo attempt; exit 1')] })
    const pod = await node.until(
      'crashing',
      (it) => it.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CrashLoopBackOff',
    )
    expect(pod.status?.phase).toBe('Running')
    expect(pod.status?.containerStatuses?.[0]).toMatchObject({
      restartCount: 1,
      lastState: { terminated: { exitCode: 1, reason: 'Error' } },
    })
    expect(condition(pod, 'Ready')).toBe('False')
    await expect.poll(async () => (await node.events('crashing')).map((event) => event.reason)).toContain('BackOff')
    await node.client.delete(Pods, { namespace: 'default', name: 'crashing' })
    await node.untilGone('crashing')
  })

  it('restarts a container whose liveness probe fails', async () => {
    await node.create('sick', {
      containers: [
        { ...shell(forever), livenessProbe: { exec: { command: ['false'] }, periodSeconds: 1, failureThreshold: 1 } },
      ],
    })
    await node.until('sick', (it) => (it.status?.containerStatuses?.[0]?.restartCount ?? 0) > 0)
    expect((await node.events('sick')).map((event) => event.reason)).toEqual(
      expect.arrayContaining(['Unhealthy', 'Killing']),
    )
    await node.client.delete(Pods, { namespace: 'default', name: 'sick' }, { gracePeriodSeconds: 0 })
    await node.untilGone('sick')
  })

  it('fails a pod that outlives its deadline', async () => {
    await node.create('late', { activeDeadlineSeconds: 1, containers: [shell(forever)] })
    const pod = await node.until('late', hasPhase('Failed'))
    expect(pod.status?.reason).toBe('DeadlineExceeded')
  })

  it('reports the message a container leaves behind', async () => {
    await node.create('message', {
      restartPolicy: 'Never',
      containers: [shell('echo -n because > /dev/termination-log; exit 2')],
    })
    const pod = await node.until('message', hasPhase('Failed'))
    expect(pod.status?.containerStatuses?.[0]?.state?.terminated?.message).toBe('because')
  })

  it('refuses what it cannot do, by name', async () => {
    await node.create('greedy', { hostNetwork: true, containers: [shell('true')] })
    const pod = await node.until('greedy', hasPhase('Failed'))
    expect(pod.status).toMatchObject({
      reason: 'UnsupportedField',
      message: expect.stringContaining('spec.hostNetwork'),
    })
    await expect
      .poll(() => node.events('greedy'))
      .toContainEqual({
        type: 'Warning',
        reason: 'UnsupportedField',
        message: expect.stringContaining('spec.hostNetwork'),
      })
  })

  it('waits with a reason for what is missing, and goes on when it is there', async () => {
    await node.create('waiting', {
      restartPolicy: 'Never',
      containers: [
        { ...shell('echo $K'), env: [{ name: 'K', valueFrom: { secretKeyRef: { name: 'later', key: 'k' } } }] },
      ],
    })
    const pod = await node.until(
      'waiting',
      (it) => it.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CreateContainerConfigError',
    )
    expect(pod.status?.phase).toBe('Pending')
    await node.client.create(Secrets, {
      metadata: { namespace: 'default', name: 'later' },
      data: { k: Buffer.from('now').toString('base64') },
    })
    await node.until('waiting', hasPhase('Succeeded'))
    expect(await node.logs('waiting')).toBe('now\n')
  })

  it('refuses a container without a command on an image it does not know', async () => {
    await node.create('empty', { containers: [{ name: 'main', image: 'nginx' }] })
    const pod = await node.until(
      'empty',
      (it) => it.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CreateContainerConfigError',
    )
    expect(pod.status?.containerStatuses?.[0]?.state?.waiting?.message).toContain(
      'no command specified for image "nginx"',
    )
  })

  it('binds a claim to a directory that outlives the pod', async () => {
    const claim = {
      metadata: { namespace: 'default', name: 'data' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    }
    const stored = await node.client.create(PersistentVolumeClaims, claim)
    const spec = (script: string) => ({
      restartPolicy: 'Never',
      volumes: [{ name: 'd', persistentVolumeClaim: { claimName: 'data' } }],
      containers: [{ ...shell(script), volumeMounts: [{ name: 'd', mountPath: '/data', subPath: 'below' }] }],
    })
    await node.create('writer', spec('echo kept > /data/f'))
    await node.until('writer', hasPhase('Succeeded'))
    await node.client.delete(Pods, { namespace: 'default', name: 'writer' })
    await node.untilGone('writer')
    await node.create('reader', spec('cat /data/f; echo more >> /data/f'))
    await node.until('reader', hasPhase('Succeeded'))
    expect(await node.logs('reader')).toBe('kept\n')
    const bound = await node.client.get(PersistentVolumeClaims, { namespace: 'default', name: 'data' })
    expect(bound.status?.phase).toBe('Bound')
    await node.client.delete(Pods, { namespace: 'default', name: 'reader' })
    await node.client.delete(PersistentVolumeClaims, { namespace: 'default', name: 'data' })
    await expect.poll(() => existsSync(join(node.dataDir, 'volumes', stored.metadata.uid))).toBe(false)
  })

  it('S0-C14 S0-C16 S0-C17 S0-C18: runs a pod with the limits and probe of the proof of concept', async () => {
    await node.create('poc', {
      restartPolicy: 'Never',
      securityContext: { runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000, runAsNonRoot: true },
      containers: [
        {
          name: 'runner',
          image: 'poc/runner',
          command: ['sh', '-c', `id -u; touch /tmp/up; ${forever}`],
          ports: [{ containerPort: 8888, protocol: 'TCP' }],
          readinessProbe: { exec: { command: ['test', '-e', '/tmp/up'] }, initialDelaySeconds: 2, periodSeconds: 5 },
          resources: { requests: { memory: '64Mi', cpu: '50m' }, limits: { memory: '128Mi', cpu: '200m' } },
        },
      ],
    })
    const pod = await node.until('poc', isReady)
    expect(pod.status?.qosClass).toBe('Burstable')
    expect(await node.logs('poc')).toBe('1000\n')
  })
})

import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { clientNodeExec, clientNodeForward } from '../clients/client-node.js'
import { runPython } from '../clients/python.js'
import { type Check, check } from '../harness/check.js'
import type { Context } from '../harness/context.js'
import { forward } from '../harness/forwarding.js'
import { plainGet } from '../harness/http-client.js'
import { anyKubectl, kubectlPath, type RunResult } from '../harness/kubectl.js'
import { pod } from '../harness/objects.js'
import { runningPod, scripted, untilPhase } from '../harness/running-pod.js'

const spdy = '1.28'
const options = { heavy: true, needsNode: true }
const exec = async (t: Context, version: string, args: string[], input?: string | Uint8Array): Promise<RunResult> =>
  t.kubectl(version, ['-n', await t.ns(), 'exec', ...args], input === undefined ? {} : { input })

/** A kubectl in the middle of a stream: what it says has begun to match, with input written to it again and again. */
async function talking(
  t: Context,
  version: string,
  args: readonly string[],
  wanted: RegExp,
): Promise<{ said(): string; vanish(): Promise<void> }> {
  const child = spawn(kubectlPath(version), ['-n', await t.ns(), ...args], {
    env: t.kubectlEnv(),
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      said += chunk.toString()
    })
  }
  child.stdin.on('error', () => {})
  const closed = new Promise((resolve) => child.once('close', resolve))
  const vanish = async (): Promise<void> => {
    child.kill('SIGKILL')
    await closed
  }
  t.after(vanish)
  await t.eventually(`kubectl ${version} ${args.join(' ')} says ${wanted.source}`, async () => {
    // What is written before the stream exists is not heard.
    child.stdin.write('ping\n')
    await new Promise((resolve) => setTimeout(resolve, 50))
    if (!wanted.test(said) && child.exitCode !== null) throw new Error(`it ended: ${said}`)
    return wanted.test(said)
  })
  return { said: () => said, vanish }
}

export const streaming: readonly Check[] = [
  check(
    115,
    'exec: exit codes, output and errors apart; kubectl 1.28 and 1.33, client-node, Python',
    async (t) => {
      await runningPod(t, 'one')
      const script = 'echo out; echo err >&2; exit 3'
      for (const version of [spdy, anyKubectl]) {
        const result = await exec(t, version, ['one', '--', 'sh', '-c', script])
        deepEqual([result.code, result.out], [3, 'out\n'], version)
        // kubectl also says what it could not discover: the CRD of another check that goes away just then.
        match(result.err.replaceAll(/^E\d{4} .*memcache\.go.*\n/gm, ''), /^err\n/)
        equal((await exec(t, version, ['one', '--', 'true'])).code, 0)
      }
      const namespace = await t.ns()
      deepEqual(await clientNodeExec(t.server.kubeconfig, namespace, 'one', ['sh', '-c', script]), {
        code: 3,
        out: 'out\n',
        err: 'err\n',
      })
      equal((await runPython(t, 'execute', [namespace, 'one'])).out.trim(), 'out|err|3')
    },
    options,
  ),
  check(
    116,
    'exec: the end of input ends cat, over WebSocket v5 and SPDY',
    async (t) => {
      await runningPod(t, 'one')
      const input = randomBytes(1_000_000)
      for (const version of [spdy, anyKubectl]) {
        const result = await exec(t, version, ['-i', 'one', '--', 'cat'], input)
        ok(result.bytes.equals(input), `${version}: ${result.bytes.length} bytes`)
        equal(result.code, 0)
      }
    },
    options,
  ),
  check(
    117,
    'exec -t: a terminal of the size the client has, errors merged into output',
    async (t) => {
      await runningPod(t, 'one')
      const size = await clientNodeExec(
        t.server.kubeconfig,
        await t.ns(),
        'one',
        // The size is told after the start, so the first one seen may be the default.
        [
          'sh',
          '-c',
          'for i in $(seq 100); do case "$(stty size)" in 33*) break; esac; sleep 0.1; done; stty size; echo err >&2; tty',
        ],
        { tty: true, rows: 33, columns: 111 },
      )
      match(size.out, /33 111/)
      match(size.out, /err/)
      match(size.out, /\/dev\/(pts|console)/)
      equal(size.err, '')
    },
    options,
  ),
  check(
    118,
    'exec in a pod or container that is not there is an HTTP error',
    async (t) => {
      await runningPod(t, 'one')
      const url = async (name: string, query: string): Promise<string> =>
        `${await t.core('pods', name)}/exec?${query}command=true&stdout=1`
      const upgrade = { connection: 'Upgrade', upgrade: 'SPDY/3.1', 'x-stream-protocol-version': 'v4.channel.k8s.io' }
      const missing = (await t.call('POST', await url('none', ''), { headers: upgrade })).is(404)
      deepEqual([missing.message, missing.details], ['pods "none" not found', { name: 'none', kind: 'pods' }])
      const container = (await t.call('POST', await url('one', 'container=none&'), { headers: upgrade })).is(400)
      match(container.message, /container none is not valid for pod one/)
      const result = await exec(t, anyKubectl, ['none', '--', 'true'])
      match(result.err, /pods "none" not found/)
      await t.create(await t.core('pods'), pod('free'))
      match(
        (await t.call('POST', await url('free', ''), { headers: upgrade })).is(400, 500).message,
        /does not have a host assigned/,
      )
    },
    options,
  ),
  check(
    119,
    'kubectl cp carries ten megabytes in and back out',
    async (t) => {
      await runningPod(t, 'one')
      const [from, back] = [join(t.directory(), 'from'), join(t.directory(), 'back')]
      const bytes = randomBytes(10_000_000)
      writeFileSync(from, bytes)
      await t.ok(anyKubectl, ['cp', from, 'one:/tmp/there'])
      await t.ok(anyKubectl, ['cp', 'one:/tmp/there', back])
      ok(readFileSync(back).equals(bytes))
    },
    options,
  ),
  check(
    120,
    'attach to a running process; letting go leaves it running',
    async (t) => {
      await runningPod(t, 'one')
      const client = await talking(t, anyKubectl, ['attach', '-i', 'one'], /got ping/)
      await client.vanish()
      equal((await exec(t, anyKubectl, ['one', '--', 'true'])).code, 0)
      equal((await untilPhase(t, 'one', 'Running')).metadata.name, 'one')
    },
    options,
  ),
  check(
    121,
    'logs: tail, since, timestamps, previous; follow ends with the container',
    async (t) => {
      const script = 'echo one; echo two; echo three; sleep 1; echo four'
      await runningPod(t, 'web')
      const { nodeName } = t.server
      await t.create(await t.core('pods'), {
        metadata: { name: 'job' },
        spec: { ...scripted(script, { restartPolicy: 'Never' }), nodeName },
      })
      const log = async (name: string, query = ''): Promise<string> =>
        (await t.get(`${await t.core('pods', name)}/log${query}`)).text
      await t.eventually('started', async () => (await log('job')).startsWith('one'))
      equal(await log('job', '?follow=true'), 'one\ntwo\nthree\nfour\n')
      await untilPhase(t, 'job', 'Succeeded')
      equal(await log('job', '?tailLines=2'), 'three\nfour\n')
      equal(await log('job', '?limitBytes=5'), 'one\nt')
      match(
        await log('job', '?timestamps=true&tailLines=1'),
        /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(Z|[+-]\d\d:\d\d) four\n$/,
      )
      equal(await log('job', '?sinceTime=2099-01-01T00:00:00Z'), '')
      ;(await t.get(`${await t.core('pods', 'job')}/log?sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z`)).is(422, 400)
      equal((await t.get(`${await t.core('pods', 'job')}/log?previous=true`)).status, 400)
      match(await t.ok(anyKubectl, ['logs', 'web', '--tail=1']), /^second line\n$/)
      const response = await t.http.open('GET', `${await t.core('pods', 'web')}/log?follow=true`)
      await new Promise((resolve) => response.once('data', resolve))
      response.destroy()
    },
    options,
  ),
  check(
    122,
    'port-forward: pod and service, many connections, large bodies; kubectl 1.28, 1.31, 1.33, client-node, Python',
    async (t) => {
      await runningPod(t, 'web')
      await t.create(await t.core('services'), {
        metadata: { name: 'web' },
        spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 'http' }] },
      })
      for (const [version, target, port, megabytes] of [
        [spdy, 'pod/web', 8080, 10],
        ['1.31', 'svc/web', 80, 10],
        [anyKubectl, 'pod/web', 8080, 50],
      ] as const) {
        const forwarding = await forward(t, version, target, port)
        const answers = await Promise.all(Array.from({ length: 20 }, () => plainGet(forwarding.port)))
        for (const { bytes } of answers) equal(bytes.toString(), 'hello from the pod', version)
        const size = megabytes * 1_000_000
        equal((await plainGet(forwarding.port, `/bytes/${size}`, 60_000)).bytes.length, size, version)
        await forwarding.stop()
      }
      const refused = await forward(t, anyKubectl, 'pod/web', 9)
      await plainGet(refused.port, '/', 10_000).catch(() => undefined)
      await t.eventually('refusal reported', async () => /refused|failed|error/i.test(refused.errors()))
      await refused.stop()
      equal(await clientNodeForward(t.server.kubeconfig, await t.ns(), 'web', 8080), 'hello from the pod')
      match((await runPython(t, 'forward', [await t.ns(), 'web'])).out, /hello from the pod/)
    },
    options,
  ),
  check(
    123,
    'the server survives clients that vanish in the middle of every kind of stream',
    async (t) => {
      await runningPod(t, 'one')
      for (const version of [spdy, anyKubectl]) {
        const clients = await Promise.all([
          talking(t, version, ['exec', '-i', 'one', '--', 'tee', '/dev/null'], /ping/),
          talking(t, version, ['attach', '-i', 'one'], /got ping/),
          talking(t, version, ['logs', '-f', 'one'], /first line/),
          talking(t, version, ['get', 'pods', '-w'], /one/),
          talking(t, version, ['port-forward', 'one', ':8080'], /Forwarding from 127\.0\.0\.1:\d+/),
        ])
        const port = Number(/127\.0\.0\.1:(\d+)/.exec(clients.at(-1)!.said())![1])
        const half = connect(port, '127.0.0.1')
        half.on('error', () => {})
        await new Promise((resolve) => half.write('GET /bytes/50000000 HTTP/1.1\r\nhost: pod\r\n\r\n', resolve))
        await new Promise((resolve) => half.once('data', resolve))
        half.pause()
        await Promise.all(clients.map(({ vanish }) => vanish()))
        half.destroy()
        await t.ok(version, ['exec', 'one', '--', 'true'])
        const running = ['exec', 'one', '--', 'sh', '-c', 'grep -lx tee /proc/[0-9]*/comm | wc -l']
        await t.eventually(
          'the command ends with its client',
          async () => (await t.ok(version, running)).trim() === '0',
        )
      }
      equal((await t.get('/readyz')).status, 200)
    },
    options,
  ),
]

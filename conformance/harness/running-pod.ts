import { Skipped } from './check.js'
import type { Context } from './context.js'
import type { KubeBody } from './kube-body.js'
import { at } from './kube-body.js'

/** Serves HTTP on 8080 (`/` a greeting, `/bytes/N` that many bytes), echoes its input, and writes two lines. */
const program = `
const http = require('node:http')
process.stdout.write('first line\\nsecond line\\n')
process.stdin.on('data', (chunk) => process.stdout.write('got ' + chunk))
http.createServer((request, response) => {
  const size = Number((/^.bytes.(\\d+)/.exec(request.url) || [])[1] || 0)
  response.end(size ? Buffer.alloc(size, 'x') : 'hello from the pod')
}).listen(8080, '127.0.0.1')
`

/** A pod on the suite's node that runs and answers. */
export async function runningPod(t: Context, name: string, spec: object = {}): Promise<KubeBody> {
  if (!t.server.nodeName) throw new Skipped('no node runs pods here')
  const container = {
    name: 'main',
    image: 'example/one:1',
    command: ['node', '-e', program],
    stdin: true,
    ports: [{ name: 'http', containerPort: 8080 }],
    // Running is not listening: without it a port-forward on a busy machine finds nothing there.
    readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
  }
  await t.create(await t.core('pods'), {
    metadata: { name, labels: { app: name } },
    spec: { nodeName: t.server.nodeName, terminationGracePeriodSeconds: 1, containers: [container], ...spec },
  })
  return untilPhase(t, name, 'Running')
}

export async function untilPhase(t: Context, name: string, phase: string): Promise<KubeBody> {
  const path = await t.core('pods', name)
  let last: KubeBody | undefined
  return t
    .eventually(
      `pod ${name} ${phase}`,
      async () => {
        last = (await t.get(path)).is(200)
        const isThere = at(last, 'status.phase') === phase
        const isReady = phase !== 'Running' || at(last, 'status.containerStatuses.0.ready') === true
        return isThere && isReady && last
      },
      240_000,
    )
    .catch((cause: unknown) => {
      throw new Error(`pod ${name} stays ${JSON.stringify(last?.status)}`, { cause })
    })
}

/** A pod that runs a shell script to its end or for ever. */
export const scripted = (script: string, more: object = {}): object => ({
  containers: [{ name: 'main', image: 'example/one:1', command: ['sh', '-c', script] }],
  ...more,
})

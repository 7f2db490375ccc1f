import { defaultManagerOptions, startManager } from '@corral/controllers'
import { Skipped } from './check.js'
import { type Context, mergePatch } from './context.js'
import { endpointGate, openEndpointGates } from './endpoint-gate.js'
import { at } from './kube-body.js'
import { remoteClient } from './kube-client.js'
import { extensions } from './objects.js'

/**
 * A sandbox runtime as upstream's SDKs expect it: commands and files over HTTP. It listens where their router would,
 * which in a cluster passes requests on to the sandbox; pods here cannot reach each other, so it is both.
 */
const runtime = `
const { spawn } = require('node:child_process')
const { mkdirSync, readFileSync, writeFileSync } = require('node:fs')
const http = require('node:http')
const home = '/tmp/runtime'
mkdirSync(home, { recursive: true })
const execute = (command, done) => {
  const child = spawn('sh', ['-c', command], { cwd: home })
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr']) child[name].on('data', (chunk) => { said[name] += chunk })
  child.on('close', (code) => done({ ...said, exit_code: code }))
}
http.createServer((request, response) => {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks)
    const json = (value) => response.setHeader('content-type', 'application/json').end(JSON.stringify(value))
    if (request.url === '/execute') return execute(JSON.parse(body).command, json)
    if (request.url === '/upload') {
      const text = body.toString('latin1')
      const [, name] = /filename="([^"]+)"/.exec(text)
      const start = text.indexOf('\\r\\n\\r\\n') + 4
      writeFileSync(home + '/' + name, body.subarray(start, text.lastIndexOf('\\r\\n--')))
      return json({ message: 'uploaded' })
    }
    if (request.url.startsWith('/download/')) return response.end(readFileSync(home + '/' + request.url.slice(10)))
    response.end('ok')
  })
}).listen(8080, '127.0.0.1')
`

/** Our controllers, a template with that runtime, a pool named `pool`, and the Service the SDKs make a tunnel to. */
export async function startSandboxPool(t: Context): Promise<void> {
  const { nodeName } = t.server
  if (!nodeName) throw new Skipped('no node runs pods here')
  const client = await remoteClient(t.server.kubeconfig)
  const manager = startManager({ client, options: defaultManagerOptions() })
  t.after(async () => {
    await manager.stop()
    await client.close()
  })
  await manager.ready
  const labels = { app: 'sandbox-router' }
  const container = {
    name: 'main',
    image: 'example/runtime:1',
    command: ['node', '-e', runtime],
    env: [{ name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
    ports: [{ containerPort: 8080 }],
    readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 },
  }
  await t.create(await t.group(extensions, 'sandboxtemplates'), {
    apiVersion: extensions,
    kind: 'SandboxTemplate',
    metadata: { name: 'runtime' },
    spec: {
      podTemplate: {
        metadata: { labels },
        spec: {
          nodeName,
          terminationGracePeriodSeconds: 1,
          containers: [container],
          readinessGates: [{ conditionType: endpointGate }],
        },
      },
    },
  })
  // No warm member yet: the tunnel leads to whatever pod the Service selects, which has to be the claimed one.
  await t.create(await t.group(extensions, 'sandboxwarmpools'), {
    apiVersion: extensions,
    kind: 'SandboxWarmPool',
    metadata: { name: 'pool' },
    spec: { replicas: 0, sandboxTemplateRef: { name: 'runtime' } },
  })
  await openEndpointGates(t)
  await t.create(await t.core('services'), {
    metadata: { name: 'sandbox-router-svc' },
    spec: { selector: labels, publishNotReadyAddresses: true, ports: [{ port: 8080, targetPort: 8080 }] },
  })
}

/** Fills the pool with one member and sees to it that no other pod will run; answers the member's pod. */
export async function warmSandboxPool(t: Context): Promise<string> {
  const pool = await t.group(extensions, 'sandboxwarmpools', 'pool')
  ;(await t.patch(pool, mergePatch, { spec: { replicas: 1 } })).is(200)
  await t.eventually('a member', async () => at((await t.get(pool)).is(200), 'status.readyReplicas') === 1, 240_000)
  const [member] = (await t.get(await t.core('pods'))).is(200).items
  // The pod that takes its place waits for a scheduler, so that the Service has one pod to lead to.
  const template = await t.group(extensions, 'sandboxtemplates', 'runtime')
  ;(await t.patch(template, mergePatch, { spec: { podTemplate: { spec: { nodeName: null } } } })).is(200)
  return member?.metadata.name ?? ''
}

/** Empties the pool. */
export async function coolSandboxPool(t: Context): Promise<void> {
  const pool = await t.group(extensions, 'sandboxwarmpools', 'pool')
  ;(await t.patch(pool, mergePatch, { spec: { replicas: 0 } })).is(200)
}

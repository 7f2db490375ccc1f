import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, symlinkSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { AgentSandboxClient, type OwnedSandbox } from '@corral/agent-sandbox-sdk'
import { kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import type { ByteStream } from '@corral/ports'
import { SandboxTemplates, SandboxWarmPools } from '@corral/resources'
import { findKubectl } from '@corral/testing'
import { judgePython } from '../conformance/clients/python.js'
import { Skipped } from '../conformance/harness/check.js'
import { part, progress, readBenchOptions } from './common/bench-options.js'
import { startCorral } from './common/corral-process.js'
import { Recorder } from './common/result-file.js'
import { median, percentile } from './common/samples.js'
import { withScratch } from './common/scratch.js'
import { until } from './common/until.js'

const namespace = 'corral'

/** The SDK against a running platform, over TLS like any client. */
async function main(): Promise<void> {
  const options = readBenchOptions()
  const recorder = new Recorder('sdk', options)
  await withScratch(async (directory) => {
    const dataDir = join(directory, 'data')
    mkdirSync(dataDir, { recursive: true, mode: 0o711 })
    const flags = ['--data-dir', dataDir, '--port', '0', '--api-port', '0', '--agent', 'command']
    const platform = await startCorral<{ kubeconfig: string }>(['up', ...flags], dataDir)
    const { kubeconfig } = platform.ready
    try {
      const bench = new SdkBench(recorder, kubeconfig, options.isFull)
      await part(options, 'exec', () => bench.roundTrips())
      await part(options, 'starts', () => bench.starts())
      await part(options, 'python', () => bench.python(directory))
      await part(options, 'bytes', () => bench.bytes())
      await part(options, 'handles', () => bench.handles())
    } finally {
      await platform.stop()
    }
  })
  recorder.finish()
}

class SdkBench {
  readonly #recorder: Recorder
  readonly #kubeconfig: string
  readonly #isFull: boolean
  #warmMs: number | undefined

  constructor(recorder: Recorder, kubeconfig: string, isFull: boolean) {
    this.#recorder = recorder
    this.#kubeconfig = kubeconfig
    this.#isFull = isFull
  }

  #client(): AgentSandboxClient {
    return new AgentSandboxClient({ kubeconfigPath: this.#kubeconfig, namespace })
  }

  async roundTrips(): Promise<void> {
    const rounds = this.#isFull ? 300 : 60
    await using client = this.#client()
    await using sandbox = await client.sandboxes.create({ pool: 'default' })
    const viaSdk: number[] = []
    const viaKubectl: number[] = []
    const writes: number[] = []
    for (let round = -5; round < rounds; round += 1) {
      const startedAt = performance.now()
      const { stdout } = await sandbox.exec(['/bin/echo', 'ready'])
      if (stdout !== 'ready\n') throw new Error(`unexpected output ${JSON.stringify(stdout)}`)
      if (round >= 0) viaSdk.push(performance.now() - startedAt)
    }
    for (let round = -5; round < rounds; round += 1) {
      const startedAt = performance.now()
      await sandbox.files.write('/tmp/small', zeros(1024))
      if (round >= 0) writes.push(performance.now() - startedAt)
    }
    for (let round = 0; round < (this.#isFull ? 30 : 8); round += 1) {
      const startedAt = performance.now()
      await kubectlExec(this.#kubeconfig, sandbox.name)
      viaKubectl.push(performance.now() - startedAt)
    }
    const p50 = median(viaSdk)
    record(this.#recorder, 'exec round trip p50', p50, 'ms', { atMost: 4 })
    record(this.#recorder, 'exec round trip p99', percentile(viaSdk, 0.99), 'ms')
    record(this.#recorder, 'write of a small file as a stream p50', median(writes), 'ms')
    record(this.#recorder, 'kubectl exec over exec, p50', median(viaKubectl) / p50, '×', { atLeast: 10 })
  }

  /**
   * A plain image is reached by the kubelet's exec, as `kubectl exec` reaches it: nothing but the sandbox itself has to start.
   * The default image also starts our daemon, a Node process, before it is Ready.
   */
  async starts(): Promise<void> {
    const rounds = this.#isFull ? 40 : 8
    const kube = kubeClientFromConfig(await loadKubeConfig({ path: this.#kubeconfig }))
    const containers = [{ name: 'main', image: 'debian', command: ['/bin/sleep', 'infinity'] }]
    const plain = { automountServiceAccountToken: false, enableServiceLinks: false, terminationGracePeriodSeconds: 0 }
    await kube.create(SandboxTemplates, {
      metadata: { name: 'plain', namespace },
      spec: { podTemplate: { spec: { ...plain, containers } } },
    })
    const cold = (name: string, template: string) =>
      kube.create(SandboxWarmPools, {
        metadata: { name, namespace },
        spec: { replicas: 0, sandboxTemplateRef: { name: template } },
      })
    await cold('plain', 'plain')
    await cold('cold', 'default')
    await using client = this.#client()
    for (const { pool, what, required } of [
      { pool: 'plain', what: 'cold', required: { atMost: 50 } },
      { pool: 'cold', what: 'cold with our daemon', required: {} },
      { pool: 'default', what: 'warm', required: {} },
    ]) {
      const samples: number[] = []
      const ready: number[] = []
      for (let round = -1; round < rounds; round += 1) {
        if (round % 10 === 0) progress(`${what} starts, ${round} of ${rounds}`)
        await until('every pool full', async () => {
          const { items } = await kube.list(SandboxWarmPools, { namespace })
          return items.every(({ spec, status }) => (status?.readyReplicas ?? 0) === spec.replicas)
        })
        await new Promise((resolve) => setTimeout(resolve, 150))
        const startedAt = performance.now()
        const sandbox = await client.sandboxes.create({ pool })
        const readyMs = performance.now() - startedAt
        for await (const _ of sandbox.exec(['/bin/echo', 'ready'])) break
        if (round >= 0) samples.push(performance.now() - startedAt)
        if (round >= 0) ready.push(readyMs)
        await sandbox.delete()
      }
      if (what === 'warm') this.#warmMs = median(samples)
      record(this.#recorder, `create to first output, ${what}, p50`, median(samples), 'ms', required)
      record(this.#recorder, `create to handle, ${what}, p50`, median(ready), 'ms')
    }
    await kube.close()
  }

  /** The same from a warm pool to the first output by upstream's Python client, over sandboxd's protocol, served by our daemon. */
  async python(directory: string): Promise<void> {
    const kubectl = findKubectl()
    const python = await judgePython().catch((error: unknown) => {
      if (!(error instanceof Skipped)) throw error
    })
    if (!python || !kubectl) return progress('upstream’s Python client is skipped: no Python or kubectl')
    const kube = kubeClientFromConfig(await loadKubeConfig({ path: this.#kubeconfig }))
    const metadata = { name: 'bench-sandboxd', namespace }
    const image = 'registry.k8s.io/agent-sandbox/sandboxd:v1.0.3'
    const readinessProbe = { httpGet: { path: '/v1/health', port: 8080 }, periodSeconds: 1 }
    const containers = [{ name: 'sandboxd', image, readinessProbe }]
    await kube.create(SandboxTemplates, { metadata, spec: { podTemplate: { spec: { containers } } } })
    const spec = { replicas: 2, sandboxTemplateRef: { name: metadata.name } }
    await kube.create(SandboxWarmPools, { metadata, spec })
    const isFull = async (): Promise<boolean> =>
      (await kube.get(SandboxWarmPools, metadata)).status?.readyReplicas === spec.replicas
    await until('the pool of sandboxd is full', isFull)
    const bin = join(directory, 'bin')
    mkdirSync(bin)
    symlinkSync(kubectl, join(bin, 'kubectl'))
    const env = { ...process.env, KUBECONFIG: this.#kubeconfig, PATH: `${bin}${delimiter}${process.env.PATH ?? ''}` }
    const script = join(import.meta.dirname, 'sdk-python.py')
    const { stdout } = await promisify(execFile)(python, [script, this.#isFull ? '20' : '6'], { env })
    const p50 = median(stdout.trim().split('\n').map(Number))
    record(this.#recorder, 'create to first output, warm, p50, Python client', p50, 'ms')
    if (this.#warmMs !== undefined)
      record(this.#recorder, 'Python client over SDK, warm', p50 / this.#warmMs, '×', { atLeast: 3 })
    await kube.delete(SandboxWarmPools, metadata)
    await kube.close()
  }

  async bytes(): Promise<void> {
    const bytes = (this.#isFull ? 1024 : 128) * 1024 * 1024
    await using client = this.#client()
    await using sandbox = await client.sandboxes.create({ pool: 'default' })
    const bare = await this.#bareSocket(sandbox, bytes)
    const output = await timed(async () => {
      let seen = 0
      for await (const chunk of sandbox.exec(['head', '-c', String(bytes), '/dev/zero']).stdout) seen += chunk.length
      if (seen !== bytes) throw new Error(`${seen} of ${bytes} bytes came`)
    })
    const up = await timed(() => sandbox.files.write('/tmp/large', zeros(bytes)))
    const down = await timed(async () => {
      let seen = 0
      for await (const chunk of sandbox.files.readStream('/tmp/large')) seen += chunk.length
      if (seen !== bytes) throw new Error(`${seen} of ${bytes} bytes came`)
    })
    const mb = bytes / 1e6
    record(this.#recorder, 'bare socket through the tunnel, down', mb / (bare.downMs / 1000), 'MB/s')
    record(this.#recorder, 'bare socket through the tunnel, up', mb / (bare.upMs / 1000), 'MB/s')
    record(this.#recorder, 'output stream over a bare socket', bare.downMs / output, '×', { atLeast: 0.5 })
    record(this.#recorder, 'upload time over a bare socket', up / bare.upMs, '×', { atMost: 1.5 })
    record(this.#recorder, 'download time over a bare socket', down / bare.downMs, '×', { atMost: 1.5 })
  }

  /** The same number of bytes through a port-forward with nothing of ours at either end. */
  async #bareSocket(sandbox: OwnedSandbox, bytes: number): Promise<{ downMs: number; upMs: number }> {
    const script = `const net=require('net');const b=Buffer.alloc(65536);
net.createServer(s=>{s.on('error',()=>{});let n=${bytes};const f=()=>{while(n>0){n-=b.length;if(!s.write(b)){s.once('drain',f);return}}s.end()};f()}).listen(7001);
net.createServer(s=>{s.on('error',()=>{});let n=0;s.on('data',d=>{n+=d.length;if(n>=${bytes})s.end('x')})}).listen(7002)`
    await sandbox.processes.start({ id: 'bare', argv: ['node', '-e', script] })
    await sandbox.ports.waitForPort(7001)
    await sandbox.ports.waitForPort(7002)
    const kube = kubeClientFromConfig(await loadKubeConfig({ path: this.#kubeconfig }))
    const dial = (port: number): Promise<ByteStream> => kube.portForward({ name: sandbox.name, namespace }, port)
    const downMs = await timed(async () => {
      for await (const _ of await dial(7001)) {
        // Counted by the other side.
      }
    })
    const upMs = await timed(async () => {
      const stream = await dial(7002)
      for await (const chunk of zeros(bytes)) await stream.write(chunk)
      for await (const _ of stream) break
      stream.destroy()
    })
    await kube.close()
    return { downMs, upMs }
  }

  async handles(): Promise<void> {
    const count = 500
    await using client = this.#client()
    await using sandbox = await client.sandboxes.create({ pool: 'default' })
    const handles = []
    for (let index = 0; index < count; index += 1) {
      const handle = await client.sandboxes.get(sandbox.name)
      await handle.exec(['true'])
      handles.push(handle)
    }
    record(
      this.#recorder,
      `memory with ${count} handles, each with a line open`,
      process.memoryUsage().rss / 1e6,
      'MB',
      {
        atMost: 300,
      },
    )
    for (const handle of handles) handle.detach()
  }
}

interface Required {
  atMost?: number
  atLeast?: number
}

function record(recorder: Recorder, measure: string, value: number, unit: string, required: Required = {}): void {
  const { atMost, atLeast } = required
  const words =
    atMost !== undefined ? `<= ${atMost} ${unit}` : atLeast !== undefined ? `>= ${atLeast} ${unit}` : undefined
  const isMet = value <= (atMost ?? Number.POSITIVE_INFINITY) && value >= (atLeast ?? Number.NEGATIVE_INFINITY)
  recorder.row({ measure, unit, values: { sdk: value }, ...(words ? { required: words, isMet } : {}) })
}

async function kubectlExec(kubeconfig: string, pod: string): Promise<void> {
  const args = ['--kubeconfig', kubeconfig, '-n', namespace, 'exec', pod, '--', '/bin/echo', 'ready']
  const child = spawn('kubectl', args, { stdio: 'ignore' })
  const [code] = (await once(child, 'exit')) as [number]
  if (code !== 0) throw new Error(`kubectl exec ended with ${code}`)
}

async function* zeros(bytes: number): AsyncGenerator<Uint8Array> {
  const chunk = new Uint8Array(64 * 1024)
  for (let sent = 0; sent < bytes; sent += chunk.length) yield chunk
}

async function timed(call: () => Promise<void>): Promise<number> {
  const startedAt = performance.now()
  await call()
  return performance.now() - startedAt
}

await main()

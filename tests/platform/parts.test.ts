import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { get } from 'node:http'
import { request } from 'node:https'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { ensureCertificates } from '@corral/apiserver'
import { type KubeClient, kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { Nodes, Pods, Sandboxes, SandboxTemplates, SandboxWarmPools } from '@corral/resources'
import {
  corralProgram,
  type HostSnapshot,
  hostSnapshot,
  leftoversOf,
  type TemporaryDirectory,
  temporaryDirectory,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

/** Whichever version the PATH has. */
const kubectlProgram = 'kubectl'

describe('the parts, each a process of its own', () => {
  let scratch: TemporaryDirectory
  let before: HostSnapshot
  let kubeconfig: string
  let client: KubeClient
  let kubeletPort: number
  const children: { name: string; child: ChildProcess; exit: Promise<number | null> }[] = []

  const at = (...parts: string[]): string => join(scratch.path, ...parts)

  /** Starts a part and waits for its ready file, where it writes one. */
  async function start(name: string, args: string[], readyFile?: string): Promise<Record<string, unknown>> {
    const more = readyFile ? ['--ready-file', readyFile] : []
    const child = spawn(process.execPath, [corralProgram, name, ...args, ...more], {
      env: { PATH: process.env.PATH, HOME: at('home') },
      cwd: scratch.path,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    children.push({ name, child, exit: new Promise((resolve) => child.once('exit', resolve)) })
    if (!readyFile) return {}
    await waitUntil(`${name} is ready`, () => existsSync(readyFile))
    return JSON.parse(readFileSync(readyFile, 'utf8')) as Record<string, unknown>
  }

  beforeAll(async () => {
    before = hostSnapshot()
    scratch = temporaryDirectory()
    mkdirSync(at('home'))
    kubeletPort = await freePort()
    const quiet = ['--log-level', 'error']
    await ensureCertificates(at('node', 'tls'), ['127.0.0.1']) // an operator hands them out before anything starts
    const trust = ['--kubelet-certificate-authority', at('node', 'tls', 'ca.crt')]
    const api = await start('apiserver', ['--data-dir', at('api'), '--memory', ...trust, ...quiet], at('api.json'))
    kubeconfig = String(api.kubeconfig)
    client = kubeClientFromConfig(await loadKubeConfig({ path: kubeconfig }))
    const address = ['--metrics-bind-address=0', '--health-probe-bind-address=0', '--zap-log-level=error']
    await start('controller', ['--kubeconfig', kubeconfig, '--extensions', '--leader-elect=false', ...address])
    const place = ['--data-dir', at('node'), '--name', 'alone', '--kubelet-port', String(kubeletPort)]
    await start('node', ['--kubeconfig', kubeconfig, ...place, ...quiet], at('node.json'))
  })
  afterAll(async () => {
    await client?.close()
    for (const { child } of children) child.kill('SIGKILL')
    await scratch?.[Symbol.asyncDispose]()
  })

  /** Asks the node for the log of the pod, as an API server does. */
  const logOf = (pod: string, tls: object): Promise<string> =>
    new Promise((resolve, reject) => {
      const path = `/containerLogs/default/${pod}/main`
      request({ host: '127.0.0.1', port: kubeletPort, path, rejectUnauthorized: false, ...tls }, (response) => {
        let body = ''
        response.setEncoding('utf8').on('data', (chunk: string) => {
          body += chunk
        })
        response.on('end', () => resolve(`${response.statusCode} ${body}`))
      })
        .on('error', reject)
        .end()
    })

  it('S4-P1.2 S4-N1a: make a Sandbox run together', async () => {
    const containers = [{ name: 'main', image: 'corral/daemon' }]
    await client.create(Sandboxes, {
      metadata: { name: 'box', namespace: 'default' },
      spec: { podTemplate: { spec: { containers } } },
    })
    await waitUntil('the sandbox is ready', async () => {
      const { status } = await client.get(Sandboxes, { name: 'box', namespace: 'default' })
      return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True')
    })
    expect((await client.get(Pods, { name: 'box', namespace: 'default' })).spec?.nodeName).toBe('alone')
  })

  it('the node answers who shows a certificate of the cluster, and nobody else', async () => {
    const file = (name: string): string => readFileSync(at('api', 'tls', name), 'utf8')
    const admin = { cert: file('admin.crt'), key: file('admin.key') }
    await waitUntil('the log is there', async () => /^200 \{/.test(await logOf('box', admin)))
    // Told by an alert of TLS, or by the end of the connection where that came first.
    const closed = /certificate|ECONNRESET|hang up/i
    await expect(logOf('box', {})).rejects.toThrow(closed)
    const own = (name: string): string => readFileSync(at('node', 'tls', name), 'utf8')
    await expect(logOf('box', { cert: own('admin.crt'), key: own('admin.key') })).rejects.toThrow(closed)
  })

  const kubectl = (...args: string[]): Promise<{ code: number; out: string; err: string }> =>
    new Promise((resolve) => {
      const env = { PATH: process.env.PATH, HOME: at('home'), KUBECONFIG: kubeconfig }
      execFile(kubectlProgram, args, { env, timeout: 240_000 }, (error, out, err) =>
        resolve({ code: error ? Number(error.code ?? 1) : 0, out, err }),
      )
    })

  const corral = (...args: string[]): Promise<{ code: number; out: string; err: string }> =>
    new Promise((resolve) => {
      const env = { PATH: process.env.PATH, HOME: at('home') }
      execFile(process.execPath, [corralProgram, ...args], { env, timeout: 240_000 }, (error, out, err) =>
        resolve({ code: error ? Number(error.code ?? 1) : 0, out, err }),
      )
    })

  it('kubectl runs commands in the pod and reads its log, through the API server', async () => {
    const exec = await kubectl('exec', 'box', '--', 'sh', '-c', 'echo out; echo err >&2; exit 3')
    expect([exec.code, exec.out, exec.err.split('\n')[0]]).toEqual([3, 'out\n', 'err'])
    expect((await kubectl('logs', 'box', '--tail=1')).out).toMatch(/^\{.*\}\n$/)
    const unknown = await kubectl('exec', 'box', '-c', 'nobody', '--', 'true')
    expect([unknown.code, unknown.err]).toEqual([1, expect.stringContaining('container nobody is not valid')])
  })

  it('kubectl forwards a port of the pod, and says so where nobody listens', async () => {
    const port = await freePort()
    const args = ['--kubeconfig', kubeconfig, 'port-forward', 'box', `${port}:8888`, ':9']
    const forward = spawn(kubectlProgram, args, { env: { PATH: process.env.PATH, HOME: at('home') } })
    let said = ''
    for (const stream of [forward.stdout, forward.stderr])
      stream.on('data', (chunk: Buffer) => {
        said += String(chunk)
      })
    try {
      await waitUntil('kubectl listens', () => /127\.0\.0\.1:\d+ -> 9\n/.test(said))
      expect(await textAt(port)).toBe('200 ok')
      const closed = Number(/127\.0\.0\.1:(\d+) -> 9\n/.exec(said)?.[1])
      await expect(textAt(closed)).rejects.toThrow(/ECONNRESET|hang up/)
      await waitUntil('kubectl says why', () => /refused/.test(said))
    } finally {
      forward.kill('SIGKILL')
    }
  })

  it('a node that is gone is an error that names it, not an empty log', async () => {
    const { status } = await client.get(Nodes, { name: 'alone' })
    const deadPort = await freePort()
    const elsewhere = { ...status, daemonEndpoints: { kubeletEndpoint: { Port: deadPort } } }
    const publish = (body: object) =>
      client.patch(Nodes, { name: 'alone' }, { type: 'merge', body }, { subresource: 'status' })
    await publish({ status: elsewhere })
    const log = await kubectl('logs', 'box')
    expect([log.code, log.err]).toEqual([1, expect.stringContaining('ECONNREFUSED')])
    await publish({ status })
    expect((await kubectl('logs', 'box', '--tail=1')).code).toBe(0)
  })

  it('a server that only reconciles tells its health and figures without a token, and makes the defaults', async () => {
    const place = ['--kubeconfig', kubeconfig, '--data-dir', at('server'), '--broker-port', '0', '--log-level', 'error']
    const parts = ['--parts', 'controller', '--metrics-address', '127.0.0.1:0', '--warm', '0']
    const { metrics, url } = await start('server', [...place, ...parts], at('server.json'))
    expect(url).toBeUndefined()
    const ask = async (path: string): Promise<[number, string]> => {
      const answer = await fetch(new URL(path, String(metrics)))
      return [answer.status, await answer.text()]
    }
    expect(await ask('/healthz')).toEqual([200, 'ok'])
    expect(await ask('/readyz')).toEqual([200, 'ok'])
    expect(await ask('/metrics')).toEqual([200, expect.stringContaining('corral_tasks_created_total 0')])
    const { spec } = await client.get(SandboxTemplates, { name: 'default', namespace: 'corral' })
    expect(spec.podTemplate.spec?.dnsPolicy).toBe('ClusterFirst')
    await client.get(SandboxWarmPools, { name: 'default', namespace: 'corral' })
  })

  it('a drain of a namespace without tasks is a success', async () => {
    const drain = await corral('server', 'drain', '--kubeconfig', kubeconfig, '--json')
    expect([drain.code, JSON.parse(drain.out)]).toEqual([0, { drained: 0, forced: [], environments: 0 }])
  })

  it('a controller whose port is taken says which and by whom, and ends with 3', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as AddressInfo
    const address = [`--metrics-bind-address=127.0.0.1:${port}`, '--health-probe-bind-address=0']
    const ended = await corral('controller', '--kubeconfig', kubeconfig, '--leader-elect=false', ...address)
    await new Promise((resolve) => taken.close(resolve))
    expect(ended.code).toBe(3)
    expect(ended.err).toContain(`port ${port} is taken by process ${process.pid}`)
    expect(ended.err).not.toMatch(/ {4}at |ERR_HTTP2/)
  })

  it('S3-U4: end with exit code 0 when told to, and leave nothing behind', async () => {
    for (const { name, child, exit } of children.reverse()) {
      child.kill('SIGTERM')
      expect([name, await exit]).toEqual([name, 0])
    }
    expect(leftoversOf(at('node'), before)).toEqual([])
  })
})

function textAt(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: '/healthz', agent: false }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk
      })
      response.on('end', () => resolve(`${response.statusCode} ${body}`))
    }).on('error', reject)
  })
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

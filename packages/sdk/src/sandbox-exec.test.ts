import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KubeError, type KubeObject } from '@corral/resources'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AgentSandboxClient } from './agent-sandbox-client.js'
import { execArgv } from './exec-command.js'
import { TestCluster } from './test-cluster.test-suite.js'

let cluster: TestCluster
let client: AgentSandboxClient
let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'corral-sdk-'))
  cluster = new TestCluster()
  client = new AgentSandboxClient({ client: cluster.client(), namespace: 'default' })
  cluster.put('/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/s', {
    metadata: { name: 's', namespace: 'default', annotations: { 'agents.x-k8s.io/pod-name': 'adopted-pod' } },
    spec: { podTemplate: { spec: { containers: [{ name: 'sandbox', image: 'debian' }] } } },
  } as KubeObject)
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const podPath = '/api/v1/namespaces/default/pods/adopted-pod'
const startPod = (): void => {
  const status = { phase: 'Running' }
  cluster.put(podPath, { metadata: { name: 'adopted-pod', namespace: 'default' }, status } as KubeObject)
}
const exec = (script: string, options = {}) => client.sandboxes.exec({ name: 's' }, ['/bin/sh', '-c', script], options)

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
/** A command that leaves the pids of itself and of a child in a session of its own. */
const tree = () => `echo $$ >${directory}/parent; setsid sh -c 'echo $$ >${directory}/child; exec sleep 60' & sleep 60`
async function treePids(): Promise<number[]> {
  const read = async () => {
    const texts = await Promise.all(
      ['parent', 'child'].map((name) => readFile(join(directory, name), 'utf8').catch(() => '')),
    )
    return texts.every((text) => text.endsWith('\n')) ? texts.map(Number) : []
  }
  await expect.poll(read).toHaveLength(2)
  return read()
}

describe('S2-I5: exec', () => {
  it('S2-R1: returns output and exit code, and reaches the pod that was adopted', async () => {
    expect(await exec('echo out; echo err >&2; exit 3')).toEqual({ exitCode: 3, stdout: 'out\n', stderr: 'err\n' })
    expect(cluster.requests.at(-1)).toBe('CONNECT /api/v1/namespaces/default/pods/adopted-pod/exec')
  })

  it('passes stdin, directory and environment', async () => {
    const result = await exec('cat; pwd; echo "$WORD"', { stdin: 'in\n', cwd: '/usr', env: { WORD: "it's $HOME" } })
    expect(result.stdout).toBe("in\n/usr\nit's $HOME\n")
  })

  it('ends a command that takes too long, with everything it started', async () => {
    const running = exec(tree(), { timeoutMs: 1_500 })
    const failed = expect(running).rejects.toMatchObject({ code: 'Timeout' })
    const pids = await treePids()
    await failed
    await expect.poll(() => pids.map(isRunning)).toEqual([false, false])
  })

  it('ends a command that writes too much', async () => {
    await expect(exec('yes', { maxOutputBytes: 100_000 })).rejects.toMatchObject({ code: 'OutputLimitExceeded' })
  })

  it('ends a command whose caller went away', async () => {
    const stop = new AbortController()
    const running = exec(tree(), { signal: stop.signal })
    const failed = expect(running).rejects.toMatchObject({ code: 'Aborted' })
    const pids = await treePids()
    stop.abort()
    await failed
    await expect.poll(() => pids.map(isRunning)).toEqual([false, false])
  })

  describe('whose connection breaks', () => {
    /** What a client sees of a kubelet that goes away: output up to there, and no status. */
    const breakAfter = (...output: string[]): void => {
      const lost = 'the connection ended before the process did (close code 1006)'
      async function* stdout(): AsyncGenerator<Uint8Array> {
        for (const text of output) yield Buffer.from(text)
        throw new KubeError('ConnectionLost', lost)
      }
      const unused = (): void => {}
      cluster.connect = async ({ path }) => {
        if (!path.endsWith('/exec')) throw new KubeError('ConnectionLost', 'connection refused')
        const exited = Promise.resolve({ exitCode: 255, message: lost })
        const controls = { writeStdin: async () => {}, endStdin: unused, resize: unused, kill: unused }
        return { type: 'process', process: { stdout: stdout(), stderr: stdout(), exited, ...controls } }
      }
    }

    it('is ConnectionLost, not a command that ended with 255', async () => {
      breakAfter('half of the ')
      await expect(exec('make')).rejects.toMatchObject({
        code: 'ConnectionLost',
        message: expect.stringContaining('close code 1006'),
      })
    })

    it.each([
      { when: 'the sandbox is there', happen: () => startPod(), is: 'ConnectionLost' },
      { when: 'its pod is gone', happen: () => {}, is: 'SandboxFailed' },
      { when: 'it was deleted', happen: () => cluster.objects.clear(), is: 'SandboxDeleted' },
    ])('without a daemon is $is where $when', async ({ happen, is }) => {
      const sandbox = await client.sandboxes.get('s')
      breakAfter('half of the ')
      startPod()
      await sandbox.runtime()
      cluster.objects.delete(podPath)
      happen()
      await expect(Promise.resolve(sandbox.exec(['make']))).rejects.toMatchObject({ code: is })
    })
  })

  it('S2-R3 S2-R6: streams, and kill ends the remote tree and lets wait settle', async () => {
    const command = await client.sandboxes.execStream({ name: 's' }, ['/bin/sh', '-c', `echo up; ${tree()}`])
    for await (const chunk of command.stdout) {
      expect(Buffer.from(chunk).toString()).toBe('up\n')
      break
    }
    const pids = await treePids()
    await command.kill()
    expect((await command.wait()).exitCode).toBe(137)
    await expect.poll(() => pids.map(isRunning)).toEqual([false, false])
    await command.kill()
  })

  it.each([
    { what: 'nothing', wrapping: {}, argv: ['a', 'b c'] },
    { what: 'a variable', wrapping: { env: { X: '1' } }, argv: ['env', 'X=1', 'a', 'b c'] },
    { what: 'a marker', wrapping: { marker: 'm' }, argv: ['env', 'CORRAL_EXEC_ID=m', 'a', 'b c'] },
  ])('sends the command with $what as it should', ({ wrapping, argv }) => {
    expect(execArgv(['a', 'b c'], wrapping)).toEqual(argv)
  })
})

describe('a connection to the daemon', () => {
  let server: Server
  let connections = 0

  beforeEach(async () => {
    connections = 0
    server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        if (request.url === '/healthz') response.end('ok')
        else if (request.url === '/drop') request.socket.destroy()
        else
          response.end(
            JSON.stringify({ method: request.method, url: request.url, bytes: Buffer.concat(chunks).length }),
          )
      })
    })
    server.on('connection', () => {
      connections += 1
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cluster.ports.set(8888, (server.address() as AddressInfo).port)
  })
  afterEach(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  it('speaks HTTP through the port-forward and keeps connections', async () => {
    const connection = await client.connect({ name: 's' })
    for (let i = 0; i < 5; i += 1) expect(await connection.daemon.health()).toBe(true)
    expect(connections).toBe(1)
    await connection.close()
  })

  it('goes to the address of the pod where that was asked for, past the API server', async () => {
    const address = `127.${1 + Math.floor(Math.random() * 250)}.${Math.floor(Math.random() * 250)}.9`
    const daemon = createServer((_, response) => response.end('ok'))
    await new Promise<void>((resolve) => daemon.listen(8888, address, resolve))
    cluster.put('/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/near', {
      metadata: { name: 'near', namespace: 'default' },
      status: { podIPs: [address] },
    } as object)
    const inside = new AgentSandboxClient({
      client: cluster.client(),
      namespace: 'default',
      connection: { type: 'in-cluster-pod-ip' },
    })
    try {
      const connection = await inside.connect({ name: 'near' })
      expect(await connection.daemon.health()).toBe(true)
      await connection.close()
      expect(cluster.requests.filter((request) => request.includes('portforward'))).toEqual([])
      expect(connections).toBe(0)
      await expect(inside.connect({ name: 's' })).rejects.toMatchObject({ code: 'SandboxNotReady' })
    } finally {
      daemon.closeAllConnections()
      await new Promise((resolve) => daemon.close(resolve))
    }
  })

  it('sends bodies of any size, also as a stream', async () => {
    const connection = await client.connect({ name: 's' })
    const chunk = new Uint8Array(64 * 1024)
    async function* chunks() {
      for (let i = 0; i < 160; i += 1) yield chunk
    }
    const body = ReadableStream.from(chunks())
    const streamed = await connection.fetch('http://sandbox/x', { method: 'PUT', body, duplex: 'half' } as RequestInit)
    expect(await streamed.json()).toEqual({ method: 'PUT', url: '/x', bytes: 160 * 64 * 1024 })
    const whole = await connection.fetch('http://sandbox/y', { method: 'POST', body: chunk })
    expect(await whole.json()).toMatchObject({ bytes: chunk.length })
    await connection.close()
  })

  it('notices a kept connection that has ended and uses a new one', async () => {
    const connection = await client.connect({ name: 's' })
    expect(await connection.daemon.health()).toBe(true)
    server.closeAllConnections()
    const answer = await connection.fetch('http://sandbox/x')
    expect(answer.status).toBe(200)
    expect(connections).toBe(2)
    await connection.close()
  })

  it('fails with a typed error when the line drops, when nobody listens, and when it was closed', async () => {
    const connection = await client.connect({ name: 's' })
    await expect(connection.fetch('http://sandbox/drop')).rejects.toThrow('socket hang up')
    cluster.ports.clear()
    await expect(connection.daemon.listProcesses()).rejects.toMatchObject({ code: 'ConnectionLost' })
    await connection.close()
    await expect(connection.daemon.listProcesses()).rejects.toMatchObject({ code: 'ConnectionLost' })
  })
})

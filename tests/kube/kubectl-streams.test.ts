import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run, type StubCluster, startStubCluster } from './stub-cluster.js'

// Debian's google-cloud-cli package brings one binary per version.
const kubectlDirectories = [...(process.env.PATH ?? '').split(':'), '/usr/lib/google-cloud-sdk/bin']
const versions = ['1.28', '1.30', '1.31', '1.32', '1.33']
const kubectls = versions.map((version) => {
  const path = kubectlDirectories.map((directory) => `${directory}/kubectl.${version}`).find((file) => existsSync(file))
  return { version, path }
})

describe.each(kubectls)('kubectl $version', ({ version, path }) => {
  let cluster: StubCluster
  let env: NodeJS.ProcessEnv
  let home: string
  beforeAll(async () => {
    cluster = await startStubCluster()
    home = mkdtempSync(join(tmpdir(), 'corral-kubectl-'))
    env = { PATH: process.env.PATH, HOME: home, KUBECONFIG: cluster.kubeconfig }
  })
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]()
    rmSync(home, { recursive: true, force: true })
  })
  const kubectl = (args: string[], input?: Uint8Array | string) =>
    run(path ?? '', args, input === undefined ? { env } : { env, input })
  const test = it.skipIf(path === undefined)

  test('exec brings output, errors and the exit code', async () => {
    const result = await kubectl(['exec', 'p', '--', 'sh', '-c', 'echo out; echo err >&2; exit 3'])
    expect(result.stdout.toString()).toBe('out\n')
    expect(result.stderr).toContain('err\n')
    expect(result.stderr).toContain('command terminated with exit code 3')
    expect(result.code).toBe(3)
    expect(cluster.upgrades.at(-1)).toMatch(version === '1.28' ? /SPDY/ : /v5.channel.k8s.io/)
  })

  test('exec -i carries three megabytes in and back out, and the end of input', async () => {
    const input = Buffer.alloc(3_000_000, 'abcdefghij')
    const result = await kubectl(['exec', '-i', 'p', '--', 'cat'], input)
    expect(result.stdout.equals(input)).toBe(true)
    expect(result.code).toBe(0)
  })

  test('exec of a program that cannot start says why', async () => {
    const result = await kubectl(['exec', 'p', '--', 'unstartable'])
    expect(result.stderr).toContain('no such program: unstartable')
    expect(result.code).not.toBe(0)
  })

  test('port-forward carries many connections and a large body', async () => {
    const body = Buffer.alloc(3_000_000, 'x')
    const web = createServer((request, response) => {
      if (request.method === 'GET') return void response.end(body)
      let bytes = 0
      request.on('data', (chunk: Buffer) => {
        bytes += chunk.length
      })
      request.on('end', () => response.end(String(bytes)))
    })
    await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve))
    const { port } = web.address() as AddressInfo
    const forward = spawn(path ?? '', ['port-forward', 'p', `:${port}`], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const errors: string[] = []
    forward.stderr.on('data', (chunk) => errors.push(String(chunk)))
    try {
      let local = ''
      for await (const line of createInterface({ input: forward.stdout })) {
        local = /127\.0\.0\.1:(\d+)/.exec(line)?.[1] ?? ''
        if (local) break
      }
      forward.stdout.resume()
      const url = `http://127.0.0.1:${local}/`
      const sizes = await Promise.all([1, 2, 3, 4].map(async () => (await (await fetch(url)).arrayBuffer()).byteLength))
      expect(sizes).toEqual([body.length, body.length, body.length, body.length])
      expect(await (await fetch(url, { method: 'POST', body })).text()).toBe(String(body.length))
      expect(errors.join('')).toBe('')
      expect(cluster.upgrades.at(-1)).toMatch(Number(version) >= 1.31 ? /SPDY\/3.1\+portforward/ : /SPDY\/3.1$/)
    } finally {
      const closed = new Promise((resolve) => forward.once('close', resolve))
      forward.kill('SIGKILL')
      await closed
      web.closeAllConnections()
      await new Promise((resolve) => web.close(resolve))
    }
  })

  test('exec -it brings the size of the terminal', async () => {
    const command = `stty cols 101 rows 33; exec ${path} exec -it p -- cat`
    const terminal = spawn('script', ['-qec', command, '/dev/null'], { env, stdio: ['pipe', 'ignore', 'ignore'] })
    const closed = new Promise((resolve) => terminal.once('close', resolve))
    try {
      await expect.poll(() => cluster.resizes).toContain('101x33')
    } finally {
      // The end of the process ends kubectl, and that the terminal.
      cluster.processes.at(-1)?.kill('SIGKILL')
      expect(await closed).toBe(137)
    }
  })

  test('killing kubectl ends the process in the pod', async () => {
    const before = cluster.processes.length
    const child = spawn(path ?? '', ['exec', 'p', '--', 'sleep', '600'], { env, stdio: 'ignore' })
    const closed = new Promise((resolve) => child.once('close', resolve))
    await expect.poll(() => cluster.processes.length).toBe(before + 1)
    child.kill('SIGKILL')
    await closed
    await expect.poll(() => cluster.processes[before]?.signalCode).toBe('SIGKILL')
  })
})

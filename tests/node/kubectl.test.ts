import { execFile } from 'node:child_process'
import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { type HttpsEndpoint, serveHttps, writeKubeconfig } from '@corral/apiserver'
import { bubblewrapIsolation } from '@corral/node'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isReady, type NodeUnderTest, nodeUnderTest } from './node-under-test.js'

/** The newest versioned kubectl beside the one on the PATH, else that one. */
function findKubectl(): string | undefined {
  const found = (process.env.PATH ?? '')
    .split(delimiter)
    .map((directory) => join(directory, 'kubectl'))
    .find((path) => existsSync(path))
  if (!found) return undefined
  const beside = dirname(realpathSync(found))
  return (
    ['1.33', '1.32', '1.31', '1.30']
      .map((version) => join(beside, `kubectl.${version}`))
      .find((path) => existsSync(path)) ?? found
  )
}

const binary = findKubectl()

describe.skipIf(!binary)(`kubectl${binary ? '' : ' (not installed)'} and a real pod`, () => {
  let node: NodeUnderTest
  let endpoint: HttpsEndpoint
  let kubeconfig: string

  beforeAll(async () => {
    node = await nodeUnderTest((dataDir) => bubblewrapIsolation({ dataDir }))
    endpoint = await serveHttps({ server: node.server, port: 0, dataDir: node.dataDir })
    kubeconfig = join(node.dataDir, 'kubeconfig')
    writeKubeconfig(kubeconfig, endpoint)
    const script = 'echo started; cat; trap "exit 0" TERM; while :; do sleep 0.1; done'
    await node.create('box', { containers: [{ name: 'main', image: 'busybox', command: ['sh', '-c', script] }] })
    await node.until('box', isReady)
  })
  afterAll(async () => {
    await endpoint?.close()
    await node?.[Symbol.asyncDispose]()
  })

  const kubectl = (args: string[], stdin = ''): Promise<{ code: number; out: string; err: string }> =>
    new Promise((resolve) => {
      const child = execFile(
        binary!,
        ['--kubeconfig', kubeconfig, '-n', 'default', ...args],
        { timeout: 240_000, env: { HOME: node.dataDir, PATH: process.env.PATH } },
        (error, out, err) => resolve({ code: error ? (typeof error.code === 'number' ? error.code : 1) : 0, out, err }),
      )
      child.stdin?.end(stdin)
    })

  it('S0-M2: waits until the pod is ready', async () => {
    expect(await kubectl(['wait', '--for=condition=Ready', 'pod/box', '--timeout=10s'])).toMatchObject({ code: 0 })
    expect((await kubectl(['get', 'pod', 'box'])).out).toMatch(/box\s+1\/1\s+Running\s+0/)
  })

  it('runs commands with stdin, output and exit code', async () => {
    expect(await kubectl(['exec', '-i', 'box', '--', 'sh', '-c', 'tr a-z A-Z; exit 4'], 'hello')).toMatchObject({
      code: 4,
      out: 'HELLO',
    })
  })

  it('copies a file in and out', async () => {
    const source = join(node.dataDir, 'notes.txt')
    writeFileSync(source, 'some notes\n')
    expect(await kubectl(['cp', source, 'box:/tmp/copied'])).toMatchObject({ code: 0 })
    expect((await kubectl(['exec', 'box', '--', 'cat', '/tmp/copied'])).out).toBe('some notes\n')
    const back = join(node.dataDir, 'back.txt')
    expect(await kubectl(['cp', 'box:/tmp/copied', back])).toMatchObject({ code: 0 })
    expect(readFileSync(back, 'utf8')).toBe('some notes\n')
  })

  it('S0-C27: shows the log', async () => {
    expect((await kubectl(['logs', 'box', '--tail=50'])).out).toBe('started\n')
  })

  it('describes the pod with its events, and the node', async () => {
    const { out } = await kubectl(['describe', 'pod', 'box'])
    expect(out).toMatch(/Normal\s+ImageMapped/)
    expect(out).toMatch(/Normal\s+Started/)
    expect((await kubectl(['get', 'nodes'])).out).toMatch(/Ready/)
    expect(await kubectl(['describe', 'node'])).toMatchObject({ code: 0 })
  })

  it('deletes the pod and waits for its end', async () => {
    expect(await kubectl(['delete', 'pod', 'box'])).toMatchObject({ code: 0 })
    await node.untilGone('box')
  })
})

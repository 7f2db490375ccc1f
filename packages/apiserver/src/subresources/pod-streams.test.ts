import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import type { ApiConnection, ApiResponse, DuplexProcess, PodStreams } from '@corral/ports'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemUser } from '../auth/access.js'
import { writeKubeconfig } from '../http/kubeconfig.js'
import { type HttpsEndpoint, serveHttps } from '../http/serve-https.js'
import { MERGE, openServer, pod, pods, type ServerCaller } from '../testing/server-caller.test-suite.js'

async function* text(...lines: string[]): AsyncGenerator<Uint8Array> {
  for (const line of lines) yield Buffer.from(line)
}

/** A node whose containers answer with what they were asked. */
function echoingNode(): PodStreams {
  const process = (words: readonly string[]): DuplexProcess => ({
    stdout: text(`${words.join(' ')}\n`),
    stderr: text(),
    async writeStdin() {},
    endStdin() {},
    resize() {},
    kill() {},
    exited: Promise.resolve({ exitCode: words[0] === 'fail' ? 3 : 0 }),
  })
  return {
    exec: async (_pod, options) => process(options.command),
    attach: async (_pod, options) => process(['attached', options.container]),
    logs: (_pod, options) => text(`log of ${options.container}\n`, `tail ${options.tailLines ?? 'all'}\n`),
    portForward: async () => {
      throw new Error('nothing listens')
    },
  }
}

let api: ServerCaller
let endpoint: HttpsEndpoint
let directory: string

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'corral-streams-'))
  api = await openServer({ podStreams: echoingNode() })
  endpoint = await serveHttps({ server: api.server, port: 0, dataDir: directory })
  writeKubeconfig(join(directory, 'kubeconfig'), endpoint)
  const running = (name: string): object => ({ name, state: { running: {} }, ready: true })
  await api.call('POST', pods, pod('up', { nodeName: 'n' }))
  await api.call(
    'PATCH',
    `${pods}/up/status`,
    { status: { phase: 'Running', containerStatuses: [running('c')] } },
    MERGE,
  )
  const two = { nodeName: 'n', containers: ['a', 'b'].map((name) => ({ name, image: 'x' })) }
  await api.call('POST', pods, pod('two', two))
  const waiting = { name: 'a', state: { waiting: { reason: 'ContainerCreating' } } }
  await api.call('PATCH', `${pods}/two/status`, { status: { phase: 'Pending', containerStatuses: [waiting] } }, MERGE)
  await api.call('POST', pods, pod('unbound'))
})
afterAll(async () => {
  await endpoint.close()
  await api.server.close()
  rmSync(directory, { recursive: true, force: true })
})

function connect(url: string): Promise<ApiConnection | ApiResponse> {
  const [path = '', search = ''] = url.split('?')
  return api.server.connect({ method: 'GET', path, query: new URLSearchParams(search), headers: {}, user: systemUser })
}

describe('in process', () => {
  it('exec gives the process itself', async () => {
    const connection = await connect(`${pods}/up/exec?command=echo&command=hi&stdout=1`)
    if (!('type' in connection) || connection.type !== 'process') throw new Error('no process')
    let output = ''
    for await (const chunk of connection.process.stdout) output += Buffer.from(chunk)
    expect(output).toBe('echo hi\n')
  })

  it.each<{ what: string; url: string; status: number; says: string }>([
    { what: 'a missing pod', url: `${pods}/none/exec?command=x&stdout=1`, status: 404, says: 'pods "none" not found' },
    {
      what: 'no container of several named',
      url: `${pods}/two/exec?command=x&stdout=1`,
      status: 400,
      says: 'a container name must be specified for pod two, choose one of: [a b]',
    },
    {
      what: 'an unknown container',
      url: `${pods}/up/exec?command=x&stdout=1&container=q`,
      status: 400,
      says: 'container q is not valid for pod up',
    },
    {
      what: 'a waiting container',
      url: `${pods}/two/exec?command=x&stdout=1&container=a`,
      status: 404,
      says: 'container not found ("a")',
    },
    {
      what: 'a pod without a node',
      url: `${pods}/unbound/exec?command=x&stdout=1`,
      status: 400,
      says: 'pod unbound does not have a host assigned',
    },
    {
      what: 'no command',
      url: `${pods}/up/exec?stdout=1`,
      status: 400,
      says: 'you must specify at least one command for the container',
    },
    {
      what: 'a forward to a pod that does not run',
      url: `${pods}/two/portforward?ports=80`,
      status: 400,
      says: 'pod is not running; current phase is Pending',
    },
  ])('118: $what is refused with $status', async ({ url, status, says }) => {
    const response = await connect(url)
    if (!('status' in response)) throw new Error('connected')
    expect(response.status).toBe(status)
    expect(response.body).toMatchObject({ value: { message: says } })
  })

  it('logs of a waiting container are refused', async () => {
    const { status, value } = await api.call('GET', `${pods}/two/log?container=a`)
    expect(status).toBe(400)
    expect(value.message).toBe('container "a" in pod "two" is waiting to start: ContainerCreating')
  })
})

/** The versioned binaries lie where the `kubectl` on the PATH links to, where they lie at all. */
function findKubectl(version: string): string | undefined {
  const links = (process.env.PATH ?? '').split(delimiter).map((path) => join(path, 'kubectl'))
  const roots = links.filter((path) => existsSync(path)).map((path) => dirname(realpathSync(path)))
  return roots.map((path) => join(path, `kubectl.${version}`)).find((path) => existsSync(path))
}

for (const version of ['1.28', '1.33']) {
  const binary = findKubectl(version)
  describe.skipIf(!binary)(`kubectl ${version}${binary ? '' : ' (not installed)'}`, () => {
    const kubectl = (...args: string[]): Promise<{ code: number; out: string; err: string }> =>
      new Promise((resolve) => {
        const env = { PATH: process.env.PATH, HOME: directory, KUBECONFIG: join(directory, 'kubeconfig') }
        execFile(binary!, args, { env }, (error, out, err) => {
          resolve({ code: error ? Number(error.code ?? 1) : 0, out, err })
        })
      })

    it('115: exec brings output and exit code', async () => {
      expect(await kubectl('exec', 'up', '--', 'echo', 'hi')).toMatchObject({ code: 0, out: 'echo hi\n' })
      expect((await kubectl('exec', 'up', '--', 'fail')).code).toBe(3)
    })

    it('121: logs', async () => {
      expect((await kubectl('logs', 'up', '--tail=5')).out).toBe('log of c\ntail 5\n')
    })
  })
}

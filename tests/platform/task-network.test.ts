import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { CreateTaskRequest, TaskView } from '@corral/protocol'
import { type Pod, Pods } from '@corral/resources'
import {
  gitRepository,
  type PlatformProcess,
  startPlatformProcess,
  type TemporaryDirectory,
  temporaryDirectory,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const go = '/usr/local/go/bin/go'
const python = '/usr/bin/python3'
const hasPip = works(python, ['-m', 'pip', '--version'])

let scratch: TemporaryDirectory
let registry: Registry
let platform: PlatformProcess

beforeAll(async () => {
  scratch = temporaryDirectory()
  registry = await startRegistry(scratch.path)
  platform = await startPlatformProcess({
    env: {
      npm_config_registry: `${registry.url}/npm/`,
      GOPROXY: `${registry.url}/go`,
      GONOSUMDB: '*',
      PIP_INDEX_URL: `${registry.url}/simple/`,
    },
  })
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await registry?.close()
  await scratch?.[Symbol.asyncDispose]()
})

let count = 0
const fresh = (): string => join(scratch.path, `repo-${++count}`)

async function run(command: string, more: Partial<CreateTaskRequest> = {}): Promise<TaskView> {
  const repo = await gitRepository(fresh())
  return platform.api.run({ repo: repo.path, task: 'Install', agent: { name: 'command', command }, ...more })
}

async function outputOf(task: TaskView): Promise<string> {
  const events = await platform.api.allEvents(task.id)
  return events.flatMap((event) => (event.type === 'output' ? [event.text] : [])).join('\n')
}

const asks = (url: string): string =>
  `node -e "fetch('${url}').then(r => r.text()).then(t => console.log('got ' + t.trim()), e => console.log('refused ' + e.cause?.code))"`
const mirror = 'http://127.0.0.1:8788'

describe('packages', () => {
  it('set-up installs from the mirror of the platform, which the agent then does not have', async () => {
    const setup = [
      'set -e',
      'mkdir -p /tmp/npm && cd /tmp/npm',
      `echo '{"name":"p","version":"1.0.0","dependencies":{"left":"1.0.0"}}' > package.json`,
      'npm install --no-progress --silent && rm -rf node_modules && npm ci --no-progress --silent',
      'node -p "require(\'left\')"',
      ...(existsSync(go)
        ? [
            'mkdir -p /tmp/go && cd /tmp/go',
            'printf "module p\\n\\ngo 1.20\\n\\nrequire example.com/left v1.0.0\\n" > go.mod',
            `GONOSUMDB=* GONOSUMCHECK=1 GOSUMDB=off GOTOOLCHAIN=local GOFLAGS=-mod=mod ${go} mod download -json example.com/left | grep -c Zip`,
          ]
        : []),
      ...(hasPip ? [`${python} -m pip install -q --no-cache-dir --target /tmp/site left==1.0 && ls /tmp/site`] : []),
      'cat ~/.cargo/config.toml',
    ].join('\n')
    const task = await run(asks(`${mirror}/npm/left`), { setup, setup_egress: ['packages'] })
    const said = await outputOf(task)
    expect(task, said).toMatchObject({ status: 'SUCCEEDED' })
    expect(said).toContain('left from npm')
    expect(said).toContain(`registry = "sparse+${mirror}/crates/index/"`)
    if (hasPip) expect(said).toContain('left.py')
    expect(said).toContain('refused ECONNREFUSED')
  })

  it('the agent has the mirror and its settings where the whole task was granted it', async () => {
    const task = await run(`${asks(`${mirror}/npm/left`)}; npm config get registry`, { egress: ['packages'] })
    const said = await outputOf(task)
    expect(task, said).toMatchObject({ status: 'SUCCEEDED', egress: ['packages'] })
    expect(said).toMatch(/got \{"name":"left"/)
    expect(said).toContain(`${mirror}/npm/`)
  })

  it('nobody has it without the grant', async () => {
    const task = await run(asks(`${mirror}/npm/left`), { setup: asks(`${mirror}/npm/left`) })
    expect((await outputOf(task)).match(/refused ECONNREFUSED/g)).toHaveLength(2)
  })
})

describe('network by phase', () => {
  it('what is granted to set-up is closed before the agent starts, with every open connection', async () => {
    const place = `localhost:${registry.port}`
    const setup = [
      asks(`http://${place}/hello`),
      // A process of set-up that holds a connection open writes down when it ends, with an error since the connection is reset.
      `(node -e "require('http').get('http://${place}/hold', r => { console.log('held'); r.resume() })" > /tmp/held 2>&1 || true; echo over >> /tmp/held) > /dev/null 2>&1 &`,
      'until grep -q held /tmp/held; do sleep 0.1; done',
    ].join('\n')
    const agent = `until grep -q over /tmp/held; do sleep 0.1; done; echo hold over; ${asks(`http://${place}/hello`)}`
    const task = await run(agent, { setup, setup_egress: [place] })
    const said = await outputOf(task)
    expect(task, said).toMatchObject({ status: 'SUCCEEDED' })
    expect(said).toContain('got hello')
    expect(said).toContain('hold over')
    expect(said).toContain('refused ECONNREFUSED')
  })

  it('a task with grants takes a sandbox that is kept ready', async () => {
    const kube = await platform.kube()
    const podNames = async (): Promise<string[]> => {
      const { items } = await kube.list(Pods, { namespace: 'corral' })
      const isReady = (pod: Pod): boolean =>
        pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
      return items.filter(isReady).map(({ metadata }) => metadata.name)
    }
    await waitUntil('a sandbox is ready', async () => (await podNames()).length > 0)
    const before = await podNames()
    const task = await run('true', { egress: [`localhost:${registry.port}`] })
    expect(task.status).toBe('SUCCEEDED')
    expect(before).toContain(task.sandbox?.pod)
  })
})

function works(program: string, args: string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

interface Registry {
  url: string
  port: number
  close(): Promise<void>
}

/** One package under the name `left` for npm, Go and PyPI, on loopback. */
async function startRegistry(directory: string): Promise<Registry> {
  const answers = new Map<string, { body: string | Buffer; type?: string }>()
  const server: Server = createServer((request: IncomingMessage, response) => {
    if (request.url === '/hold') return void response.write('x')
    const answer = answers.get(request.url ?? '')
    if (!answer) return void response.writeHead(404).end()
    response.writeHead(200, { 'content-type': answer.type ?? 'application/octet-stream' }).end(answer.body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  answers.set('/hello', { body: 'hello' })

  const source = join(directory, 'package')
  mkdirSync(source, { recursive: true })
  writeFileSync(join(source, 'package.json'), '{"name":"left","version":"1.0.0"}')
  writeFileSync(join(source, 'index.js'), 'module.exports = "left from npm"\n')
  execFileSync('tar', ['czf', join(directory, 'left.tgz'), '-C', directory, 'package'])
  const tarball = readFileSync(join(directory, 'left.tgz'))
  const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`
  const version = { name: 'left', version: '1.0.0', dist: { tarball: `${url}/npm/left/-/left-1.0.0.tgz`, integrity } }
  answers.set('/npm/left/-/left-1.0.0.tgz', { body: tarball })
  answers.set('/npm/left', {
    type: 'application/json',
    body: JSON.stringify({ name: 'left', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } }),
  })

  const module = 'module example.com/left\n\ngo 1.20\n'
  const base = '/go/example.com/left/@v/v1.0.0'
  answers.set(`${base}.info`, { body: JSON.stringify({ Version: 'v1.0.0', Time: '2024-01-01T00:00:00Z' }) })
  answers.set(`${base}.mod`, { body: module })
  answers.set(`${base}.zip`, { body: zip(join(directory, 'go.zip'), { 'example.com/left@v1.0.0/go.mod': module }) })

  const wheel = zip(join(directory, 'left.whl'), {
    'left.py': 'said = 1\n',
    'left-1.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: left\nVersion: 1.0\n',
    'left-1.0.dist-info/WHEEL': 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    'left-1.0.dist-info/RECORD': '',
  })
  answers.set('/files/left-1.0-py3-none-any.whl', { body: wheel })
  answers.set('/simple/left/', {
    type: 'text/html',
    body: `<html><body><a href="${url}/files/left-1.0-py3-none-any.whl">left</a></body></html>`,
  })
  return {
    url,
    port,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function zip(path: string, contents: Record<string, string>): Buffer {
  const program =
    'import json,sys,zipfile\nwith zipfile.ZipFile(sys.argv[1],"w") as z:\n for n,c in json.loads(sys.argv[2]).items(): z.writestr(n,c)'
  execFileSync('python3', ['-c', program, path, JSON.stringify(contents)])
  return readFileSync(path)
}

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AgentSandboxClient, type SandboxHandle } from '@corral/agent-sandbox-sdk'
import { createDaemon, type Daemon, type DaemonServer, serveDaemon } from '@corral/daemon'
import { inProcessKubeClient } from '@corral/kube'
import { silentLogger, systemClock } from '@corral/ports'
import { isFullSize } from '@corral/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const execs = isFullSize ? 1_000 : 40
const sandboxPath = '/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes/box'
const podPath = '/api/v1/namespaces/default/pods/box'

let directory: string
let daemon: Daemon
let server: DaemonServer
let client: AgentSandboxClient
let sandbox: SandboxHandle
const lines = new Set<Socket>()
let dialled = 0
let cuts = 0
let objects: Record<string, object> = {}

/** A cluster of one sandbox, whose port-forward leads to a daemon of this process. */
function cluster() {
  const object = (kind: string, more: object) => ({
    kind,
    metadata: { name: 'box', namespace: 'default', uid: 'u', resourceVersion: '1' },
    ...more,
  })
  objects = {
    [sandboxPath]: object('Sandbox', { spec: { podTemplate: { spec: { containers: [] } } } }),
    [podPath]: object('Pod', { status: { phase: 'Running' } }),
  }
  const answer = (status: number, value: object) => ({
    status,
    headers: {},
    body: { type: 'object' as const, value, json: () => JSON.stringify(value) },
  })
  return inProcessKubeClient({
    handle: async ({ path }) =>
      objects[path]
        ? answer(200, objects[path])
        : answer(404, { kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404, message: path }),
    connect: async () => {
      const socket = connect(server.port!, '127.0.0.1')
      socket.on('error', () => {})
      await new Promise((resolve, reject) => socket.once('connect', resolve).once('close', reject))
      dialled += 1
      lines.add(socket)
      socket.once('close', () => lines.delete(socket))
      return {
        type: 'port' as const,
        stream: {
          [Symbol.asyncIterator]: () => socket[Symbol.asyncIterator](),
          write: async (chunk: Uint8Array) => {
            if (!socket.write(chunk))
              await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve))
          },
          end: () => void socket.end(),
          destroy: () => void socket.destroy(),
        },
      }
    },
  })
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'corral-cuts-'))
  daemon = await createDaemon({
    workDir: join(directory, 'work'),
    stateDir: join(directory, 'state'),
    clock: systemClock,
    log: silentLogger,
    env: process.env,
    defaultCwd: directory,
    onRunnerFinished: () => {},
  })
  server = await serveDaemon(daemon, { port: 0, host: '127.0.0.1' })
  client = new AgentSandboxClient({ client: cluster(), namespace: 'default' })
  sandbox = await client.sandboxes.get('box')
  cuts = 0
  dialled = 0
})
afterEach(async () => {
  sandbox.detach()
  await daemon.terminate(0)
  await server.close(0)
  await daemon.close()
  await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
})

/** Cuts a line every few milliseconds for as long as it runs. */
function startCutting(seed: number): () => void {
  let state = seed
  const random = () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
  const timer = setInterval(() => {
    const [line] = [...lines].slice(Math.floor(random() * lines.size))
    if (!line || random() < 0.3) return
    cuts += 1
    line.destroy()
  }, 7)
  return () => clearInterval(timer)
}

describe('connections cut at random', () => {
  it(`lose and double no byte and run none of ${execs} commands twice`, async () => {
    await sandbox.exec(['true'])
    const log = join(directory, 'ran')
    const stop = startCutting(20_261_116)
    const expected = Array.from({ length: 400 }, (_, line) => `line ${line} of the output`).join('\n')
    const script = `echo $0 >> ${log}; i=0; while [ $i -lt 400 ]; do echo "line $i of the output"; i=$((i+1)); done; sleep 0.02; exit 3`
    try {
      for (let batch = 0; batch < execs; batch += 8) {
        const ids = Array.from({ length: Math.min(8, execs - batch) }, (_, index) => `c${batch + index}`)
        const results = await Promise.all(ids.map((id) => sandbox.exec(['sh', '-c', script, id])))
        for (const { exitCode, stdout } of results) {
          expect(exitCode).toBe(3)
          expect(stdout === `${expected}\n`).toBe(true)
        }
      }
    } finally {
      stop()
    }
    const ran = (await readFile(log, 'utf8')).trim().split('\n')
    expect(ran.sort()).toEqual(Array.from({ length: execs }, (_, index) => `c${index}`).sort())
    expect(cuts).toBeGreaterThan(5)
  })

  it('a daemon that starts anew ends its commands as lost, and none is started again', async () => {
    const log = join(directory, 'ran')
    const command = sandbox.shell(`echo ran >> ${log}; echo up; sleep 1000`)
    for await (const line of command.stdout.lines()) {
      expect(line).toBe('up')
      break
    }
    await server.close(0)
    await daemon.close()
    const options = { clock: systemClock, log: silentLogger, env: process.env, onRunnerFinished: () => {} }
    const place = { workDir: join(directory, 'work'), stateDir: join(directory, 'state'), defaultCwd: directory }
    daemon = await createDaemon({ ...options, ...place })
    server = await serveDaemon(daemon, { port: 0, host: '127.0.0.1' })
    await expect(Promise.resolve(command)).rejects.toMatchObject({ code: 'ProcessLost', retryable: false })
    expect(await sandbox.exec(['echo', 'again'])).toMatchObject({ stdout: 'again\n' })
    expect(await readFile(log, 'utf8')).toBe('ran\n')
  })
})

describe('commands one after the other', () => {
  it('go over one connection, also after a command that could not start', async () => {
    for (let count = 0; count < 5; count += 1) expect((await sandbox.exec(['echo', 'x'])).stdout).toBe('x\n')
    await expect(Promise.resolve(sandbox.exec(['no-such-program']))).rejects.toMatchObject({ code: 'CommandNotFound' })
    await expect(Promise.resolve(sandbox.exec(['true'], { cwd: '/none' }))).rejects.toMatchObject({
      code: 'WorkingDirectoryMissing',
    })
    expect((await sandbox.exec(['sh', '-c', 'echo x; exit 4'])).exitCode).toBe(4)
    expect(dialled).toBe(1)
  })

  it('find another where theirs ended while nobody used it', async () => {
    await sandbox.exec(['true'])
    for (const line of lines) line.destroy()
    await expect.poll(() => lines.size).toBe(0)
    expect((await sandbox.exec(['echo', 'again'])).stdout).toBe('again\n')
  })

  it('that are given up halfway leave nothing of their output to the next', async () => {
    for await (const chunk of sandbox.exec(['yes']).stdout) {
      expect(chunk.length).toBeGreaterThan(0)
      break
    }
    const results = await Promise.all(['a', 'b', 'c'].map((word) => sandbox.exec(['echo', word])))
    expect(results.map(({ stdout }) => stdout)).toEqual(['a\n', 'b\n', 'c\n'])
  })

  it('of a handle that was let go end at once instead of being looked for during a minute', async () => {
    const [running, behind] = [sandbox.exec(['sleep', '1000']), sandbox.exec(['sleep', '1000'], { background: true })]
    await Promise.all([running.id, behind.id])
    sandbox.detach()
    for (const command of [running, behind])
      await expect(Promise.resolve(command)).rejects.toMatchObject({ code: 'Aborted' })
  })

  it('are started while they say nothing, and can be written to and killed', async () => {
    const silent = sandbox.exec(['sleep', '1000'])
    await silent.kill()
    expect(await silent).toMatchObject({ exitCode: 143 })
    const cat = sandbox.exec(['cat'], { stdin: true })
    await cat.write('said')
    await cat.end()
    expect((await cat).stdout).toBe('said')
  })
})

describe('what happens to a sandbox', () => {
  const suspend = (): void => {
    objects[sandboxPath] = { ...objects[sandboxPath], spec: { operatingMode: 'Suspended' } }
  }
  const deletePod = (): void => {
    delete objects[podPath]
  }
  const deleteBoth = (): void => {
    delete objects[sandboxPath]
    deletePod()
  }
  const happenings = [
    { what: 'it is deleted', happen: deleteBoth, says: /was deleted/, code: 'SandboxDeleted' },
    { what: 'it is suspended', happen: suspend, says: /was suspended/, code: 'SandboxDeleted' },
    { what: 'its pod goes', happen: deletePod, says: /the pod of sandbox "box" is gone/, code: 'SandboxFailed' },
  ]
  /** The output of a command as its own promise: a handler is there before it fails. */
  const ended = (call: PromiseLike<unknown>): Promise<unknown> =>
    Promise.resolve(call).then(
      (result) => ({ result }),
      (error: unknown) => error,
    )

  it.each(happenings)('is told by every call under way, not by the first alone: $what', async (row) => {
    const commands = [sandbox.shell('echo up; sleep 1000'), sandbox.shell('echo up; sleep 1000')]
    for (const command of commands) for await (const _ of command.stdout.lines()) break
    const background = sandbox.exec(['sleep', '1000'], { background: true })
    await background.id
    const changes = sandbox.files.watch(directory)[Symbol.asyncIterator]()
    expect(await changes.next()).toMatchObject({ value: { type: 'ready' } })
    const calls = [...commands, background, changes.next()].map(ended)
    row.happen()
    // One line breaks; the others are closed when the first call has learned why.
    const [first] = lines
    first?.destroy()
    for (const call of calls)
      expect(await call).toMatchObject({ code: row.code, message: expect.stringMatching(row.says) })
  })

  it.each(happenings)('is told by a command that it ends: $what', async (row) => {
    const command = sandbox.shell('echo up; sleep 1000')
    for await (const _ of command.stdout.lines()) break
    const end = ended(command)
    row.happen()
    // As at the end of a pod: processes first, then connections.
    await daemon.terminate(0)
    expect(await end).toMatchObject({ code: row.code, message: expect.stringMatching(row.says) })
  })

  it('is not the cause where a command ends by a signal of its own', async () => {
    expect(await sandbox.shell('kill -TERM $$')).toMatchObject({ exitCode: 143, signal: 15 })
    expect(await sandbox.shell('kill -KILL $$')).toMatchObject({ exitCode: 137, signal: 9 })
  })
})

it('a connection that asks for commands in another way is closed, and the daemon goes on', async () => {
  const stranger = connect(server.port!, '127.0.0.1')
  const answer: Buffer[] = []
  stranger.on('data', (chunk) => answer.push(chunk))
  stranger.write('CONNECT processes:8888 HTTP/1.1\r\nhost: x\r\n\r\n')
  await expect.poll(() => String(Buffer.concat(answer))).toMatch(/^HTTP\/1\.1 200 .*x-corral-boot: \S+\r\n\r\n$/is)
  stranger.write(Uint8Array.of(0, 0, 0, 2, 0x7b, 0x7d))
  await new Promise((resolve) => stranger.once('close', resolve))
  expect((await sandbox.exec(['echo', 'on'])).stdout).toBe('on\n')
})

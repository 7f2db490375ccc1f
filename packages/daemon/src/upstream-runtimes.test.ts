import { generateKeyPairSync, sign } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Code, ConnectError, createClient } from '@connectrpc/connect'
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node'
import { silentLogger, systemClock } from '@corral/ports'
import { ProcessService, Signal } from '@corral/protocol/process-service'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createDaemon, type Daemon } from './create-daemon.js'
import { type DaemonServer, serveDaemon } from './daemon-server.js'
import { ownSandbox, readPublicKey, refuseToken } from './daemon-token.js'
import { legacyRuntime } from './legacy-runtime.js'
import { type SandboxdServer, serveSandboxd } from './sandboxd-server.js'
import { readSandboxdSettings } from './sandboxd-settings.js'

let directory: string
let root: string
let daemon: Daemon
let server: DaemonServer
let sandboxd: SandboxdServer

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'corral-upstream-'))
  root = join(directory, 'workspace')
  await mkdir(root)
  await mkdir(join(directory, 'workspace-evil'))
  await writeFile(join(directory, 'secret'), 'secret')
  const options = { stateDir: join(directory, 'state'), clock: systemClock, log: silentLogger, env: process.env }
  const runner = { workDir: join(directory, 'work'), defaultCwd: root, onRunnerFinished: () => {} }
  daemon = await createDaemon({ ...options, ...runner })
  const { processes } = daemon
  const env = { SANDBOX_NAME: 'box', SANDBOX_API_TOKEN: 'hidden', SANDBOX_EXEC_TIMEOUT_SECONDS: '1' }
  const legacy = legacyRuntime({ processes, env, defaultCwd: root, log: silentLogger })
  server = await serveDaemon(daemon, { port: 0, host: '127.0.0.1' }, { legacy })
  const ports = { host: '127.0.0.1', restPort: 0, grpcPort: 0, metadataPrefix: 'SANDBOX_', refuse: () => undefined }
  sandboxd = await serveSandboxd({ ...ports, root, env, processes, log: silentLogger })
})
afterEach(async () => {
  await sandboxd.close()
  await daemon.terminate(0)
  await server.close(100)
  await daemon.close()
  await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
})

/** Sends the target as it is written: `fetch` would fold dots away. */
function raw(port: number, method: string, path: string, body = '', headers: Record<string, string> = {}) {
  return new Promise<{ status: number; text: string; headers: Record<string, unknown> }>((resolve, reject) => {
    const call = request({ port, host: '127.0.0.1', method, path, headers }, (answer) => {
      let text = ''
      answer.on('data', (chunk) => {
        text += String(chunk)
      })
      answer.once('end', () => resolve({ status: answer.statusCode ?? 0, text, headers: answer.headers }))
    })
    call.once('error', reject)
    call.end(body)
  })
}
const json = (text: string) => JSON.parse(text) as unknown
/** A refusal with the words that tell its rule from others with the same status. */
const refused = (status: number, words: string) => ({ status, text: expect.stringContaining(words) })

describe('the legacy runtime', () => {
  const at = () => server.port!
  const execute = async (command: unknown) =>
    json((await raw(at(), 'POST', '/execute', JSON.stringify({ command }))).text)
  const upload = (name: string, content: string) => {
    const body = `--b\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n\r\n${content}\r\n--b--\r\n`
    return raw(at(), 'POST', '/upload', body, { 'content-type': 'multipart/form-data; boundary=b' })
  }

  it('78: says that it is there and runs commands without a shell', async () => {
    expect(json((await raw(at(), 'GET', '/')).text)).toEqual({ status: 'ok', message: 'Sandbox Runtime is active.' })
    expect(await execute(`echo "a  b" '$HOME' c\\ d`)).toMatchObject({ stdout: 'a  b $HOME c d\n', exit_code: 0 })
    expect(await execute('pwd')).toMatchObject({ stdout: `${root}\n` })
    expect(await raw(at(), 'POST', '/execute', '{}')).toMatchObject(refused(422, 'command'))
  })

  it.each([
    { what: 'an open quote', command: 'echo "a', stderr: /^Failed to execute command: No closing quotation/ },
    { what: 'a program that is not there', command: 'no-such', stderr: /^Failed to execute command: / },
    { what: 'a command without an end', command: 'sleep infinity', stderr: /timed out after 1 seconds/ },
  ])('79 80: answers $what as a result', async ({ command, stderr }) => {
    expect(await execute(command)).toMatchObject({ stdout: '', stderr: expect.stringMatching(stderr), exit_code: 1 })
    expect((await daemon.processes.records()).every(({ exit }) => exit)).toBe(true)
  })

  it('82: answers while a command runs', async () => {
    const { processes } = daemon
    const env = { SANDBOX_EXEC_TIMEOUT_SECONDS: '120' }
    const legacy = legacyRuntime({ processes, env, defaultCwd: root, log: silentLogger })
    const slowDaemon = await serveDaemon(daemon, { port: 0, host: '127.0.0.1' }, { legacy })
    try {
      const body = JSON.stringify({ command: "sh -c 'while [ ! -e go ]; do sleep 0.05; done'" })
      const running = raw(slowDaemon.port!, 'POST', '/execute', body)
      expect((await raw(slowDaemon.port!, 'GET', '/')).status).toBe(200)
      expect((await raw(slowDaemon.port!, 'GET', '/list/')).status).toBe(200)
      await writeFile(join(root, 'go'), '')
      expect(json((await running).text)).toMatchObject({ exit_code: 0 })
    } finally {
      await slowDaemon.close(100)
    }
  })

  it('81: keeps files below its directory', async () => {
    expect(json((await upload('a/b.txt', 'text')).text)).toEqual({ message: "File 'a/b.txt' uploaded successfully." })
    expect((await raw(at(), 'GET', '/download/a%2Fb.txt')).text).toBe('text')
    expect(json((await raw(at(), 'GET', '/list/')).text)).toMatchObject([{ name: 'a', type: 'directory' }])
    expect(json((await raw(at(), 'GET', '/list/%2E')).text)).toMatchObject([{ name: 'a' }])
    expect(json((await raw(at(), 'GET', '/exists/none')).text)).toEqual({ path: 'none', exists: false })
    expect(await raw(at(), 'GET', '/download/none')).toMatchObject(refused(404, 'File not found'))
    expect(await raw(at(), 'GET', '/list/a%2Fb.txt')).toMatchObject(refused(404, 'Path is not a directory'))
    await symlink('/etc', join(root, 'out'))
    expect(await upload('../../x', 'x')).toMatchObject(refused(403, 'Access denied'))
    for (const path of ['..%2F..%2Fetc%2Fpasswd', 'out%2Fpasswd']) {
      for (const action of ['download', 'list', 'exists']) {
        const answer = await raw(at(), 'GET', `/${action}/${path}`)
        expect([action, path, answer.status, answer.text]).toEqual([action, path, 403, '{"message":"Access denied"}'])
      }
    }
  })
})

describe("sandboxd's files", () => {
  const call = (method: string, path: string, body?: string, headers?: Record<string, string>) =>
    raw(sandboxd.restPort, method, `/v1/files/${path}`, body, headers)

  it('83 84: are written as a whole, with their mode, parents and all', async () => {
    expect((await call('PUT', 'a%2Fb%2Fc.txt?mode=0755', 'one')).status).toBe(204)
    expect((await stat(join(root, 'a/b/c.txt'))).mode & 0o777).toBe(0o755)
    expect((await call('PUT', 'a/b/c.txt', 'two')).status).toBe(204)
    expect((await call('GET', 'a/b/c.txt')).text).toBe('two')
    expect(await readdir(join(root, 'a/b'))).toEqual(['c.txt'])
    for (const mode of ['777', '01777', '0999'])
      expect(await call('PUT', `x?mode=${mode}`, '')).toMatchObject(refused(400, 'invalid mode'))
    expect(await call('PUT', 'a', 'x')).toMatchObject(refused(400, 'directory'))
    expect(await call('GET', 'a/b/c.txt', '', { range: 'bytes=1-1' })).toMatchObject({ status: 206, text: 'w' })
    expect((await call('GET', 'a/b/c.txt', '', { range: 'bytes=9-' })).status).toBe(416)
  })

  it('85 88: are listed by name, without links that lead nowhere or out', async () => {
    expect(json((await call('GET', '')).text)).toEqual({ path: '/', entries: [] })
    await writeFile(join(root, 'z'), 'zz')
    await symlink('z', join(root, 'inside'))
    await symlink('/etc', join(root, 'outside'))
    await symlink('nowhere', join(root, 'broken'))
    const { entries } = json((await call('GET', '')).text) as { entries: { name: string; modified_at: string }[] }
    expect(entries.map(({ name }) => name)).toEqual(['inside', 'z'])
    expect(entries[0]?.modified_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    expect((await call('HEAD', 'z')).status).toBe(200)
    expect((await call('HEAD', 'none')).status).toBe(404)
  })

  it('86: stay below the root', async () => {
    await symlink('/etc', join(root, 'etc'))
    for (const path of ['%2E%2E/%2E%2E/etc/passwd', '../secret', 'etc/passwd', 'etc/new']) {
      for (const method of ['GET', 'PUT', 'DELETE']) {
        const answer = await call(method, path, method === 'PUT' ? 'x' : undefined)
        expect([method, path, answer.status]).toEqual([method, path, 403])
        expect(answer.text).toContain('PERMISSION_DENIED')
      }
    }
    expect((await call('PUT', `${encodeURIComponent(`${root}-evil/x`)}`, 'x')).status).toBe(204)
    expect(await readdir(join(directory, 'workspace-evil'))).toEqual([])
    expect((await call('PUT', encodeURIComponent(`${root}/named`), 'x')).status).toBe(204)
    expect(await readFile(join(root, 'named'), 'utf8')).toBe('x')
  })

  it('87: are deleted, a link instead of what it leads to', async () => {
    await mkdir(join(root, 'dir'))
    await writeFile(join(root, 'dir/file'), 'x')
    await symlink('dir', join(root, 'link'))
    expect((await call('DELETE', 'link')).status).toBe(204)
    expect(await call('DELETE', 'dir')).toMatchObject(refused(409, 'not empty'))
    expect(await call('DELETE', 'dir?recursive=banana')).toMatchObject(refused(400, 'invalid recursive'))
    expect((await call('DELETE', 'dir?recursive=true')).status).toBe(204)
    expect(await call('DELETE', 'dir')).toMatchObject(refused(404, 'NOT_FOUND'))
    expect(await call('DELETE', '')).toMatchObject(refused(409, 'the root is only emptied'))
    await writeFile(join(root, 'left'), '')
    expect((await call('DELETE', '?recursive=true')).status).toBe(204)
    expect(await readdir(root)).toEqual([])
  })

  it('88 89: tell health, and variables that are no secret', async () => {
    expect(json((await raw(sandboxd.restPort, 'GET', '/v1/health')).text)).toMatchObject({ status: 'ok' })
    const { env } = json((await raw(sandboxd.restPort, 'GET', '/v1/metadata')).text) as { env: object }
    expect(env).toMatchObject({ SANDBOX_NAME: 'box' })
    expect(env).not.toHaveProperty('SANDBOX_API_TOKEN')
  })
})

describe("sandboxd's processes", () => {
  const baseUrl = () => `http://127.0.0.1:${sandboxd.grpcPort}`
  const client = () => createClient(ProcessService, createGrpcTransport({ baseUrl: baseUrl() }))
  const codeOf = (call: Promise<unknown>) =>
    call.then(
      () => 'no failure',
      (error: unknown) => Code[ConnectError.from(error).code],
    )
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString()

  it.each([
    { protocol: 'gRPC', transport: () => createGrpcTransport({ baseUrl: baseUrl() }) },
    { protocol: 'gRPC-Web', transport: () => createGrpcWebTransport({ baseUrl: baseUrl(), httpVersion: '1.1' }) },
    { protocol: 'Connect', transport: () => createConnectTransport({ baseUrl: baseUrl(), httpVersion: '1.1' }) },
  ])('90 95: run to their end over $protocol', async ({ transport }) => {
    await writeFile(join(root, 'file'), 'from rest')
    const config = { command: ['sh', '-c', 'cat file; echo $A; exit 3'], envVars: { A: 'b' } }
    const result = await createClient(ProcessService, transport()).execute({ config })
    expect([result.exitCode, text(result.stdout)]).toEqual([3, 'from restb\n'])
  })

  it.each([
    { what: 'no command', config: { command: [] }, code: 'InvalidArgument' },
    { what: 'a directory outside', config: { command: ['true'], cwd: '../..' }, code: 'PermissionDenied' },
    { what: 'a missing directory', config: { command: ['true'], cwd: 'none' }, code: 'NotFound' },
    { what: 'a missing program', config: { command: ['no-such-program'] }, code: 'NotFound' },
    {
      what: 'more output than fits',
      config: { command: ['head', '-c', '5000000', '/dev/zero'] },
      code: 'ResourceExhausted',
    },
  ])('90: $what is $code', async ({ config, code }) => {
    expect(await codeOf(client().execute({ config }))).toBe(code)
  })

  it.each([
    { protocol: 'gRPC', transport: createGrpcTransport, options: {} },
    { protocol: 'gRPC-Web', transport: createGrpcWebTransport, options: { httpVersion: '1.1' } },
    { protocol: 'Connect', transport: createConnectTransport, options: { httpVersion: '1.1' } },
  ] as const)(
    'are not given a message that unpacks to gigabytes, least of all before the token is asked for: $protocol',
    async ({ transport, options }) => {
      const { processes } = daemon
      const ports = { host: '127.0.0.1', restPort: 0, grpcPort: 0, metadataPrefix: 'SANDBOX_' }
      const refuse = () => 'a bearer token is needed'
      const guarded = await serveSandboxd({ ...ports, root, env: {}, processes, log: silentLogger, refuse })
      const sending = { sendCompression: compressionGzip, compressMinBytes: 0 }
      const at = { baseUrl: `http://127.0.0.1:${guarded.grpcPort}`, httpVersion: '2', ...options, ...sending } as const
      const caller = createClient(ProcessService, transport(at))
      const write = (bytes: number) =>
        caller.writeStdin({ processId: 1, payload: { case: 'input', value: Buffer.alloc(bytes) } })
      try {
        expect(await codeOf(write(32 * 1024 * 1024))).toBe('ResourceExhausted')
        expect(await codeOf(write(1024 * 1024))).toBe('Unauthenticated')
      } finally {
        await guarded.close()
      }
    },
  )

  it('91 92: stream, take input and signals', async () => {
    const events: string[] = []
    const config = { command: ['sh', '-c', 'cat; echo err >&2; exit 7'] }
    for await (const { event } of client().start({ config })) {
      if (event.case === 'init') {
        const { processId } = event.value
        expect(processId).toBeGreaterThan(0)
        expect(await codeOf(client().sendSignal({ processId, signal: Signal.UNSPECIFIED }))).toBe('InvalidArgument')
        expect(await codeOf(client().resizeTTY({ processId, cols: 1, rows: 1 }))).toBe('FailedPrecondition')
        await client().writeStdin({ processId, payload: { case: 'input', value: Buffer.from('in') } })
        await client().writeStdin({ processId, payload: { case: 'eof', value: {} } })
      } else if (event.case === 'exit') events.push(`exit ${event.value.exitCode}`)
      else if (event.case) events.push(`${event.case} ${text(event.value).trim()}`)
    }
    expect(events.sort()).toEqual(['exit 7', 'stderr err', 'stdout in'])
    expect(await codeOf(client().sendSignal({ processId: 99, signal: Signal.SIGTERM }))).toBe('NotFound')
    for await (const { event } of client().start({ config: { command: ['sleep', '1000'] } })) {
      if (event.case === 'init') await client().sendSignal({ processId: event.value.processId, signal: Signal.SIGTERM })
      if (event.case === 'exit') expect(event.value.exitCode).toBe(143)
    }
  })

  it('93: have a terminal of the size that was asked for, which can be changed', async () => {
    let screen = ''
    let exitCode: number | undefined
    let isResized = false
    const config = { command: ['sh', '-c', 'stty size; read line; stty size'] }
    let processId = 0
    for await (const { event } of client().start({ config, pty: { cols: 80, rows: 24 } })) {
      if (event.case === 'init') processId = event.value.processId
      else if (event.case === 'exit') exitCode = event.value.exitCode
      else if (event.case) screen += text(event.value)
      if (isResized || !screen.includes('24 80')) continue
      isResized = true
      await client().resizeTTY({ processId, cols: 100, rows: 30 })
      await client().writeStdin({ processId, payload: { case: 'input', value: Buffer.from('go\n') } })
    }
    expect([exitCode, screen]).toEqual([0, expect.stringContaining('30 100')])
  })

  it('are killed with all they started when their caller goes', async () => {
    const stop = new AbortController()
    const config = { command: ['sh', '-c', 'sleep 1000 & sleep 1000'] }
    const reading = (async () => {
      for await (const { event } of client().start({ config }, { signal: stop.signal })) {
        if (event.case === 'init') stop.abort()
      }
    })()
    expect(await codeOf(reading)).toBe('Canceled')
    await expect.poll(async () => (await daemon.processes.records()).filter(({ exit }) => !exit)).toEqual([])
  })
})

describe('the end of the daemon', () => {
  const client = () =>
    createClient(ProcessService, createGrpcTransport({ baseUrl: `http://127.0.0.1:${sandboxd.grpcPort}` }))

  it.each([
    { what: 'one that goes when it is asked', command: 'echo up; sleep 1000', exitCode: 143 },
    { what: 'one that does not', command: 'trap "" TERM; echo up; while :; do sleep 0.05; done', exitCode: 137 },
  ])('94: is told to whoever follows a command as its exit: $what', async ({ command, exitCode }) => {
    const config = { command: ['sh', '-c', command] }
    const ends: number[] = []
    let ended: Promise<void> | undefined
    for await (const { event } of client().start({ config })) {
      // What `runDaemon` does when it gets a signal.
      if (event.case === 'stdout') ended = daemon.terminate(100).then(() => sandboxd.close(60_000))
      if (event.case === 'exit') ends.push(event.value.exitCode)
    }
    await ended
    expect(ends).toEqual([exitCode])
  })

  it('94: finds no two commands under one id, however many start at once', async () => {
    const ids = await Promise.all(
      Array.from({ length: 30 }, async () => {
        const found: number[] = []
        for await (const { event } of client().start({ config: { command: ['true'] } })) {
          if (event.case === 'init') found.push(event.value.processId)
        }
        return found[0]
      }),
    )
    expect(new Set(ids).size).toBe(30)
  })
})

describe('tokens of the daemon', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const check = {
    publicKey: readPublicKey(publicKey.export({ type: 'spki', format: 'pem' }).toString()),
    sandbox: 'ns/box',
  }
  const now = new Date('2026-01-01T00:00:00Z')
  const seconds = now.getTime() / 1000
  const token = (claims: object, header: object = { alg: 'EdDSA' }) => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const signed = `${part(header)}.${part(claims)}`
    return `Bearer ${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`
  }

  it.each([
    { what: 'a fresh token for this sandbox', header: token({ sub: 'ns/box', exp: seconds + 60 }), reason: undefined },
    { what: 'no token', header: undefined, reason: 'a bearer token is needed' },
    { what: 'another sandbox', header: token({ sub: 'ns/other', exp: seconds + 60 }), reason: 'for another sandbox' },
    {
      what: 'a sandbox of the same name in another namespace',
      header: token({ sub: 'other/box', exp: seconds + 60 }),
      reason: 'for another sandbox',
    },
    { what: 'a name without a namespace', header: token({ sub: 'box', exp: seconds + 60 }), reason: 'another sandbox' },
    { what: 'a token at its end', header: token({ sub: 'ns/box', exp: seconds }), reason: 'has expired' },
    {
      what: 'a token for a day',
      header: token({ sub: 'ns/box', exp: seconds + 86_400 }),
      reason: 'longer than an hour',
    },
    { what: 'a token without an end', header: token({ sub: 'ns/box' }), reason: 'has no end' },
    {
      what: 'no algorithm',
      header: token({ sub: 'box', exp: seconds + 60 }, { alg: 'none' }),
      reason: 'not signed with',
    },
    { what: 'a changed token', header: `${token({ sub: 'box', exp: seconds + 60 })}AA`, reason: 'signature' },
  ])('$what', ({ header, reason }) => {
    const refused = refuseToken(check, header, now)
    if (reason === undefined) expect(refused).toBeUndefined()
    else expect(refused).toContain(reason)
  })

  it.each([
    { what: 'both', env: { CORRAL_DAEMON_SANDBOX: 'ns/box', HOSTNAME: 'pod' }, file: undefined, is: 'ns/box' },
    { what: 'its namespace', env: { CORRAL_DAEMON_NAMESPACE: 'ns', HOSTNAME: 'box' }, file: undefined, is: 'ns/box' },
    { what: 'its name alone', env: { CORRAL_DAEMON_SANDBOX: 'box' }, file: 'account\n', is: 'account/box' },
    { what: 'nothing', env: {}, file: 'account', is: 'account/host' },
    { what: 'its name alone', env: { CORRAL_DAEMON_SANDBOX: 'box' }, file: undefined, is: undefined },
    { what: 'nothing', env: {}, file: undefined, is: undefined },
  ])('a daemon that is told $what, with the file of an account $file, is $is', async ({ env, file, is }) => {
    const path = join(directory, 'namespace')
    if (file !== undefined) await writeFile(path, file)
    if (is === undefined) expect(() => ownSandbox(env, 'host', path)).toThrow('CORRAL_DAEMON_SANDBOX=namespace/')
    else expect(ownSandbox(env, 'host', path)).toBe(is)
  })

  it('49: flags of sandboxd that make no sense are refused', () => {
    const on = { CORRAL_DAEMON_SANDBOXD: 'true' }
    expect(readSandboxdSettings({}, ['--nonsense'])).toBeUndefined()
    expect(readSandboxdSettings(on, ['--rest-port=81', '--root-dir', '/x/'])).toMatchObject({
      restPort: 81,
      root: '/x',
    })
    expect(() => readSandboxdSettings(on, ['--rest-port', '9090'])).toThrow('must differ')
    expect(() => readSandboxdSettings(on, ['--nonsense'])).toThrow('unknown flag --nonsense')
  })
})

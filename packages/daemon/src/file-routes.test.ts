import { execFileSync } from 'node:child_process'
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger, systemClock } from '@corral/ports'
import { DaemonClient } from '@corral/protocol'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createDaemon, type Daemon } from './create-daemon.js'
import { type DaemonServer, serveDaemon } from './daemon-server.js'

let directory: string
let daemon: Daemon
let server: DaemonServer
let client: DaemonClient

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'corral-files-'))
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
  client = new DaemonClient({ fetch, baseUrl: `http://127.0.0.1:${server.port}` })
})
afterEach(async () => {
  await server.close(100)
  await daemon.close()
  await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
})
const at = (name: string) => join(directory, name)

describe('files', () => {
  it.each([{ from: 'tree/pipe' }, { from: 'tree' }])(
    'copying "$from" with a named pipe in it is refused in words, not with an internal error',
    async ({ from }) => {
      await mkdir(at('tree'))
      execFileSync('sh', ['-c', 'mkfifo "$0"', at('tree/pipe')])
      const copying = client.fileOperation({ operation: 'copy', from: at(from), to: at('to'), recursive: true })
      await expect(copying).rejects.toMatchObject({
        code: 'Invalid',
        message: expect.stringContaining(`"${at(from)}" is`),
      })
    },
  )

  it.each(['plain.txt', 'with space.txt', 'ümlaut%20#?&.txt', "quote's.txt", 'new\nline'])(
    'writes and reads %j byte for byte',
    async (name) => {
      const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => i % 251)
      await client.writeFile(at(name), bytes)
      expect(Buffer.from(await client.readFile(at(name))).equals(bytes)).toBe(true)
      expect(Buffer.from(await readFile(at(name))).equals(bytes)).toBe(true)
    },
  )

  it.each<{ what: string; call: () => Promise<unknown>; says: () => string }>([
    {
      what: 'reading what is not there',
      call: () => client.readFile(at('gone')),
      says: () => `"${at('gone')}": no such file or directory`,
    },
    {
      what: 'writing into a directory that is not there',
      call: () => client.writeFile(at('gone/file'), 'x'),
      says: () => `"${at('gone')}": no such file or directory`,
    },
    {
      what: 'writing under a name that is too long',
      call: () => client.writeFile(at('x'.repeat(256)), 'x'),
      says: () => `"${at('x'.repeat(256))}": name too long`,
    },
    {
      what: 'moving a directory into itself',
      call: async () => {
        await mkdir(at('dir'))
        await client.fileOperation({ operation: 'move', from: at('dir'), to: at('dir/below'), overwrite: false })
      },
      says: () => `"${at('dir')}" to "${at('dir/below')}": invalid argument`,
    },
  ])('$what names the path, not a system call or a temporary file', async ({ call, says }) => {
    await expect(call()).rejects.toMatchObject({ message: says() })
  })

  it('makes directories and sets the mode when asked, and keeps a mode that is there', async () => {
    await expect(client.writeFile(at('a/b/c'), 'x')).rejects.toMatchObject({ code: 'NotFound' })
    await client.writeFile(at('a/b/c'), 'x', { mkdirs: true, mode: '0750' })
    expect(await client.statFile(at('a/b/c'))).toMatchObject({ name: 'c', type: 'file', size: 1, mode: '0750' })
    await client.writeFile(at('a/b/c'), 'yy')
    expect(await client.statFile(at('a/b/c'))).toMatchObject({ size: 2, mode: '0750' })
  })

  it('replaces a link instead of writing through it, and leaves no temporary file', async () => {
    await writeFile(at('target'), 'safe')
    await symlink(at('target'), at('link'))
    expect(await client.statFile(at('link'))).toMatchObject({ type: 'symlink' })
    await client.writeFile(at('link'), 'new')
    expect(await readFile(at('target'), 'utf8')).toBe('safe')
    expect((await readdir(directory)).filter((name) => name.startsWith('.corral-'))).toEqual([])
  })

  it('keeps the old content when the sender goes away in the middle', async () => {
    await client.writeFile(at('file'), 'old')
    const stop = new AbortController()
    async function* half() {
      yield new Uint8Array(100_000)
      stop.abort()
      await new Promise(() => {})
    }
    await expect(client.writeFile(at('file'), half(), { signal: stop.signal })).rejects.toMatchObject({
      code: 'Aborted',
    })
    const temporary = async () => (await readdir(directory)).filter((name) => name.startsWith('.corral-'))
    await expect.poll(temporary).toEqual([])
    expect(await readFile(at('file'), 'utf8')).toBe('old')
  })

  it('lists a file whose name is no UTF-8, and what lies below such a directory', async () => {
    const odd = Buffer.concat([Buffer.from(`${directory}/odd-`), Buffer.from([0xff])])
    await mkdir(odd)
    await writeFile(Buffer.concat([odd, Buffer.from('/below')]), 'x')
    expect((await client.listDirectory(directory)).entries.map(({ name }) => name)).toContain('odd-\ufffd')
    const paths: string[] = []
    for await (const { path } of client.walk(directory)) paths.push(path)
    expect(paths).toContain('odd-\ufffd/below')
  })

  it.each<{ what: string; path: unknown }>([
    { what: 'a number', path: 5 },
    { what: 'nothing', path: undefined },
    { what: 'half of a surrogate pair', path: '/tmp/a\ud800' },
  ])('refuses $what as a path instead of calling it an internal error', async ({ path }) => {
    await expect(client.writeFile(path as string, 'x')).rejects.toMatchObject({
      code: 'Invalid',
      message: expect.stringContaining('is not an absolute path'),
    })
  })

  it('refuses data whose pieces are numbers instead of waiting for ever', async () => {
    async function* numbers() {
      yield 5
    }
    const data = numbers() as unknown as AsyncIterable<Uint8Array>
    await expect(client.writeFile(at('file'), data)).rejects.toThrow(/neither bytes nor text/)
    expect(await client.statFile(at('file'))).toBeUndefined()
  })

  it('goes on telling of a watched file after another has taken its name', async () => {
    await client.writeFile(at('watched'), '0')
    const seen: string[] = []
    for await (const change of client.watchFiles(at('watched'))) {
      if (change.type === 'heartbeat') continue
      seen.push(`${change.type} ${'path' in change ? change.path : ''}`)
      if (seen.length === 1) await client.writeFile(at('other'), 'x')
      if (seen.length <= 2) await client.writeFile(at('watched'), String(seen.length))
      if (seen.length === 3) await client.deleteFile(at('watched'))
      if (seen.length === 4) await client.writeFile(at('watched'), 'again')
      if (seen.length === 5) break
    }
    expect(seen).toEqual(['ready ', 'created watched', 'created watched', 'deleted watched', 'created watched'])
  })

  it('ends the watch of a directory that is deleted, instead of being silent for ever', async () => {
    await mkdir(at('gone/below'), { recursive: true })
    const seen: string[] = []
    for await (const change of client.watchFiles(at('gone'))) {
      if (change.type === 'ready') await rm(at('gone'), { recursive: true })
      else if ('path' in change) seen.push(`${change.type} ${change.path}`)
    }
    expect(seen.at(-1)).toBe('deleted ')
    expect(seen.filter((line) => line === 'deleted ')).toHaveLength(1)
  })

  it('lists, and deletes what it is told to delete and no more', async () => {
    await client.writeFile(at('d/x'), '1', { mkdirs: true })
    await mkdir(at('d/sub'))
    const { entries } = await client.listDirectory(at('d'))
    expect(entries.map(({ name, type }) => [name, type])).toEqual([
      ['sub', 'directory'],
      ['x', 'file'],
    ])
    await expect(client.deleteFile(at('d'))).rejects.toMatchObject({ code: 'DirectoryNotEmpty' })
    await client.deleteFile(at('d'), { recursive: true })
    await client.deleteFile(at('d'))
    expect(await client.statFile(at('d'))).toBeUndefined()
  })

  it.each([
    { what: 'a file that is not there', call: () => client.readFile(at('nope')), code: 'NotFound' },
    { what: 'a directory as a file', call: () => client.readFile(directory), code: 'IsADirectory' },
    { what: 'writing over a directory', call: () => client.writeFile(directory, ''), code: 'IsADirectory' },
    { what: 'a path through a file', call: () => client.readFile('/etc/passwd/x'), code: 'NotADirectory' },
    { what: 'a wrong mode', call: () => client.writeFile(at('x'), '', { mode: '9' }), code: 'Invalid', says: /mode/ },
    { what: 'a device', call: () => client.readFile('/dev/null'), code: 'Invalid', says: /regular file/ },
    { what: 'the root', call: () => client.deleteFile('/', { recursive: true }), code: 'Invalid', says: /root/ },
  ])('answers $what with a typed error', async ({ call, code, says = /./ }) => {
    await expect(call()).rejects.toMatchObject({ code, message: expect.stringMatching(says) })
  })

  it.each([
    { path: '/v1/files/tmp/a%00b', status: 400, says: /NUL/ },
    { path: '/v1/files/%zz', status: 400, says: /percent/ },
    { path: '/v1/processes/..%2Fx/output', status: 404, says: /process/ },
    { path: '/nothing', status: 404, says: /nothing/ },
  ])('answers GET $path with $status', async ({ path, status, says }) => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`)
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({
      error: { code: expect.any(String), message: expect.stringMatching(says) },
    })
  })
})

describe('archives', () => {
  it('carry a tree out and in again, with modes and links', async () => {
    await client.writeFile(at('from/a/run.sh'), 'echo', { mkdirs: true })
    await chmod(at('from/a/run.sh'), 0o755)
    await symlink('a/run.sh', at('from/link'))
    await client.putTar(at('to/deep'), client.getTar(at('from')))
    expect(await readFile(at('to/deep/link'), 'utf8')).toBe('echo')
    expect((await lstat(at('to/deep/a/run.sh'))).mode & 0o777).toBe(0o755)
    expect((await lstat(at('to/deep/link'))).isSymbolicLink()).toBe(true)
  })

  it('say what is wrong with a stream that is none', async () => {
    await expect(client.putTar(at('to'), 'this is not a tar archive'.repeat(50))).rejects.toMatchObject({
      code: 'ArchiveFailed',
      message: expect.stringContaining('tar'),
    })
    await expect(client.putTar('/etc/passwd', '')).rejects.toMatchObject({ code: 'NotADirectory' })
    const reading = (async () => {
      for await (const _ of client.getTar(at('nowhere')));
    })()
    await expect(reading).rejects.toMatchObject({ code: 'NotFound' })
  })
})

import { once } from 'node:events'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { build } from 'esbuild'
import { afterEach, beforeEach, expect, it } from 'vitest'
import {
  type DataDirectory,
  dataDirectoryAt,
  defaultDataDirectory,
  ensureSecret,
  isLocked,
  lockDataDirectory,
  makeDataDirectory,
  prepareDataDirectory,
  readPorts,
  writePorts,
} from './data-directory.js'

let parent: string
let directory: DataDirectory

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'corral-data-'))
  chmodSync(parent, 0o711)
  directory = dataDirectoryAt(join(parent, 'data'))
})

afterEach(() => rmSync(parent, { recursive: true, force: true }))

it('lets others pass but not look, and keeps what is secret to itself', () => {
  prepareDataDirectory(directory)
  const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8)
  expect(mode(directory.path)).toBe('711')
  for (const path of [directory.api, directory.tls, directory.tasks, directory.mirrors, directory.secrets])
    expect(mode(path)).toBe('700')
})

it('two commands that make it at the same moment both succeed', async () => {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('data-directory.ts', import.meta.url))],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'cjs',
    conditions: ['corral-source'],
  })
  // The threads start each round together, at a counter they all watch.
  const script = `${outputFiles[0]?.text}
    const { parentPort, workerData } = require('node:worker_threads')
    const arrived = new Int32Array(workerData.arrived)
    for (let round = 1; round <= workerData.rounds; round++) {
      Atomics.add(arrived, 0, 1)
      while (Atomics.load(arrived, 0) < round * workerData.threads);
      module.exports.makeDataDirectory(workerData.parent + '/' + round + '/a/b/c/d')
    }
    parentPort.postMessage('done')`
  const workerData = { arrived: new SharedArrayBuffer(4), rounds: 50, threads: 2, parent }
  const made = Array.from({ length: workerData.threads }, () =>
    once(new Worker(script, { eval: true, workerData }), 'message'),
  )
  expect(await Promise.all(made)).toEqual([['done'], ['done']])
})

it('is taken by one platform at a time and free again afterwards', async () => {
  prepareDataDirectory(directory)
  const first = await lockDataDirectory(directory)
  await expect(lockDataDirectory(directory)).rejects.toMatchObject({
    exitCode: 3,
    message: expect.stringContaining('in use'),
  })
  await first.release()
  const second = await lockDataDirectory(directory)
  await second.release()
})

it('is taken for every link that leads to it', async () => {
  prepareDataDirectory(directory)
  symlinkSync(directory.path, join(parent, 'link'))
  const linked = dataDirectoryAt(join(parent, 'link'))
  const lock = await lockDataDirectory(directory)
  await expect(lockDataDirectory(linked)).rejects.toMatchObject({ message: expect.stringContaining('in use') })
  expect(await isLocked(linked)).toBe(true)
  await lock.release()
})

it.each<{ what: string; fill: (path: string) => void }>([
  { what: 'a repository', fill: (path) => mkdirSync(join(path, '.git')) },
  { what: 'a directory for everybody', fill: (path) => writeFileSync(join(path, 'note of another'), '') },
  { what: 'a home directory', fill: (path) => mkdirSync(join(path, '.corral')) },
])('$what is not taken for one, and stays as it is', ({ fill }) => {
  mkdirSync(directory.path)
  chmodSync(directory.path, 0o1777)
  fill(directory.path)
  const before = readdirSync(directory.path)
  const refusal = {
    exitCode: 3,
    message: expect.stringContaining(before[0] ?? ''),
    hint: expect.stringMatching(/empty/),
  }
  expect(() => makeDataDirectory(directory.path)).toThrow(expect.objectContaining(refusal))
  expect(readdirSync(directory.path)).toEqual(before)
  expect(statSync(directory.path).mode & 0o7777).toBe(0o1777)
})

it.each<{ what: string; entries: string[] }>([
  { what: 'an empty directory', entries: [] },
  { what: 'a new disk', entries: ['lost+found'] },
  { what: 'what commands keep before the first start', entries: ['secrets', 'agents', 'settings.json', 'prices.json'] },
  { what: 'what a first start left that was cut off', entries: ['platform.log', 'api', 'schema-version.7.new'] },
  { what: 'one with files beside its own', entries: ['schema-version', 'my notes'] },
])('$what is taken', ({ entries }) => {
  mkdirSync(directory.path)
  for (const name of entries) writeFileSync(join(directory.path, name), '')
  makeDataDirectory(directory.path)
  expect(statSync(directory.path).mode & 0o777).toBe(0o711)
})

it.each(['a\\b', 'a\nb'])('a path that git or Node could not use is refused at once: %j', (name) => {
  expect(() => makeDataDirectory(join(parent, name))).toThrow(/backslash or a line break/)
  expect(readdirSync(parent)).toEqual([])
})

it('refuses what a newer version wrote', () => {
  prepareDataDirectory(directory)
  writeFileSync(join(directory.path, 'schema-version'), '99\n')
  expect(() => prepareDataDirectory(directory)).toThrow(/newer Corral/)
})

it('makes a secret once, readable by nobody else', () => {
  prepareDataDirectory(directory)
  const token = ensureSecret(directory, 'token')
  expect(ensureSecret(directory, 'token')).toBe(token)
  expect(readFileSync(join(directory.path, 'token'), 'utf8').trim()).toBe(token)
  expect(statSync(join(directory.path, 'token')).mode & 0o077).toBe(0)
})

it.each(['', '\n', '\0\0\0\0'])('makes a secret again of which a lost power left %j', (left) => {
  prepareDataDirectory(directory)
  writeFileSync(join(directory.path, 'token'), left)
  const token = ensureSecret(directory, 'token')
  expect(token).toMatch(/^[\w-]{43}$/)
  expect(ensureSecret(directory, 'token')).toBe(token)
})

it('remembers ports', () => {
  prepareDataDirectory(directory)
  expect(readPorts(directory)).toEqual({})
  writePorts(directory, { http: 1, api: 2 })
  expect(readPorts(directory)).toEqual({ http: 1, api: 2 })
})

it.each([
  { kept: '{"http":"x","api":-5,"broker":7}', ports: { broker: 7 } },
  { kept: '{"http":1.5,"api":65536,"other":7}', ports: {} },
  { kept: 'null', ports: {} },
  { kept: '[1]', ports: {} },
  { kept: '{"http":', ports: {} },
])('starts anew where the file of ports holds $kept', ({ kept, ports }) => {
  prepareDataDirectory(directory)
  writeFileSync(join(directory.path, 'ports.json'), kept)
  expect(readPorts(directory)).toEqual(ports)
})

it.runIf(process.getuid?.() === 0)('says so when the users of sandboxes cannot get through', () => {
  mkdirSync(join(parent, 'private'), { mode: 0o700 })
  expect(() => prepareDataDirectory(dataDirectoryAt(join(parent, 'private', 'data')))).toThrow(/cannot pass through/)
})

it('is below the home directory, for root in /var/lib, or where CORRAL_DATA_DIR says', () => {
  expect(defaultDataDirectory({ CORRAL_DATA_DIR: '/x/y' })).toBe('/x/y')
  expect(defaultDataDirectory({ HOME: '/home/a' })).toBe(
    process.getuid?.() === 0 ? '/var/lib/corral' : '/home/a/.corral',
  )
})

it.each([
  { what: 'a file', path: () => join(parent, 'file') },
  { what: 'below a file', path: () => join(parent, 'file', 'data') },
  { what: 'where nothing can be made', path: () => '/proc/corral/data' },
])('that is $what is refused by name, with the next move', ({ path }) => {
  writeFileSync(join(parent, 'file'), '')
  const message = expect.stringContaining(`${path()} cannot be used`)
  const refusal = { exitCode: 3, message, hint: expect.stringContaining('--data-dir') }
  expect(() => prepareDataDirectory(dataDirectoryAt(path()))).toThrow(expect.objectContaining(refusal))
})

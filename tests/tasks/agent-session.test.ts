import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findAgent } from '@corral/agents'
import { createDaemon } from '@corral/daemon'
import { silentLogger, systemClock } from '@corral/ports'
import { DaemonClient } from '@corral/protocol'
import { temporaryDirectory } from '@corral/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { memoryTaskRecords } from '../../packages/tasks/src/records/memory-task-records.js'
import { isSessionPath, keepSession, restoreSession } from '../../packages/tasks/src/thread/agent-session.js'

const adapter = findAgent('claude')!
const signal = new AbortController().signal
const release: (() => PromiseLike<unknown>)[] = []
let record: ReturnType<ReturnType<typeof memoryTaskRecords>['of']>

beforeEach(() => {
  record = memoryTaskRecords({ now: () => new Date(0) }).of('u')
})
afterEach(async () => {
  for (const each of release.splice(0).reverse()) await each()
})

/** A real daemon on a directory of its own, in which the agent's state lies. */
async function sandbox(): Promise<{ directory: string; place: Parameters<typeof keepSession>[0] }> {
  const scratch = temporaryDirectory()
  const directory = join(scratch.path, 'state')
  mkdirSync(directory)
  const daemon = await createDaemon({
    workDir: scratch.path,
    stateDir: join(scratch.path, 'daemon'),
    clock: systemClock,
    log: silentLogger,
    env: process.env,
    defaultCwd: scratch.path,
    onRunnerFinished: () => undefined,
  })
  release.push(
    () => scratch[Symbol.asyncDispose](),
    () => daemon.close(),
  )
  const client = new DaemonClient({ fetch: async (url, init) => daemon.fetch(new Request(url, init)) })
  return { directory, place: { daemon: client, adapter, record, stateDirectory: directory, signal } }
}

describe('the session of an agent', () => {
  it('is taken out of one sandbox and put into another, without what links lead to', async () => {
    const from = await sandbox()
    const project = join(from.directory, 'claude/projects/-workspace-repo')
    mkdirSync(project, { recursive: true })
    writeFileSync(join(project, 'id.jsonl'), '{"said":"hello"}\n')
    writeFileSync(join(from.directory, 'claude/settings.json'), 'not of the session')
    writeFileSync(join(from.directory, 'secret'), 'elsewhere')
    symlinkSync('../../../secret', join(project, 'link.jsonl'))
    symlinkSync('..', join(from.directory, 'claude/projects/loop'))
    expect(await keepSession(from.place)).toEqual({ sizeBytes: expect.any(Number) })
    const to = await sandbox()
    expect(await restoreSession(to.place)).toBe(true)
    const restored = join(to.directory, 'claude/projects/-workspace-repo')
    expect(readFileSync(join(restored, 'id.jsonl'), 'utf8')).toBe('{"said":"hello"}\n')
    expect(['link.jsonl', '../loop', '../../settings.json'].filter((name) => existsSync(join(restored, name)))).toEqual(
      [],
    )
  })

  it.each([
    { what: 'more files', limits: { files: 1, bytes: 1000 } },
    { what: 'more bytes', limits: { files: 10, bytes: 5 } },
  ])('is not kept with $what than are allowed', async ({ limits }) => {
    const { directory, place } = await sandbox()
    mkdirSync(join(directory, 'claude/projects'), { recursive: true })
    for (const name of ['a', 'b']) writeFileSync(join(directory, 'claude/projects', name), 'four')
    expect(await keepSession(place, limits)).toBeUndefined()
    expect(await record.find('session')).toBeUndefined()
    expect(await restoreSession(place)).toBe(false)
  })

  it('of a record that was tampered with is written nowhere else', async () => {
    const { directory, place } = await sandbox()
    const files = ['../outside', 'claude/projects/../../up', '/tmp/corral-absolute', 'claude/projects/fine'].map(
      (path) => ({
        path,
        content: Buffer.from('x').toString('base64'),
      }),
    )
    const chunks = (async function* () {
      yield Buffer.from(JSON.stringify({ files }))
    })()
    await record.write('session', chunks, { signal })
    await restoreSession(place)
    expect(existsSync(join(directory, 'claude/projects/fine'))).toBe(true)
    const elsewhere = [join(directory, '../outside'), join(directory, 'up'), '/tmp/corral-absolute']
    expect(elsewhere.filter((path) => existsSync(path))).toEqual([])
  })

  it.each([
    ['claude/projects/x/y.jsonl', true],
    ['claude/projects', true],
    ['claude/projects/../../.ssh/id', false],
    ['claude/projectsx/y', false],
    ['/claude/projects/y', false],
    ['claude/projects//y', false],
    ['other/y', false],
  ])('%s belongs to it: %s', (path, belongs) => {
    expect(isSessionPath(path, ['claude/projects'])).toBe(belongs)
  })
})

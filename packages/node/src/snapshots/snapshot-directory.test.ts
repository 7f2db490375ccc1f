import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { silentLogger } from '@corral/ports'
import { build } from 'esbuild'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { SnapshotDirectory } from './snapshot-directory.js'

const record = {
  name: 'base',
  namespace: 'default',
  podUid: 'pod-1',
  paths: ['/workspace/repo', '/home/agent'],
  bytes: 1,
  files: 2,
  createdAt: '2026-01-01T00:00:00.000Z',
  labels: {},
  stripped: { setuid: 0, devices: 0, sockets: 0, attributes: 0 },
  ownerUid: 0,
}

let dataDir = ''
let sources: string[] = []
const directory = () => new SnapshotDirectory(dataDir, silentLogger)

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'corral-snapshots-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  makeSources()
})

function makeSources(): void {
  sources = ['repo', 'home'].map((name) => join(dataDir, 'pods', 'pod-1', name))
  for (const source of sources) {
    mkdirSync(source, { recursive: true })
    writeFileSync(join(source, 'file'), source)
  }
}

describe('the directory of snapshots', () => {
  it('has what was taken, and only that', () => {
    directory().take(record, sources)
    const found = directory()
    expect(found.list()).toEqual([{ version: 1, ...record }])
    expect(found.list().map(({ name }) => name)).toEqual(['base'])
    expect(readFileSync(join(found.treePath('base', 1), 'file'), 'utf8')).toBe(sources[1])
    expect(sources.map((source) => existsSync(source))).toEqual([false, false])
  })

  it('leaves the directories where they are when the name is taken', () => {
    directory().take(record, sources)
    makeSources()
    expect(() => directory().take(record, sources)).toThrow(expect.objectContaining({ code: 'AlreadyExists' }))
    expect(sources.map((source) => existsSync(source))).toEqual([true, true])
  })

  it('puts all of them back when one cannot be moved', () => {
    const missing = join(dataDir, 'pods', 'pod-1', 'missing')
    expect(() => directory().take(record, [...sources, missing])).toThrow(expect.objectContaining({ code: 'Failed' }))
    expect(sources.map((source) => existsSync(source))).toEqual([true, true])
    expect(readdirSync(join(dataDir, 'snapshots'))).toEqual([])
  })

  it('does not remove what a pod holds, and removes it afterwards', async () => {
    const snapshots = directory()
    snapshots.take(record, sources)
    mkdirSync(join(dataDir, 'pods', 'pod-2'))
    snapshots.hold('pod-2', { name: 'base' })
    await expect(snapshots.remove('base')).rejects.toMatchObject({ code: 'InUse', message: /pod-2/ })
    snapshots.release('pod-2')
    await snapshots.remove('base')
    await snapshots.remove('base')
    expect(readdirSync(join(dataDir, 'snapshots'))).toEqual([])
  })

  it.each(['../pods', '.sealing-x', 'a/b'])('finds nothing under the name %s', (name) => {
    expect(directory().find(name)).toBe(undefined)
  })

  it('has all of a snapshot or nothing of it, whatever call the process that makes it is killed in', async () => {
    const program = join(dataDir, 'take.mjs')
    const entry = fileURLToPath(new URL('./snapshot-directory.ts', import.meta.url))
    await build({
      stdin: { contents: takeAndDie(entry), resolveDir: dataDir, loader: 'ts' },
      ...{ bundle: true, platform: 'node', format: 'esm', target: 'node20', conditions: ['corral-source'] },
      outfile: program,
    })
    const outcomes: string[] = []
    for (let step = 0, isKilled = true; isKilled; step++) {
      rmSync(join(dataDir, 'snapshots'), { recursive: true, force: true })
      rmSync(join(dataDir, 'pods'), { recursive: true, force: true })
      makeSources()
      const job = JSON.stringify({ step, dataDir, record, sources })
      const { signal, stderr } = spawnSync(process.execPath, [program, job], { encoding: 'utf8' })
      expect(stderr).toBe('')
      isKilled = signal === 'SIGKILL'
      const after = directory()
      const whole = after.list().filter((found) => existsSync(join(after.treePath(found.name, 1), 'file')))
      expect(after.list()).toEqual(whole)
      await after.sweep()
      expect(readdirSync(join(dataDir, 'snapshots'))).toEqual(whole.map(({ name }) => name))
      outcomes.push(isKilled ? (whole.length > 0 ? 'whole' : 'nothing') : 'done')
    }
    expect(outcomes.filter((outcome) => outcome === 'nothing').length).toBeGreaterThan(5)
    expect(outcomes.at(-1)).toBe('done')
    expect(outcomes.join(' ')).toMatch(/^(nothing )+(whole )+done$/)
  })
})

/** Makes a snapshot and kills itself before the call with the given number that changes the disk. */
function takeAndDie(entry: string): string {
  return `import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    const { step, dataDir, record, sources } = JSON.parse(process.argv[2])
    let calls = 0
    for (const name of ['mkdirSync', 'renameSync', 'openSync', 'writeFileSync', 'fsyncSync', 'closeSync']) {
      const real = fs[name]
      fs[name] = (...words) => {
        if (calls++ === step) process.kill(process.pid, 'SIGKILL')
        return real(...words)
      }
    }
    syncBuiltinESMExports()
    const { SnapshotDirectory } = await import(${JSON.stringify(entry)})
    new SnapshotDirectory(dataDir, { info() {} }).take(record, sources)`
}

import {
  existsSync,
  lstatSync,
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
import type { PersistentVolumeClaim, Pod, Stored, Volume } from '@corral/resources'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { claimDirectories } from './claim-directories.js'
import { ephemeralClaims, planClaim } from './claim-plan.js'
import { makeSubPaths } from './sub-paths.js'
import { volumeFiles } from './volume-files.js'
import { writeVolume } from './write-volume.js'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-volumes-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const bytes = (text: string): Uint8Array => Buffer.from(text)
const pod: Pod = {
  metadata: { name: 'p', namespace: 'ns', uid: 'u', labels: { b: '2', a: '1' } },
  spec: { containers: [] },
}
const facts = {
  podIP: '',
  hostIP: '',
  nodeName: '',
  allocatable: { cpuMillis: 0, memoryBytes: 0, ephemeralStorageBytes: 0 },
}
const sources = {
  configMaps: new Map([['cm', { one: bytes('1'), two: bytes('2') }]]),
  secrets: new Map([['s', { key: bytes('k') }]]),
}
const filesOf = (volume: Omit<Volume, 'name'>): string[] | undefined =>
  volumeFiles({ name: 'v', ...volume }, { pod, facts, sources })?.map(
    ({ path, content, mode }) => `${path}=${Buffer.from(content)} ${mode.toString(8)}`,
  )

describe('volumeFiles', () => {
  it.each<{ what: string; volume: Omit<Volume, 'name'>; are: string[] | undefined }>([
    { what: 'a ConfigMap', volume: { configMap: { name: 'cm' } }, are: ['one=1 644', 'two=2 644'] },
    {
      what: 'some keys of it',
      volume: { configMap: { name: 'cm', items: [{ key: 'two', path: 'd/x', mode: 0o600 }] } },
      are: ['d/x=2 600'],
    },
    { what: 'an optional one that is missing', volume: { configMap: { name: 'none', optional: true } }, are: [] },
    { what: 'a Secret', volume: { secret: { secretName: 's', defaultMode: 0o400 } }, are: ['key=k 400'] },
    {
      what: 'the pod itself',
      volume: { downwardAPI: { items: [{ path: 'l', fieldRef: { fieldPath: 'metadata.labels' } }] } },
      are: ['l=a="1"\nb="2" 644'],
    },
    {
      what: 'all of it together',
      volume: {
        projected: {
          sources: [{ configMap: { name: 'cm', items: [{ key: 'one', path: 'c' }] } }, { secret: { name: 's' } }],
        },
      },
      are: ['c=1 644', 'key=k 644'],
    },
    { what: 'nothing of an emptyDir', volume: { emptyDir: {} }, are: undefined },
  ])('of $what', ({ volume, are }) => {
    expect(filesOf(volume)).toEqual(are)
  })

  it.each<{ when: string; volume: Omit<Volume, 'name'>; says: RegExp }>([
    { when: 'the ConfigMap is missing', volume: { configMap: { name: 'none' } }, says: /configmap "none" not found/ },
    {
      when: 'the key is missing',
      volume: { secret: { secretName: 's', items: [{ key: 'x', path: 'x' }] } },
      says: /non-existent secret key: x/,
    },
    {
      when: 'the path leaves the volume',
      volume: { configMap: { name: 'cm', items: [{ key: 'one', path: '../x' }] } },
      says: /invalid path/,
    },
  ])('are refused when $when', ({ volume, says }) => {
    expect(() => filesOf(volume)).toThrow(says)
  })
})

describe('writeVolume', () => {
  const file = (path: string, text: string) => ({ path, content: bytes(text), mode: 0o640 })
  const uid = process.getuid?.() ?? 0

  it('replaces all files at one moment and changes nothing when nothing changed', async () => {
    expect(await writeVolume(directory, [file('a', '1'), file('d/b', '2')], uid)).toBe(true)
    expect(readFileSync(join(directory, 'd/b'), 'utf8')).toBe('2')
    expect(statSync(join(directory, 'a')).mode & 0o777).toBe(0o640)
    expect(lstatSync(join(directory, 'a')).isSymbolicLink()).toBe(true)
    expect(await writeVolume(directory, [file('a', '1'), file('d/b', '2')], uid)).toBe(false)

    expect(await writeVolume(directory, [file('a', 'new'), file('c', '3')], uid)).toBe(true)
    expect(readFileSync(join(directory, 'a'), 'utf8')).toBe('new')
    expect(readdirSync(directory).filter((name) => !name.startsWith('..'))).toEqual(['a', 'c'])
    expect(readdirSync(directory).filter((name) => name.startsWith('..v'))).toHaveLength(1)
  })
})

describe('sub-paths', () => {
  const below = (relative: string, readOnly = false) => ({
    root: directory,
    relative,
    source: join(directory, relative),
    readOnly,
  })
  const uid = process.getuid?.() ?? 0

  it('are made where they are missing, and may be a file', () => {
    makeSubPaths([below('a/b')], uid)
    expect(statSync(join(directory, 'a/b')).isDirectory()).toBe(true)
    writeFileSync(join(directory, 'a/f'), '')
    expect(() => makeSubPaths([below('a/f'), below('a/b')], uid)).not.toThrow()
  })

  it.each([
    { where: 'a directory outside', to: () => tmpdir() },
    { where: 'a file outside', to: () => '/etc/hostname' },
    { where: 'another place in the volume', to: () => 'inside' },
  ])('never follow a link of the pod to $where', ({ to }) => {
    mkdirSync(join(directory, 'inside'))
    symlinkSync(to(), join(directory, 'link'))
    expect(() => makeSubPaths([below('link')], uid)).toThrow(/leads out of its volume/)
    expect(() => makeSubPaths([below('link/x')], uid)).toThrow(/leads out of its volume/)
    expect(existsSync(join(directory, 'inside', 'x'))).toBe(false)
  })

  it('follow the links that files from the API hang on', async () => {
    await writeVolume(directory, [{ path: 'v', content: bytes('1'), mode: 0o644 }], uid)
    expect(() => makeSubPaths([below('v', true)], uid)).not.toThrow()
    expect(() => makeSubPaths([below('none', true)], uid)).toThrow(/failed to prepare subPath/)
  })
})

const claim = (rest: Partial<PersistentVolumeClaim> = {}): Stored<PersistentVolumeClaim> => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '2Gi' } } },
  ...rest,
  metadata: { name: 'c', namespace: 'ns', uid: 'cu', resourceVersion: '1', creationTimestamp: '' },
})

describe('planClaim', () => {
  it.each<{
    when: string
    given: Stored<PersistentVolumeClaim>
    hasVolume?: boolean
    isDefault?: boolean
    does: string[]
  }>([
    { when: 'it names no class', given: claim(), does: ['createVolume', 'bind'] },
    { when: 'it names ours', given: claim({ spec: { storageClassName: 'local' } }), does: ['createVolume', 'bind'] },
    { when: 'its volume is there', given: claim(), hasVolume: true, does: ['bind'] },
    { when: 'it names no class and the cluster has another default', given: claim(), isDefault: false, does: [] },
    { when: 'it is bound', given: claim({ status: { phase: 'Bound' } }), does: [] },
    { when: 'it names another class', given: claim({ spec: { storageClassName: 'fast' } }), does: [] },
    { when: 'it wants no class at all', given: claim({ spec: { storageClassName: '' } }), does: [] },
    { when: 'it names a volume of its own', given: claim({ spec: { volumeName: 'mine' } }), does: [] },
  ])('when $when', ({ given, hasVolume = false, isDefault = true, does }) => {
    expect(planClaim(given, hasVolume, { nodeName: 'n', path: '/v', isDefault }).map((action) => action.kind)).toEqual(
      does,
    )
  })

  it('names the claims of ephemeral volumes after pod and volume, owned by the pod', () => {
    const spec = { containers: [], volumes: [{ name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: {} } } }] }
    expect(ephemeralClaims({ ...pod, spec })).toMatchObject([
      { metadata: { name: 'p-scratch', ownerReferences: [{ kind: 'Pod', uid: 'u' }] } },
    ])
  })
})

describe('claim directories', () => {
  it('remember their owner across restarts and go with their claim', async () => {
    const uid = process.getuid?.() === 0 ? 200_123 : (process.getuid?.() ?? 0)
    const path = await claimDirectories(directory).claim('cu', uid)
    expect(statSync(path).uid).toBe(uid)
    writeFileSync(join(path, 'f'), 'x')
    const again = claimDirectories(directory)
    expect(again.ownerOf('cu')).toBe(uid)
    expect(again.owners()).toEqual([uid])
    await again.remove('cu')
    expect(existsSync(path)).toBe(false)
    expect(claimDirectories(directory).ownerOf('cu')).toBeUndefined()
  })
})

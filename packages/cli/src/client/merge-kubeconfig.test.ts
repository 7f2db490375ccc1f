import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dump, load } from 'js-yaml'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type Kubeconfig, mergedKubeconfig, mergeKubeconfigFile, mergeTarget } from './merge-kubeconfig.js'

const platform: Kubeconfig = {
  clusters: [{ name: 'p', cluster: { server: 'https://127.0.0.1:1' } }],
  users: [
    { name: 'p', user: { 'client-key-data': 'k' } },
    { name: 'p-token', user: { token: 't' } },
  ],
  contexts: [
    { name: 'p', context: { cluster: 'p', user: 'p', namespace: 'corral' } },
    { name: 'p-token', context: { cluster: 'p', user: 'p-token' } },
  ],
  'current-context': 'p',
}
const others: Kubeconfig = {
  apiVersion: 'v1',
  kind: 'Config',
  preferences: { colors: true },
  clusters: [{ name: 'work', cluster: { server: 'https://work.example' } }],
  users: [{ name: 'me', user: { exec: { command: 'log-in' } } }],
  contexts: [{ name: 'work', context: { cluster: 'work', user: 'me' } }],
  'current-context': 'work',
}

let directory: string
let own: string
let target: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-kubeconfig-'))
  own = join(directory, 'platform')
  target = join(directory, 'kube', 'config')
  writeFileSync(own, JSON.stringify(platform))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const read = (path: string): Kubeconfig => load(readFileSync(path, 'utf8')) as Kubeconfig

it('makes the file where there is none, for its owner only, and the new context the current one', () => {
  mergeKubeconfigFile(target, own, 'corral')
  expect(read(target)).toEqual({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'corral', cluster: { server: 'https://127.0.0.1:1' } }],
    users: [{ name: 'corral', user: { 'client-key-data': 'k' } }],
    contexts: [{ name: 'corral', context: { cluster: 'corral', user: 'corral', namespace: 'corral' } }],
    'current-context': 'corral',
  })
  expect(statSync(target).mode & 0o777).toBe(0o600)
})

it('keeps every entry of others, their order, unknown fields and the current context, however often it runs', () => {
  const once = mergedKubeconfig(others, platform, 'corral')
  expect(once).toMatchObject({ preferences: { colors: true }, 'current-context': 'work' })
  expect(once.contexts?.map(({ name }) => name)).toEqual(['work', 'corral'])
  expect(once.users?.[0]).toEqual(others.users?.[0])
  expect(mergedKubeconfig(once, platform, 'corral')).toEqual(once)
})

it('replaces its own entries after the platform moved, where they stand', () => {
  const first = mergedKubeconfig({}, platform, 'corral')
  const between = { ...first, contexts: [...(first.contexts ?? []), ...(others.contexts ?? [])] }
  const moved = { ...platform, clusters: [{ name: 'p', cluster: { server: 'https://127.0.0.1:2' } }] }
  const again = mergedKubeconfig(between, moved, 'corral')
  expect(again.clusters).toEqual([{ name: 'corral', cluster: { server: 'https://127.0.0.1:2' } }])
  expect(again.contexts?.map(({ name }) => name)).toEqual(['corral', 'work'])
})

it.each<{ what: string; existing: Kubeconfig; owner: RegExp }>([
  {
    what: 'a cluster elsewhere under the name',
    existing: {
      clusters: [{ name: 'corral', cluster: { server: 'https://10.0.0.2:6443' } }],
      users: [{ name: 'me', user: { token: 't' } }],
      contexts: [{ name: 'corral', context: { cluster: 'corral', user: 'me' } }],
    },
    owner: /the cluster at https:\/\/10\.0\.0\.2:6443/,
  },
  {
    what: 'a context of the name on a cluster of another one',
    existing: { ...others, contexts: [{ name: 'corral', context: { cluster: 'work', user: 'me' } }] },
    owner: /the cluster at https:\/\/work\.example/,
  },
  {
    what: 'a user of the name that another context signs in as',
    existing: {
      ...others,
      users: [{ name: 'corral', user: { token: 't' } }],
      contexts: [{ name: 'work', context: { cluster: 'work', user: 'corral' } }],
    },
    owner: /the context "work"/,
  },
])('does not put itself in the place of $what', ({ existing, owner }) => {
  const path = join(directory, 'config')
  writeFileSync(path, dump(existing))
  const refused = { message: expect.stringMatching(owner), hint: expect.stringContaining('--name') }
  expect(() => mergeKubeconfigFile(path, own, 'corral')).toThrow(expect.objectContaining(refused))
  expect(read(path)).toEqual(existing)
  expect(existsSync(`${path}.lock`)).toBe(false)
  mergeKubeconfigFile(path, own, 'mine')
  expect(read(path).contexts?.at(-1)).toMatchObject({ name: 'mine', context: { cluster: 'mine', user: 'mine' } })
})

it('takes empty lists as kubectl writes them', () => {
  expect(mergedKubeconfig({ clusters: null, users: null, contexts: null }, platform, 'c').clusters).toHaveLength(1)
})

it('leaves a link a link and the permissions as they were', () => {
  const real = join(directory, 'real')
  writeFileSync(real, dump(others))
  chmodSync(real, 0o640)
  symlinkSync(real, join(directory, 'link'))
  mergeKubeconfigFile(join(directory, 'link'), own, 'corral')
  expect(read(real).contexts).toHaveLength(2)
  expect(statSync(real).mode & 0o777).toBe(0o640)
})

it.each([
  { what: 'YAML with an error', text: 'clusters: [' },
  { what: 'something else', text: 'just words' },
  { what: 'lists that are none', text: 'clusters: {a: b}' },
])('leaves a file alone that holds $what', ({ text }) => {
  const path = join(directory, 'config')
  writeFileSync(path, text)
  expect(() => mergeKubeconfigFile(path, own, 'corral')).toThrow(/is not a kubeconfig/)
  expect(readFileSync(path, 'utf8')).toBe(text)
  expect(existsSync(`${path}.lock`)).toBe(false)
})

it('waits for no one: a file that kubectl holds is named', () => {
  const path = join(directory, 'config')
  writeFileSync(`${path}.lock`, '')
  expect(() => mergeKubeconfigFile(path, own, 'corral')).toThrow(
    expect.objectContaining({
      message: expect.stringContaining('another program'),
      hint: expect.stringContaining(`${path}.lock`),
    }),
  )
  expect(existsSync(path)).toBe(false)
})

it.each([
  { when: 'KUBECONFIG is not set', env: { HOME: '/home/a' }, path: '/home/a/.kube/config' },
  { when: 'KUBECONFIG names files', env: { HOME: '/home/a', KUBECONFIG: '/x:/y' }, path: '/x' },
  {
    when: 'KUBECONFIG is the platform’s own',
    env: { HOME: '/home/a', KUBECONFIG: '/data/k' },
    path: '/home/a/.kube/config',
  },
])('writes to $path when $when', ({ env, path }) => {
  expect(mergeTarget(env, '/data/k')).toBe(path)
})

it('takes a file that every user of the machine may read away from them', () => {
  const shared = join(directory, 'shared')
  writeFileSync(shared, dump(others))
  chmodSync(shared, 0o644)
  mergeKubeconfigFile(shared, own, 'corral')
  expect(statSync(shared).mode & 0o777).toBe(0o640)
  expect(read(shared).users?.map(({ name }) => name)).toEqual(['me', 'corral'])
})

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { loadKubeConfig } from '@corral/kube'
import {
  type PlatformProcess,
  startPlatformProcess,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@corral/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'

const oldToken = 'a-token-that-an-earlier-version-used-for-both-apis'
let scratch: TemporaryDirectory
let platform: PlatformProcess
let kube: { server: string; token: string }

beforeAll(async () => {
  scratch = temporaryDirectory()
  const dataDir = join(scratch.path, 'data')
  mkdirSync(dataDir, { mode: 0o711 })
  writeFileSync(join(dataDir, 'token'), `${oldToken}\n`, { mode: 0o600 })
  platform = await startPlatformProcess({ dataDir, args: ['--warm', '0', '--max-tasks', '0'] })
  // As kubectl reads it: the token stands in a context of its own.
  const config = JSON.parse(readFileSync(platform.kubeconfig, 'utf8'))
  const user = config.users.find(({ user }: { user: { token?: string } }) => user.token !== undefined)
  kube = { server: config.clusters[0].cluster.server, token: user.user.token }
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await scratch[Symbol.asyncDispose]()
})

/** Whether the Kubernetes API takes a token: the status of a list of Secrets. */
const listSecrets = (token: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` }
    request(`${kube.server}/api/v1/secrets`, { headers, rejectUnauthorized: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode))
    })
      .on('error', reject)
      .end()
  })
const listTasks = async (token: string): Promise<number> =>
  (await fetch(`${platform.url}/tasks`, { headers: { authorization: `Bearer ${token}` } })).status

it('the token of the task API, also one of an earlier version, opens the tasks and nothing of Kubernetes', async () => {
  expect(platform.token).toBe(oldToken)
  expect(await listTasks(oldToken)).toBe(200)
  expect(await listSecrets(oldToken)).toBe(401)
})

it('the token of the kubeconfig opens Kubernetes and not the task API', async () => {
  expect(kube.token).not.toBe(oldToken)
  expect(await listSecrets(kube.token)).toBe(200)
  expect(await listTasks(kube.token)).toBe(401)
})

it('the kubeconfig works as it is', async () => {
  await expect(loadKubeConfig({ path: platform.kubeconfig })).resolves.toBeDefined()
  expect((await platform.kubectl(['auth', 'whoami', '--context', 'corral-token'])).code).toBe(0)
})

import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type KubeClient, kubeClientFromConfig, type LeaseObject, loadKubeConfig } from '@corral/kube'
import { AgentTasks, defineKind, Namespaces } from '@corral/resources'
import {
  corralProgram,
  gitRepository,
  startPlatformProcess,
  type TaskApi,
  type TemporaryDirectory,
  taskApi,
  temporaryDirectory,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'

const leases = defineKind<LeaseObject>('coordination.k8s.io/v1', 'Lease', 'leases')
const lease = { namespace: 'corral', name: 'corral-task-controller' }

interface Part {
  child: ChildProcess
  ended: Promise<unknown>
  ready: Record<string, string>
  api: TaskApi
  stop(): Promise<void>
}

/** Starts a part of the platform and waits for its ready file. */
async function startPart(directory: string, name: string, args: readonly string[]): Promise<Part> {
  const readyFile = join(directory, `${name}.json`)
  const child = spawn(process.execPath, [corralProgram, ...args, '--ready-file', readyFile, '--log-level', 'error'], {
    env: { PATH: process.env.PATH, HOME: directory },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  await waitUntil(`${name} is ready`, () => existsSync(readyFile))
  const ready = JSON.parse(readFileSync(readyFile, 'utf8')) as Record<string, string>
  return {
    child,
    ended,
    ready,
    api: taskApi(() => ({ url: ready.url ?? '', token: ready.token ?? '' })),
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}

const serverArguments = (kubeconfig: string, dataDir: string): string[] => {
  const place = [
    '--kubeconfig',
    kubeconfig,
    '--data-dir',
    dataDir,
    '--broker-port',
    '0',
    '--metrics-address',
    '127.0.0.1:0',
  ]
  return ['server', ...place, '--local-repositories', '--agent', 'command']
}

describe('two servers on one API', () => {
  let scratch: TemporaryDirectory
  let kube: KubeClient
  let first: Part
  let second: Part
  let id: string
  let uid: string
  const parts: Part[] = []
  const at = (...names: string[]): string => join(scratch.path, ...names)
  const probe = async (part: Part, path: string): Promise<number> =>
    (await fetch((part.ready.metrics ?? '').replace('/metrics', path))).status
  const records = (dataDir: string): string[] => (existsSync(dataDir) ? readdirSync(dataDir) : [])
  const holder = async (): Promise<string> => (await kube.find(leases, lease))?.spec?.holderIdentity ?? ''

  beforeAll(async () => {
    scratch = temporaryDirectory()
    const api = await startPart(scratch.path, 'api', ['apiserver', '--data-dir', at('api'), '--memory'])
    parts.push(api)
    const kubeconfig = api.ready.kubeconfig ?? ''
    kube = kubeClientFromConfig(await loadKubeConfig({ path: kubeconfig }))
    await kube.create(Namespaces, { metadata: { name: 'corral' } }).catch(() => undefined) // it may be there already
    first = await startPart(scratch.path, 'first', serverArguments(kubeconfig, at('first')))
    second = await startPart(scratch.path, 'second', serverArguments(kubeconfig, at('second')))
    parts.push(first, second)
  })
  afterAll(async () => {
    await kube?.close()
    for (const { child } of parts) child.kill('SIGKILL')
    await Promise.all(parts.map(({ ended }) => ended))
    await scratch?.[Symbol.asyncDispose]()
  })

  it('only the one that holds the lease reconciles a task, whichever was asked for it', async () => {
    const repository = await gitRepository(at('project'))
    id = await second.api.create({
      repo: repository.path,
      task: 'touch a',
      agent: { name: 'command', command: 'true' },
    })
    uid = (await kube.get(AgentTasks, { namespace: 'corral', name: id })).metadata.uid
    await waitUntil('the task is being reconciled', () => records(at('first', 'tasks')).includes(uid))
    expect(records(at('second', 'tasks'))).toEqual([])
    expect((await first.api.get(id)).id).toBe(id)
  })

  it('the other one has started, is not ready for anybody, and leaves what was built alone', async () => {
    for (const path of ['/startupz', '/readyz']) expect(await probe(first, path)).toBe(200)
    expect([await probe(second, '/startupz'), await probe(second, '/readyz')]).toEqual([200, 503])
    expect(['first', 'second'].map((name) => existsSync(at(name, 'environments')))).toEqual([true, false])
  })

  it('the other one takes over when it stops', async () => {
    const before = await holder()
    expect(before).not.toBe('')
    await first.stop()
    await waitUntil('the second one leads', async () => !['', before].includes(await holder()))
    await second.api.request('POST', `/tasks/${id}/cancel`)
    await second.api.untilPhase(id, 'CANCELLED')
    expect(records(at('second', 'tasks'))).toEqual([uid])
    expect([await probe(second, '/readyz'), existsSync(at('second', 'environments'))]).toEqual([200, true])
  })
})

it('a server that only answers requests shows the events of a task another process runs, to the last', async () => {
  await using platform = await startPlatformProcess({ args: ['--warm', '1'] })
  const repository = await gitRepository(join(platform.directory, 'project'))
  const args = [...serverArguments(platform.kubeconfig, platform.dataDir), '--parts', 'http']
  const reader = await startPart(platform.directory, 'reader', args)
  onTestFinished(() => void reader.child.kill('SIGKILL'))
  const id = await reader.api.create({
    repo: repository.path,
    task: 'say it',
    agent: { name: 'command', command: 'echo said > said.txt' },
  })
  const events = await reader.api.allEvents(id, { follow: true })
  expect(events.at(-1)).toMatchObject({ type: 'result' })
  expect(await reader.api.untilEnded(id)).toMatchObject({ status: 'SUCCEEDED' })
  await reader.stop()
})

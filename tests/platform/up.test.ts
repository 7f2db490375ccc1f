import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { findCondition, Pods, Sandboxes } from '@corral/resources'
import {
  gitRepository,
  type HostSnapshot,
  hostSnapshot,
  leftoversOf,
  type PlatformProcess,
  processesOf,
  runCorral,
  sandboxDaemons,
  sandboxProcesses,
  startPlatformProcess,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let platform: PlatformProcess
let before: HostSnapshot
beforeAll(async () => {
  before = hostSnapshot()
  platform = await startPlatformProcess()
})
afterAll(() => platform?.[Symbol.asyncDispose]())

const portsOf = (): { url: string; server: string | undefined } => ({
  url: platform.url,
  server: /server: (\S+)/.exec(readFileSync(platform.kubeconfig, 'utf8'))?.[1],
})

async function untilWarm(count: number): Promise<void> {
  const kube = await platform.kube()
  await waitUntil('the warm sandboxes run', async () => {
    const { items } = await kube.list(Pods, { namespace: 'corral' })
    const isReady = ({ metadata, status }: (typeof items)[number]): boolean =>
      !metadata.deletionTimestamp && findCondition(status?.conditions ?? [], 'Ready')?.status === 'True'
    return items.length === count && items.every(isReady)
  })
}

describe('corral up', () => {
  it('S2-H1: says where it is, on paper and on the screen, and keeps secrets to its owner', async () => {
    const ready = JSON.parse(readFileSync(platform.readyFile, 'utf8')) as Record<string, unknown>
    expect(ready).toEqual({
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      token: expect.stringMatching(/^[\w-]{40,}$/),
      kubeconfig: join(platform.dataDir, 'kubeconfig'),
      pid: expect.any(Number),
      isolation: expect.stringMatching(/^(gvisor|bubblewrap|process)$/),
    })
    for (const value of [ready.url, ready.token, ready.kubeconfig, ready.isolation])
      await waitUntil(`"${String(value)}" is printed`, () => platform.output().includes(String(value)))
    const modes = Object.fromEntries(
      [platform.readyFile, ...['ready.json', 'kubeconfig', 'token'].map((name) => join(platform.dataDir, name))].map(
        (path) => [path, statSync(path).mode & 0o777],
      ),
    )
    expect(new Set(Object.values(modes))).toEqual(new Set([0o600]))
    for (const name of ['api', 'tls', 'tasks', 'mirrors', 'secrets'])
      expect(statSync(join(platform.dataDir, name)).mode & 0o077).toBe(0)
  })

  it('answers kubectl', async () => {
    expect((await platform.kubectl(['version'])).stdout).toMatch(/Server Version: v1\.34\.\d+\+corral/)
    const { stdout } = await platform.kubectl(['get', 'nodes'])
    expect(stdout).toMatch(/^corral\s+Ready/m)
    expect((await platform.kubectl(['get', 'sandboxwarmpools'])).stdout).toMatch(/^default\s/m)
    const explained = await platform.kubectl(['explain', 'agenttasks.spec'])
    expect(explained.stdout).toMatch(/prompt\s+<string> -required-\n\s+What the agent shall do\./)
  })

  it('refuses a second one on the same directory with exit code 3', async () => {
    const { code, stderr } = await runCorral(['up', '--data-dir', platform.dataDir], { env: platform.environment() })
    expect(code).toBe(3)
    expect(stderr).toContain(`is in use by process ${platform.pid} (${platform.url})`)
    expect((await platform.api.request('GET', '/readyz')).status).toBe(200)
  })

  it('ends with exit code 0 and leaves nothing behind', async () => {
    await untilWarm(2)
    expect(sandboxProcesses(platform.dataDir).length).toBeGreaterThan(0)
    expect(processesOf(platform.dataDir).length).toBeGreaterThan(0)
    expect(await platform.stop()).toBe(0)
    expect(leftoversOf(platform.dataDir, before)).toEqual([])
    expect(existsSync(join(platform.dataDir, 'ready.json'))).toBe(false)
  })

  it('FR-8 NFR-4: goes on where it stopped, on the same ports, with the same token', async () => {
    await platform.restart()
    const repo = await gitRepository(join(platform.directory, 'repo'))
    const task = await platform.api.run({
      repo: repo.path,
      task: 'Keep',
      agent: { name: 'command', command: 'echo kept > kept.txt' },
    })
    const { token } = platform
    const ports = portsOf()
    const events = await platform.api.allEvents(task.id)
    await platform.kubectl(['create', 'configmap', 'mine', '--from-literal=a=b'])

    for (const end of [() => platform.stop('SIGINT'), () => platform.kill9()]) {
      await end()
      await platform.restart()
      expect(platform.token).toBe(token)
      expect(portsOf()).toEqual(ports)
      expect(await platform.api.get(task.id)).toEqual(task)
      expect(await platform.api.allEvents(task.id)).toEqual(events)
      expect((await platform.api.request('GET', `/tasks/${task.id}/diff`)).text).toContain('+kept')
      expect((await platform.kubectl(['get', 'configmap', 'mine', '-o', 'jsonpath={.data.a}'])).stdout).toBe('b')
    }
  })

  it('takes over its sandboxes after kill -9: none is started anew, none is lost', async () => {
    await untilWarm(2)
    const kube = await platform.kube()
    const uids = async (): Promise<string[]> =>
      (await (await platform.kube()).list(Pods, { namespace: 'corral' })).items
        .map(({ metadata }) => metadata.uid)
        .sort()
    const restarts = async (): Promise<number[]> =>
      (await (await platform.kube()).list(Pods, { namespace: 'corral' })).items.flatMap(
        ({ status }) => status?.containerStatuses?.map(({ restartCount }) => restartCount) ?? [],
      )
    const pods = await uids()
    const counts = await restarts()
    const daemons = (): number[] => sandboxDaemons(platform.dataDir).sort()
    // A start that the last kill -9 interrupted may still be on its way out.
    const pids = await waitUntil('a daemon runs in each sandbox', () => daemons().length === 2 && daemons())
    expect((await kube.list(Sandboxes, { namespace: 'corral' })).items).toHaveLength(2)
    await platform.kill9()
    expect(daemons()).toEqual(pids)
    await platform.restart()
    await untilWarm(2)
    expect(await uids()).toEqual(pods)
    expect(daemons()).toEqual(pids)
    expect(await restarts()).toEqual(counts)
  })

  it('leaves no warm sandboxes behind after a second Ctrl-C', async () => {
    await untilWarm(2)
    process.kill(platform.pid, 'SIGINT')
    await platform.stop('SIGINT')
    await waitUntil('nothing is left', () => leftoversOf(platform.dataDir, before).length === 0)
    await platform.restart()
    await untilWarm(2)
  })

  it('leaves nothing behind after a stop that follows a kill -9', async () => {
    await platform.kill9()
    await platform.restart()
    expect(await platform.stop()).toBe(0)
    expect(leftoversOf(platform.dataDir, before)).toEqual([])
  })

  it('says what is wrong with an argument, and with a port that is taken', async () => {
    const wrong = await runCorral(['up', '--port', 'eighty'], { env: platform.environment() })
    expect(wrong.code).not.toBe(0)
    expect(wrong.stderr).toMatch(/eighty/)
    await platform.restart()
    const { port } = new URL(platform.url)
    const taken = await runCorral(['up', '--data-dir', join(platform.directory, 'other'), '--port', port], {
      env: platform.environment(),
    })
    expect(taken.code).not.toBe(0)
    expect(taken.stderr).toMatch(new RegExp(`${port}`))
    expect(leftoversOf(join(platform.directory, 'other'), before)).toEqual([])
  })
})

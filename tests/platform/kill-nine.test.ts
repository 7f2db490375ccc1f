import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { anySignal } from '@corral/protocol'
import { AgentTasks, findCondition, SandboxClaims, Sandboxes } from '@corral/resources'
import {
  bareRemote,
  type GitFixture,
  type GitServer,
  hangMs,
  isFullSize,
  type PlatformProcess,
  startGitServer,
  startPlatformProcess,
  type TemporaryDirectory,
  temporaryDirectory,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let scratch: TemporaryDirectory
let server: GitServer
let remote: GitFixture
let platform: PlatformProcess
const warmSandboxes = 2

beforeAll(async () => {
  scratch = temporaryDirectory()
  remote = await bareRemote(join(scratch.path, 'served', 'project.git'))
  server = await startGitServer(join(scratch.path, 'served'), join(scratch.path, 'server'))
  platform = await startPlatformProcess({ env: server.environment, args: ['--warm', String(warmSandboxes)] })
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await server?.[Symbol.asyncDispose]()
  await scratch?.[Symbol.asyncDispose]()
})

/** Waits, from before the task is made, for one moment of its life. */
type Moment = (signal: AbortSignal) => Promise<void>

const recorded =
  (condition: string): Moment =>
  async (signal) => {
    const kube = await platform.kube()
    for await (const { object } of kube.watch(AgentTasks, { namespace: 'corral', signal })) {
      const ended = findCondition(object.status?.conditions ?? [], 'Succeeded')
      if (ended && condition !== 'Succeeded' && !isOld(object.metadata.name)) throw new Error('the task ended before')
      if (isOld(object.metadata.name)) continue
      if (findCondition(object.status?.conditions ?? [], condition)?.status === 'True') return
    }
  }

const claimed: Moment = async (signal) => {
  const kube = await platform.kube()
  for await (const { object } of kube.watch(SandboxClaims, { namespace: 'corral', signal }))
    if (!isOld(object.metadata.name)) return
}

/** The remote was asked for this; its answer never leaves. */
const asked =
  (path: RegExp): Moment =>
  (signal) =>
    new Promise((resolve) => {
      server.hold((request) => {
        if (!path.test(request)) return Promise.resolve()
        resolve()
        return new Promise((release) => signal.addEventListener('abort', () => release()))
      })
    })

const printed =
  (text: string): Moment =>
  async (signal) => {
    const id = await waitUntil('the task exists', () => current, { intervalMs: 2 })
    for await (const event of platform.api.events(id, { signal }))
      if (event.type === 'output' && event.text.includes(text)) return
  }

const resultOut: Moment = async () => {
  const kube = await platform.kube()
  const id = await waitUntil('the task exists', () => current, { intervalMs: 2 })
  const { metadata } = await kube.get(AgentTasks, { namespace: 'corral', name: id })
  const bundle = join(platform.dataDir, 'tasks', metadata.uid, 'out.bundle')
  await waitUntil('the bundle is out', () => existsSync(bundle), { intervalMs: 1 })
}

const known = new Set<string>()
let current: string | undefined
const isOld = (name: string): boolean => known.has(name)

const command = 'echo run >> runs.txt; echo working; sleep 0.4; cat /tmp/setups >> runs.txt'
const setup = 'echo preparing; sleep 0.3; echo set-up >> /tmp/setups'

const moments: { when: string; moment: Moment; isFullOnly?: boolean }[] = [
  { when: 'it was admitted', moment: recorded('Admitted'), isFullOnly: true },
  { when: 'its claim was made', moment: claimed },
  { when: 'its sandbox was ready', moment: recorded('SandboxReady'), isFullOnly: true },
  { when: 'the remote was being read', moment: asked(/^POST .*git-upload-pack$/), isFullOnly: true },
  { when: 'the repository was in', moment: recorded('RepositoryReady'), isFullOnly: true },
  { when: 'its set-up was running', moment: printed('preparing'), isFullOnly: true },
  { when: 'its set-up was done', moment: recorded('SetupDone'), isFullOnly: true },
  { when: 'the agent was started', moment: recorded('AgentStarted'), isFullOnly: true },
  { when: 'the agent was running', moment: printed('working') },
  { when: 'the agent had finished', moment: recorded('AgentFinished'), isFullOnly: true },
  { when: 'the result was out of the sandbox', moment: resultOut },
  { when: 'the result was accepted', moment: recorded('ResultCollected'), isFullOnly: true },
  { when: 'the push had landed and nobody knew', moment: asked(/^POST .*git-receive-pack$/) },
  { when: 'the push was recorded', moment: recorded('Pushed'), isFullOnly: true },
  { when: 'the end was recorded', moment: recorded('Succeeded') },
]

describe('after kill -9 of the platform the task goes on and happens once', () => {
  it.each(moments.filter(({ isFullOnly }) => isFullSize || !isFullOnly))('$when', async ({ moment }) => {
    const over = new AbortController()
    current = undefined
    const reached = moment(anySignal([over.signal, AbortSignal.timeout(hangMs)]))
    const request = {
      repo: `${server.url}/project.git`,
      task: 'Count',
      setup,
      agent: { name: 'command', command },
    } as const
    const id = await platform.api.create(request)
    current = id
    await reached
    await platform.kill9()
    over.abort()
    server.hold(undefined)
    await platform.restart()

    const task = await platform.api.untilEnded(id)
    expect(task).toMatchObject({ status: 'SUCCEEDED', outcome: 'changes', pushed: true })
    expect(await remote.show(task.branch!, 'runs.txt')).toBe('run\nset-up')
    expect(await remote.git('rev-parse', task.branch!)).toBe(task.commit)
    expect(remote.writesOf(task.branch!)).toBe(1)

    const events = await platform.api.allEvents(id)
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1))
    expect(events.filter(({ type }) => type === 'result')).toHaveLength(1)
    const stages = events.flatMap((event) => (event.type === 'stage' ? `${event.stage} ${event.state}` : []))
    // A slow clone tells of its progress more than once.
    const ends = stages.filter((stage) => !stage.endsWith(' progress'))
    expect(ends).toEqual([...new Set(ends)])
    expect(stages).toEqual(expect.arrayContaining(['claim started', 'sandbox finished', 'push finished']))
    expect(events.filter((event) => event.type === 'output' && event.text.includes('working'))).toHaveLength(1)

    const kube = await platform.kube()
    await waitUntil('no sandbox is left but the warm ones', async () => {
      const claims = await kube.list(SandboxClaims, { namespace: 'corral' })
      const sandboxes = await kube.list(Sandboxes, { namespace: 'corral' })
      return claims.items.length === 0 && sandboxes.items.length === warmSandboxes
    })
    known.add(id)
  })
})

import { type AgentTask, oomKillsAnnotation, type Pod, type Stored } from '@corral/resources'
import { describe, expect, it, vi } from 'vitest'
import type { StepOutcome } from '../steps/step.js'
import { finalFailure, TaskError } from '../task-error.js'
import type { TaskAction } from './plan.js'
import {
  type Eviction,
  evictionOf,
  findDeletion,
  findEviction,
  findOomKill,
  findPodName,
  insteadOfLoss,
  mayBeEviction,
  oomKillOf,
  withEviction,
} from './pod-eviction.js'

const limit = 'Pod ephemeral local storage usage exceeds the total limit of containers 10Gi.'
const pressure = 'The node was low on resource: ephemeral-storage. Threshold quantity: 1Mi, available: 0.'
const evicted = (message: string): Pod => ({ status: { reason: 'Evicted', message } })
const targeted = (message: string, reason = 'TerminationByKubelet'): Pod => ({
  status: { conditions: [{ type: 'DisruptionTarget', status: 'True', reason, message }] },
})

const escaped = (text: string): string => text.replace(/[()]/g, '\\$&')

/** What the node notes of processes that the kernel ended. */
const at = JSON.stringify({ kills: 1, lastAt: '2026-01-01T00:00:10.000Z' })

describe('what a pod says of its eviction', () => {
  it.each<{ when: string; pod: Pod; means: [code: string, isOver: boolean] | undefined }>([
    { when: 'it took more than it may', pod: evicted(limit), means: ['DiskLimit', true] },
    {
      when: 'a volume is too full',
      pod: evicted('Usage of EmptyDir volume "v" exceeds the limit "1Mi".'),
      means: ['DiskLimit', true],
    },
    {
      when: 'it has too many files',
      pod: evicted('Pod inode usage exceeds the limit 10.'),
      means: ['DiskLimit', true],
    },
    { when: 'the node is full', pod: evicted(pressure), means: ['DiskFull', true] },
    { when: 'it is about to be evicted', pod: targeted(limit), means: ['DiskLimit', false] },
    { when: 'the node has no memory left', pod: evicted('The node was low on resource: memory.'), means: undefined },
    {
      when: 'the condition does not hold',
      pod: {
        status: {
          conditions: [{ type: 'DisruptionTarget', status: 'False', reason: 'TerminationByKubelet', message: limit }],
        },
      },
      means: undefined,
    },
    {
      when: 'another condition carries the reason',
      pod: {
        status: { conditions: [{ type: 'Ready', status: 'True', reason: 'TerminationByKubelet', message: limit }] },
      },
      means: undefined,
    },
    { when: 'it was evicted without a word', pod: { status: { reason: 'Evicted' } }, means: undefined },
    { when: 'another goes first', pod: targeted(limit, 'PreemptionByScheduler'), means: undefined },
    { when: 'nothing is wrong', pod: {}, means: undefined },
  ])('when $when', ({ pod, means }) => {
    const found = evictionOf(pod)
    expect(found && [found.code, found.isOver]).toEqual(means)
  })
})

describe('what a pod says of processes the kernel ended', () => {
  const killed = (text: string, memory?: string): Pod => ({
    metadata: { annotations: { [oomKillsAnnotation]: text } },
    spec: { containers: [{ name: 'main', ...(memory ? { resources: { limits: { memory } } } : {}) }] },
  })
  it.each<{ when: string; pod: Pod; since?: string; says: string | undefined }>([
    { when: 'it has a limit', pod: killed(at, '1Gi'), says: 'for want of memory (its limit is 1Gi)' },
    { when: 'it has none', pod: killed(at), says: 'ended a process of the sandbox for want of memory' },
    {
      when: 'its containers are not known',
      pod: { metadata: { annotations: { [oomKillsAnnotation]: at } } },
      says: 'ended a process of the sandbox for want of memory',
    },
    { when: 'that was while the agent ran', pod: killed(at), since: '2026-01-01T00:00:10Z', says: 'memory' },
    { when: 'that was before the agent ran', pod: killed(at), since: '2026-01-01T00:00:11Z', says: undefined },
    { when: 'somebody wrote something else there', pod: killed('{"kills":"many"}'), says: undefined },
    { when: 'nothing was ended', pod: {}, says: undefined },
  ])('when $when', ({ pod, since, says }) => {
    const found = oomKillOf(pod, since)
    if (says === undefined) expect(found).toBeUndefined()
    else
      expect(found).toMatchObject({
        code: 'OutOfMemory',
        message: expect.stringMatching(new RegExp(`${escaped(says)}$`)),
      })
  })

  const oom: Eviction = { code: 'OutOfMemory', message: 'no memory', isOver: false }
  const full: Eviction = { code: 'DiskLimit', message: limit, isOver: false }

  it('explains how the agent ended, and leaves a full disk its name', async () => {
    const ended = (reason: string): Promise<StepOutcome> =>
      Promise.resolve({ condition: 'AgentFinished', reason, message: 'exit code 3' })
    const find = async (): Promise<Eviction> => oom
    expect(await withEviction(ended('AgentFailed'), find)).toMatchObject({
      reason: 'OutOfMemory',
      message: 'exit code 3: no memory',
    })
    expect((await withEviction(ended('DiskFull'), find)).reason).toBe('DiskFull')
  })

  it.each<{ when: string; oomKills: number; reason: string; found?: Eviction; tells: string }>([
    { when: 'a child ran out of memory', oomKills: 1, reason: 'AgentFailed', tells: 'OutOfMemory' },
    { when: 'it ran out itself', oomKills: 2, reason: 'AgentKilled', tells: 'OutOfMemory' },
    { when: 'it failed by itself', oomKills: 0, reason: 'AgentFailed', tells: 'AgentFailed' },
    { when: 'set-up ran out before', oomKills: 0, reason: 'AgentKilled', found: oom, tells: 'AgentKilled' },
    { when: 'it was evicted', oomKills: 0, reason: 'AgentKilled', found: full, tells: 'DiskLimit' },
    { when: 'it was evicted after that', oomKills: 1, reason: 'AgentFailed', found: full, tells: 'DiskLimit' },
    { when: 'the disk is full too', oomKills: 1, reason: 'DiskFull', tells: 'DiskFull' },
  ])('believes the counters of the daemon when $when, without a wait', async ({ oomKills, reason, found, tells }) => {
    let asked = 0
    const find = async (): Promise<Eviction | undefined> => {
      asked += 1
      return found
    }
    const ended = Promise.resolve({ condition: 'AgentFinished' as const, reason, message: 'exit code 3', oomKills })
    expect((await withEviction(ended, find)).reason).toBe(tells)
    expect(asked).toBe(1)
  })

  it('names the limit of a pod of which the node has noted nothing yet', async () => {
    const pod: Pod = { spec: { containers: [{ name: 'c', resources: { limits: { memory: '256Mi' } } }] } }
    const client = { find: async () => pod } as unknown as Parameters<typeof findOomKill>[0]
    const task = { metadata: { name: 't' }, status: { sandbox: { podName: 'p' } } } as Parameters<typeof findOomKill>[1]
    expect(await findOomKill(client, task)).toBeUndefined()
    const ended = Promise.resolve({
      condition: 'AgentFinished' as const,
      reason: 'AgentFailed',
      message: 'exit code 3',
      oomKills: 1,
    })
    const { message } = await withEviction(ended, (hasOomKill) => findOomKill(client, task, hasOomKill))
    expect(message).toMatch(/^exit code 3: .* for want of memory \(its limit is 256Mi\)$/)
  })

  it('tells a sandbox that met its own limit from a disk that is full', async () => {
    const full = () => Promise.reject(new TaskError('DiskFull', 'set-up filled the disk', { details: finalFailure }))
    const over = { code: 'DiskLimit' as const, message: 'its limit', isOver: false }
    await expect(withEviction(full(), async () => over)).rejects.toMatchObject({ code: 'DiskLimit' })
    await expect(withEviction(full(), async () => undefined)).rejects.toMatchObject({ code: 'DiskFull' })
  })

  it('explains a failed set-up without another cause, so that a retry begins there', async () => {
    const work = Promise.reject(new TaskError('SetupFailed', 'exit code 137', { hint: 'Read it.' }))
    const failure = await withEviction(work, async () => oom).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'SetupFailed', message: 'exit code 137; no memory', hint: 'Read it.' })
  })
})

describe('a step in a sandbox that is evicted for its disk', () => {
  const halted: Eviction = { code: 'DiskLimit', message: limit, isOver: false }
  const ended = (reason: string): Promise<StepOutcome> =>
    Promise.resolve({ condition: 'AgentFinished', reason, message: 'as it was' })

  it.each<{ when: string; reason: string; eviction: Eviction | undefined; tells: string }>([
    { when: 'the node ended the agent', reason: 'AgentKilled', eviction: halted, tells: 'DiskLimit' },
    { when: 'the agent failed for want of room', reason: 'AgentFailed', eviction: halted, tells: 'DiskLimit' },
    { when: 'the agent had finished before', reason: 'Completed', eviction: halted, tells: 'Completed' },
    { when: 'the agent failed by itself', reason: 'AgentFailed', eviction: undefined, tells: 'AgentFailed' },
  ])('when $when', async ({ reason, eviction, tells }) => {
    expect((await withEviction(ended(reason), async () => eviction)).reason).toBe(tells)
  })

  it('waits a moment for the node to say why it ended the agent', async () => {
    let asked = 0
    const find = async (): Promise<Eviction | undefined> => (++asked === 3 ? halted : undefined)
    expect(await withEviction(ended('AgentKilled'), find)).toMatchObject({ reason: 'DiskLimit', message: limit })
  })

  it.each<{ when: string; error: Error; eviction: Eviction; tells: string }>([
    { when: 'set-up was ended', error: new TaskError('SetupFailed', 'killed'), eviction: halted, tells: 'DiskLimit' },
    {
      when: 'the line broke, which may come back',
      error: new TaskError('ConnectionLost', 'x'),
      eviction: halted,
      tells: 'ConnectionLost',
    },
    {
      when: 'the line broke for good',
      error: new TaskError('ConnectionLost', 'x'),
      eviction: { ...halted, isOver: true },
      tells: 'DiskLimit',
    },
    {
      when: 'the result breaks a rule',
      error: new TaskError('ResultRejected', 'x'),
      eviction: halted,
      tells: 'ResultRejected',
    },
  ])('when $when', async ({ error, eviction, tells }) => {
    await expect(withEviction(Promise.reject(error), async () => eviction)).rejects.toMatchObject({ code: tells })
  })
})

it.each([
  { when: 'says its pod has another name', annotations: { 'agents.x-k8s.io/pod-name': 'warm-7' }, name: 'warm-7' },
  { when: 'says nothing', annotations: {}, name: 'box' },
  { when: 'has an empty note', annotations: { 'agents.x-k8s.io/pod-name': '' }, name: 'box' },
])('the pod of a Sandbox that $when is $name', async ({ annotations, name }) => {
  const client = { find: async () => ({ metadata: { name: 'box', annotations } }) }
  expect(await findPodName(client as unknown as Parameters<typeof findPodName>[0], 'corral', 'box')).toBe(name)
})

describe('what the objects of a task say of its sandbox', () => {
  type Client = Parameters<typeof findEviction>[0]
  const task = (sandbox?: object): Stored<AgentTask> => ({
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: {
      ...{ name: 't', namespace: 'corral', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
    },
    spec: { repository: { url: '/r' }, prompt: 'x', agent: { name: 'command', command: 'true' } },
    status: sandbox ? { sandbox: { claimName: 't', ...sandbox } } : {},
  })
  const bound = task({ sandboxName: 'box', podName: 'warm-7' })
  const asked: unknown[] = []
  /** A cluster with these objects by name. */
  const client = (objects: Record<string, object>): Client => ({
    find: async (_kind: unknown, key: { namespace?: string; name: string }) => {
      asked.push(key)
      return objects[key.name] as never
    },
  })
  const away = { find: () => Promise.reject(new Error('the API server is away')) } as unknown as Client
  const box = { metadata: { name: 'box', annotations: { 'agents.x-k8s.io/pod-name': 'warm-7' } } }

  it('an eviction is read from the pod the sandbox names, in the namespace of the task', async () => {
    asked.length = 0
    expect(await findEviction(client({ box, 'warm-7': evicted(limit) }), bound)).toMatchObject({ code: 'DiskLimit' })
    expect(asked).toEqual([
      { namespace: 'corral', name: 'box' },
      { namespace: 'corral', name: 'warm-7' },
    ])
    expect(await findEviction(client({ box }), bound)).toBeUndefined()
  })

  it.each([
    { when: 'the kernel ended a process', annotations: { [oomKillsAnnotation]: at }, says: 'OutOfMemory' },
    { when: 'the kernel ended none', annotations: {}, says: undefined },
  ])('when $when: $says', async ({ annotations, says }) => {
    expect((await findOomKill(client({ 'warm-7': { metadata: { annotations } } }), bound))?.code).toBe(says)
  })

  it.each([
    { when: 'is there', objects: { box }, message: undefined },
    { when: 'is gone', objects: {}, message: 'the sandbox box was deleted under the task' },
    {
      when: 'is going',
      objects: { box: { metadata: { name: 'box', deletionTimestamp: '2026-01-01T00:00:00Z' } } },
      message: 'the sandbox box was deleted under the task',
    },
  ])('a sandbox that $when: $message', async ({ objects, message }) => {
    expect((await findDeletion(client(objects as Record<string, object>), bound))?.message).toBe(message)
  })

  it.each([
    { what: 'an eviction', find: findEviction },
    { what: 'a kill', find: findOomKill },
    { what: 'a deletion', find: findDeletion },
  ])(
    '$what is not looked for before there is a sandbox, and not told while the API server is away',
    async ({ find }) => {
      asked.length = 0
      expect(await find(client({}), task())).toBeUndefined()
      expect(asked).toEqual([])
      expect(await find(away, bound)).toBeUndefined()
    },
  )

  it('a command that was killed is given time to be explained, another failure is not', async () => {
    const tries = async (message: string): Promise<number> => {
      let count = 0
      const find = async (): Promise<Eviction | undefined> => (++count === 3 ? { ...late } : undefined)
      await withEviction(Promise.reject(new TaskError('SetupFailed', message)), find).catch(() => undefined)
      return count
    }
    const late: Eviction = { code: 'DiskLimit', message: limit, isOver: false }
    expect(await tries('the set-up command ended with exit code 137: ')).toBe(3)
    expect(await tries('the set-up command ended with exit code 1: ')).toBe(1)
  })

  it('a failure without a code is not explained by an eviction that is not over', async () => {
    const find = async (): Promise<Eviction> => ({ code: 'DiskLimit', message: limit, isOver: false })
    await expect(withEviction(Promise.reject(new Error('plain')), find)).rejects.toThrow('plain')
  })
})

describe('a task whose sandbox was lost ends with what it was evicted for', () => {
  const evicted: Eviction = { code: 'DiskLimit', message: 'too much', isOver: true }
  const again = { kind: 'startAgain', attempt: 2, message: 'lost' } as const
  const finish = (code: string): TaskAction => ({ kind: 'finish', ending: { code, message: '' } })

  it.each<{ action: TaskAction; is: boolean }>([
    { action: again, is: true },
    { action: finish('SandboxLost'), is: true },
    { action: finish('Cancelled'), is: false },
    { action: finish('Succeeded'), is: false },
    { action: { kind: 'createClaim' }, is: false },
  ])('the pod is read before $action.kind: $is', ({ action, is }) => {
    expect(mayBeEviction(action)).toBe(is)
  })

  it('instead of another try with a sandbox that would fill the disk again', () => {
    expect(insteadOfLoss(again, evicted)).toEqual({ kind: 'finish', ending: evicted })
    expect(insteadOfLoss(again, undefined)).toBe(again)
  })
})

describe('which failures an eviction explains', () => {
  const full: Eviction = { code: 'DiskFull', message: 'no room', isOver: false }
  it.each(['SetupFailed', 'CloneFailed', 'AgentStartFailed', 'ResultFailed', 'SandboxLost'] as const)(
    '%s',
    async (code) => {
      const failed = withEviction(Promise.reject(new TaskError(code, 'x')), async () => full)
      await expect(failed).rejects.toMatchObject({ code: 'DiskFull', message: 'no room' })
    },
  )

  it.each([
    { reason: 'AgentKilled', asks: 20 },
    { reason: 'DiskFull', asks: 20 },
    { reason: 'AgentFailed', asks: 15 },
    { reason: 'AgentFailed', exitCode: 137, asks: 20 },
    { reason: 'Completed', asks: 0 },
  ])(
    'an agent that ended with $reason $exitCode: the node is asked $asks times',
    async ({ reason, exitCode, asks }) => {
      vi.useFakeTimers()
      try {
        let asked = 0
        const outcome: StepOutcome = {
          ...{ condition: 'AgentFinished', reason, message: 'as it was' },
          ...(exitCode === undefined ? {} : { status: { exitCode } }),
        }
        const told = withEviction(Promise.resolve(outcome), async () => {
          asked += 1
          return undefined
        })
        await vi.advanceTimersByTimeAsync(60_000)
        expect([await told, asked]).toEqual([outcome, asks])
      } finally {
        vi.useRealTimers()
      }
    },
  )
})

import { type ApiServer, createApiServer, memoryStorage } from '@corral/apiserver'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import { silentLogger } from '@corral/ports'
import { CorralError, type TaskEvent } from '@corral/protocol'
import {
  type AgentTask,
  AgentTasks,
  embeddedCrds,
  SandboxClaims,
  SandboxWarmPools,
  setCondition,
} from '@corral/resources'
import { claimFor, memoryTaskRecords, type TaskRecords } from '@corral/tasks'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { StepName } from '../../packages/tasks/src/agent-task/plan.js'
import { taskReconciler } from '../../packages/tasks/src/agent-task/reconciler.js'
import { createStepRunner, type StepRunner } from '../../packages/tasks/src/agent-task/step-runner.js'
import type { TaskPorts } from '../../packages/tasks/src/agent-task/task-ports.js'
import type { StepOutcome } from '../../packages/tasks/src/steps/step.js'
import { TaskError } from '../../packages/tasks/src/task-error.js'

const namespace = 'default'
const name = 'task-a'
const started = new Date('2026-01-01T00:00:00Z')
let server: ApiServer
let client: KubeClient
let records: TaskRecords
let steps: StepRunner
let uid: string
let now: Date
/** What each step does when it is started; it hangs where nothing is said. */
let work: Partial<Record<StepName, () => Promise<StepOutcome>>>
let ran: StepName[]
let mayStart: boolean
let woken: PromiseWithResolvers<void>

interface PromiseWithResolvers<T> {
  promise: Promise<T>
  resolve(value: T): void
}
function withResolvers(): PromiseWithResolvers<void> {
  let resolve: () => void = () => undefined
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

beforeEach(async () => {
  server = await createApiServer({ storage: memoryStorage(), crds: embeddedCrds() })
  await server.ready
  client = inProcessKubeClient(server)
  now = new Date(started.getTime() + 10_000)
  records = memoryTaskRecords({ now: () => now })
  woken = withResolvers()
  steps = createStepRunner({ wake: () => woken.resolve(), log: silentLogger })
  work = {}
  ran = []
  mayStart = true
})
afterEach(async () => {
  await steps.close()
  await records.close()
  await client.close()
  await server.close()
})

const ports = (): TaskPorts => ({
  client,
  at: async () => ports(),
  provider: undefined,
  ensurePool: async () => 'default',
  records,
  steps,
  runStep: (step, _task, _end, signal) => {
    ran.push(step)
    return work[step]?.() ?? new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  },
  mayStart: () => mayStart,
  isPlaceWanted: () => false,
  isHeldOverLimit: () => false,
  usageOf: async () => undefined,
  budgetRefusalOf: async () => undefined,
  finished: () => undefined,
  hasEgressByName: true,
  isolation: 'bubblewrap',
  clock: { now: () => now } as TaskPorts['clock'],
  log: silentLogger,
})

const pass = () =>
  taskReconciler(ports())({
    namespace,
    name,
    key: `${namespace}/${name}`,
    signal: AbortSignal.timeout(600_000),
  } as never)
const task = () => client.get(AgentTasks, { namespace, name })
const conditionOf = async (type: string) => (await task()).status?.conditions?.find((each) => each.type === type)
async function events(): Promise<TaskEvent[]> {
  const all: TaskEvent[] = []
  for await (const event of records.events.read(uid)) all.push(event)
  return all
}
const condition = (type: string, reason = 'Done') => ({
  ...{ type, status: 'True' as const, reason, message: '', lastTransitionTime: started.toISOString() },
})

async function create(spec: Partial<AgentTask['spec']> = {}, passed: readonly string[] = []): Promise<void> {
  const made = await client.create(AgentTasks, {
    metadata: { name, namespace, finalizers: ['corral.dev/task'] },
    spec: { repository: { url: '/r' }, prompt: 'x', agent: { name: 'command', command: 'true' }, ...spec },
  })
  uid = made.metadata.uid
  if (passed.length === 0) return
  const sandbox = { claimName: name, sandboxName: 'sandbox-1', podName: 'sandbox-1' }
  await client.updateStatus(AgentTasks, {
    ...made,
    status: { conditions: passed.map((type) => condition(type)), sandbox },
  })
  const claim = await client.create(SandboxClaims, claimFor(made, 'default', started))
  await client.updateStatus(SandboxClaims, {
    ...claim,
    status: { sandbox: { name: 'sandbox-1' }, conditions: setCondition([], condition('Ready'), started) },
  })
}
const inSandbox = ['Admitted', 'SandboxReady']

describe('the reconciler of a task', () => {
  it('rests when the task is gone', async () => {
    expect(await pass()).toEqual({})
  })

  it('leaves a task that has to wait without a claim', async () => {
    mayStart = false
    await create()
    await pass()
    expect((await client.list(SandboxClaims, { namespace })).items).toEqual([])
  })

  it('makes the pool of a template once, with no replicas, and the claim in it', async () => {
    await create({ sandbox: { template: 'py' } })
    for (let count = 0; count < 4; count++) await pass()
    const pools = (await client.list(SandboxWarmPools, { namespace })).items
    expect(pools.map(({ metadata, spec }) => [metadata.name, spec.replicas, spec.sandboxTemplateRef.name])).toEqual([
      ['corral-py', 0, 'py'],
    ])
    const claims = (await client.list(SandboxClaims, { namespace })).items
    expect(claims.map(({ metadata, spec }) => [metadata.name, spec.warmPoolRef.name])).toEqual([[name, 'corral-py']])
    expect(await events()).toMatchObject([{ type: 'stage', stage: 'claim', state: 'started' }])
  })

  it('announces a step once and starts it once, however often it looks', async () => {
    await create({}, inSandbox)
    for (let count = 0; count < 3; count++) await pass()
    expect(ran).toEqual(['repository'])
    expect(await events()).toMatchObject([{ type: 'stage', stage: 'repository', state: 'started' }])
  })

  it('records how a step ended, events first, and comes back at once', async () => {
    const told = { type: 'stage', stage: 'repository', state: 'finished' } as const
    work.repository = async () => ({
      condition: 'RepositoryReady',
      reason: 'CheckedOut',
      message: 'main at c0',
      status: { baseCommit: 'c0' },
      events: [told],
    })
    await create({}, inSandbox)
    await pass()
    await woken.promise
    expect(await pass()).toEqual({ requeueAfterMs: 0 })
    expect(await conditionOf('RepositoryReady')).toMatchObject({ status: 'True', reason: 'CheckedOut' })
    expect((await task()).status?.baseCommit).toBe('c0')
    expect((await events()).at(-1)).toMatchObject(told)
  })

  it('a step that failed for a lost connection is tried again after a while, and nothing is recorded', async () => {
    work.repository = () => Promise.reject(new CorralError('ConnectionLost', 'gone'))
    await create({}, inSandbox)
    await pass()
    await woken.promise
    const before = await task()
    const { requeueAfterMs = 0 } = (await pass()) ?? {}
    expect(requeueAfterMs).toBeGreaterThan(0)
    expect(await task()).toEqual(before)
    await pass()
    expect(ran).toEqual(['repository', 'repository'])
  })

  it('a step that cannot be done is recorded with its cause, and the task told', async () => {
    work.repository = () => Promise.reject(new TaskError('BranchNotFound', 'no branch "x"', { hint: 'Name another.' }))
    await create({}, inSandbox)
    await pass()
    await woken.promise
    await pass()
    expect(await conditionOf('RepositoryReady')).toMatchObject({ status: 'False', reason: 'BranchNotFound' })
    expect((await task()).status?.cause).toMatchObject({ code: 'BranchNotFound', hint: 'Name another.' })
    expect((await events()).slice(1)).toMatchObject([
      { type: 'error', code: 'BranchNotFound', message: 'no branch "x"' },
      { type: 'stage', stage: 'repository', state: 'failed' },
    ])
  })

  it('a sandbox whose work could not be taken out is kept, unless it filled the disk', async () => {
    for (const [code, kept] of [
      ['ResultFailed', true],
      ['DiskLimit', undefined],
    ] as const) {
      work.collect = () => Promise.reject(new TaskError(code, 'no'))
      await create({}, [...inSandbox, 'RepositoryReady', 'SetupDone', 'AgentStarted', 'AgentFinished'])
      woken = withResolvers()
      await pass()
      await woken.promise
      await pass()
      expect((await task()).status?.sandbox?.kept, code).toBe(kept)
      steps.forget(uid)
      await client.patch(AgentTasks, { namespace, name }, { type: 'merge', body: { metadata: { finalizers: null } } })
      await client.delete(AgentTasks, { namespace, name })
      await client.delete(SandboxClaims, { namespace, name }).catch(() => undefined)
    }
  })

  it('the work of an agent that was cut short is recorded as a part', async () => {
    work.collect = async () => ({
      condition: 'ResultCollected',
      reason: 'Accepted',
      message: '',
      status: { outcome: 'changes', commit: 'c1' },
    })
    await create({}, [...inSandbox, 'RepositoryReady', 'SetupDone', 'AgentStarted'])
    const current = await task()
    await client.updateStatus(AgentTasks, {
      ...current,
      status: {
        ...current.status,
        conditions: [...(current.status?.conditions ?? []), condition('AgentFinished', 'OutOfMemory')],
      },
    })
    await pass()
    await woken.promise
    await pass()
    expect((await task()).status?.outcome).toBe('partial')
  })

  it('a deleted task is over only when its record is removed: then the object goes', async () => {
    await create()
    await records.events.append(uid, [{ type: 'output', stream: 'stdout', text: 'x' }])
    await client.delete(AgentTasks, { namespace, name })
    for (let count = 0; count < 10 && (await client.find(AgentTasks, { namespace, name })); count++) await pass()
    expect(await client.find(AgentTasks, { namespace, name })).toBeUndefined()
    expect(await events()).toEqual([])
  })
})

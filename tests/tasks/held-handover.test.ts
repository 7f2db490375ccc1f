import { type ApiServer, createApiServer, memoryStorage } from '@corral/apiserver'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import { silentLogger } from '@corral/ports'
import {
  type AgentTask,
  AgentTasks,
  embeddedCrds,
  isConflict,
  SandboxClaims,
  type Stored,
  setCondition,
} from '@corral/resources'
import { claimFor, memoryTaskRecords, type TaskRecords } from '@corral/tasks'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { taskReconciler } from '../../packages/tasks/src/agent-task/reconciler.js'
import { createStepRunner } from '../../packages/tasks/src/agent-task/step-runner.js'
import type { TaskPorts } from '../../packages/tasks/src/agent-task/task-ports.js'

let server: ApiServer
let client: KubeClient
let records: TaskRecords
let now: Date
const namespace = 'default'
const t0 = new Date('2026-01-01T00:00:00Z')

beforeEach(async () => {
  server = await createApiServer({ storage: memoryStorage(), crds: embeddedCrds() })
  await server.ready
  client = inProcessKubeClient(server)
  records = memoryTaskRecords({ now: () => now })
  now = new Date(t0.getTime() + 10_000)
})
afterEach(async () => {
  await records.close()
  await client.close()
  await server.close()
})

const condition = (type: string, reason = 'Done') => ({
  ...{ type, status: 'True' as const, reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
})
const spec = { repository: { url: '/r' }, prompt: 'x', agent: { name: 'command', command: 'true' } }

/** An ended task that holds its sandbox, and that sandbox. */
async function holder(): Promise<Stored<AgentTask>> {
  const made = await client.create(AgentTasks, {
    metadata: { name: 'task-one', namespace, finalizers: ['corral.dev/task'] },
    spec: { ...spec, holdSandboxSeconds: 60 },
  })
  const claim = await client.create(SandboxClaims, claimFor(made, 'default', t0))
  await client.updateStatus(SandboxClaims, {
    ...claim,
    status: { sandbox: { name: 'sandbox-1' }, conditions: setCondition([], condition('Ready'), t0) },
  })
  const passed = ['Admitted', 'SandboxReady', 'RepositoryReady', 'SetupDone', 'AgentStarted', 'AgentFinished']
  const conditions = [...passed.map((type) => condition(type)), condition('ResultCollected', 'Accepted')]
  return client.updateStatus(AgentTasks, {
    ...made,
    status: {
      conditions: [...conditions, condition('Succeeded', 'Succeeded')],
      sandbox: { claimName: 'task-one', sandboxName: 'sandbox-1', heldUntil: '2026-01-01T00:01:00Z' },
      ...{ commit: 'c1', baseCommit: 'c0', outcome: 'changes' as const },
    },
  })
}
const followUp = async (name: string, former: Stored<AgentTask>): Promise<Stored<AgentTask>> =>
  client.create(AgentTasks, {
    metadata: { name, namespace, finalizers: ['corral.dev/task'] },
    spec: {
      ...spec,
      continues: {
        task: 'task-one',
        uid: former.metadata.uid,
        thread: 'task-one',
        claimName: 'task-one',
        commit: 'c1',
      },
    },
  })

class Crash extends Error {}
type Write = 'create' | 'update' | 'updateStatus' | 'delete'

/** A process that dies at its `crashAt`-th write, before or after it is stored. */
function reconciler(crashAt = Number.POSITIVE_INFINITY, when: 'before' | 'after' = 'before') {
  let writes = 0
  const dying = new Proxy(client, {
    get(target, key: Write) {
      const call = (target as unknown as Record<Write, (...args: unknown[]) => Promise<unknown>>)[key]
      if (!['create', 'update', 'updateStatus', 'delete'].includes(key)) return call
      return async (...args: unknown[]) => {
        const isLast = ++writes === crashAt
        if (isLast && when === 'before') throw new Crash()
        const answer = await call.apply(target, args)
        if (isLast) throw new Crash()
        return answer
      }
    },
  })
  const ports: TaskPorts = {
    client: dying,
    at: async () => ports,
    provider: undefined,
    ensurePool: async () => 'default',
    records,
    steps: createStepRunner({ wake: () => undefined, log: silentLogger }),
    runStep: () => new Promise(() => undefined),
    mayStart: () => true,
    isPlaceWanted: () => false,
    isHeldOverLimit: () => false,
    usageOf: async () => undefined,
    budgetRefusalOf: async () => undefined,
    finished: () => undefined,
    hasEgressByName: true,
    isolation: undefined,
    clock: { now: () => now } as TaskPorts['clock'],
    log: silentLogger,
  }
  const reconcile = taskReconciler(ports)
  return {
    writes: () => writes,
    /** One pass for each task; false when none of them wrote anything. */
    async pass(names: readonly string[]): Promise<boolean> {
      const before = writes
      for (const name of names)
        await reconcile({
          namespace,
          name,
          key: `${namespace}/${name}`,
          signal: new AbortController().signal,
        } as never).catch((error: unknown) => {
          if (!isConflict(error)) throw error
        })
      return writes > before
    },
  }
}

async function untilRest(names: readonly string[], controller = reconciler()): Promise<void> {
  for (let pass = 0; pass < 50; pass++) if (!(await controller.pass(names))) return
  throw new Error('it does not come to rest')
}
const state = async () => {
  const claims = (await client.list(SandboxClaims, { namespace })).items
  const tasks = (await client.list(AgentTasks, { namespace })).items
  return {
    claims: claims.map(({ metadata }) => [
      metadata.name,
      tasks.find(({ metadata: { uid } }) => uid === metadata.ownerReferences?.[0]?.uid)?.metadata.name,
    ]),
    taken: tasks.map(({ metadata, status }) => [metadata.name, status?.sandbox?.takenFrom]),
    noted: tasks.map(({ metadata }) => metadata.annotations?.['corral.dev/sandbox-let-go']),
  }
}

describe('a held sandbox changes hands', () => {
  const handed = {
    claims: [['task-one', 'task-two']],
    taken: [
      ['task-one', undefined],
      ['task-two', 'task-one'],
    ],
    noted: ['gone', undefined],
  }
  it('once, and then both tasks rest', async () => {
    await followUp('task-two', await holder())
    await untilRest(['task-one', 'task-two'])
    expect(await state()).toEqual(handed)
  })

  it.each(['before', 'after'] as const)('the same after a crash %s any write', async (when) => {
    const former = await holder()
    await followUp('task-two', former)
    const names = ['task-one', 'task-two']
    let crashes = 0
    // Every life of the process gets one write further than the last.
    for (let isOver = false; !isOver; ) {
      const controller = reconciler(when === 'after' ? 1 : 2, when)
      isOver = await untilRest(names, controller).then(
        () => true,
        (error: unknown) => {
          if (!(error instanceof Crash)) throw error
          return ++crashes > 30
        },
      )
    }
    expect(crashes).toBeGreaterThan(2)
    expect(crashes).toBeLessThan(30)
    expect(await state()).toEqual(handed)
  })

  it('to one of two follow-ups; the other makes a claim of its own', async () => {
    const former = await holder()
    await followUp('task-two', former)
    await followUp('task-xx', former)
    await untilRest(['task-one', 'task-two', 'task-xx'])
    const { claims } = await state()
    expect(claims).toEqual([
      ['task-one', 'task-two'],
      ['task-xx', 'task-xx'],
    ])
  })

  it('not any more when its time was over while the follow-up came', async () => {
    await followUp('task-two', await holder())
    now = new Date('2026-01-01T00:01:00Z')
    await untilRest(['task-two', 'task-one'])
    expect((await state()).claims).toEqual([['task-two', 'task-two']])
  })

  it('and stays with the follow-up when the former is deleted, at any moment', async () => {
    await followUp('task-two', await holder())
    const controller = reconciler()
    // Admitted, then it has the claim; its own record does not say so yet.
    await controller.pass(['task-two'])
    await controller.pass(['task-two'])
    expect((await state()).claims).toEqual([['task-one', 'task-two']])
    await client.delete(AgentTasks, { namespace, name: 'task-one' })
    await untilRest(['task-one', 'task-two'])
    expect(await client.find(AgentTasks, { namespace, name: 'task-one' })).toBeUndefined()
    expect(await state()).toMatchObject({ claims: [['task-one', 'task-two']], taken: [['task-two', 'task-one']] })
    // A task of that name that comes later waits for the name of its claim instead of taking it for its own.
    await client.create(AgentTasks, {
      metadata: { name: 'task-one', namespace, finalizers: ['corral.dev/task'] },
      spec,
    })
    await untilRest(['task-one', 'task-two'])
    expect((await state()).claims).toEqual([['task-one', 'task-two']])
  })

  it('and goes when the follow-up is cancelled before it began', async () => {
    await followUp('task-two', await holder())
    const controller = reconciler()
    await controller.pass(['task-two'])
    await controller.pass(['task-two'])
    await client.patch(
      AgentTasks,
      { namespace, name: 'task-two' },
      { type: 'merge', body: { spec: { cancelRequested: true } } },
    )
    await untilRest(['task-one', 'task-two'])
    expect((await state()).claims).toEqual([])
  })
})

import { join } from 'node:path'
import type { TaskView } from '@corral/protocol'
import { SandboxClaims } from '@corral/resources'
import { type GitFixture, gitRepository, type PlatformProcess, startPlatformProcess, waitUntil } from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { acpAgent, acpAgentSource } from './acp-agent.js'

let platform: PlatformProcess
let count = 0
beforeAll(async () => {
  platform = await startPlatformProcess()
})
afterAll(() => platform?.[Symbol.asyncDispose]())

const repository = (): Promise<GitFixture> =>
  gitRepository(join(platform.directory, `repo-${++count}`), { 'agent.mjs': acpAgentSource })

/** A task that waits with its plan. */
async function planned(repo: GitFixture, more: object = {}): Promise<TaskView> {
  const id = await platform.api.create({ repo: repo.path, task: 'the work', agent: acpAgent, mode: 'plan', ...more })
  return untilPlan(id, 1)
}
async function untilPlan(id: string, revision: number): Promise<TaskView> {
  let view = await platform.api.get(id)
  await waitUntil(`plan ${revision} of ${id}`, async () => {
    view = await platform.api.get(id)
    const isWaiting = view.status === 'WAITING_APPROVAL' && view.plan?.revision === revision
    if (!isWaiting && view.times?.finished_at) throw new Error(JSON.stringify(view.cause))
    return isWaiting
  })
  return view
}
const decide = (id: string, verdict: string, body: object) =>
  platform.api.request('POST', `/tasks/${id}/${verdict}`, { body })
const isHeld = async (id: string): Promise<boolean> =>
  (await (await platform.kube()).find(SandboxClaims, { namespace: 'corral', name: id })) !== undefined

describe('a task that plans first', () => {
  it('S2-H7: waits with its plan, is revised, approved with changes, and carries it out', async () => {
    const repo = await repository()
    const first = await planned(repo)
    expect(first.plan).toMatchObject({ revision: 1, text: 'First look.\n\nThen do: the work' })
    expect(await decide(first.id, 'revise', { revision: 1, remark: 'smaller, please' })).toMatchObject({ status: 202 })
    const second = await untilPlan(first.id, 2)
    expect(second.plan?.text).toContain('smaller, please')
    expect(await decide(first.id, 'approve', { revision: 1 })).toMatchObject({
      status: 409,
      json: { error: { code: 'PlanRevised' } },
    })
    const approved = await decide(first.id, 'approve', { revision: 2, plan: 'Only step three.', remark: 'Be quick.' })
    expect(approved).toMatchObject({ status: 202, json: { plan: { verdict: 'approve', text: 'Only step three.' } } })
    expect(await decide(first.id, 'approve', { revision: 2 })).toMatchObject({
      status: 409,
      json: { error: { code: 'PlanDecided' } },
    })
    const ended = await platform.api.untilEnded(first.id)
    expect(ended).toMatchObject({ status: 'SUCCEEDED', outcome: 'changes', mode: 'plan', plan: { verdict: 'approve' } })
    const told = await repo.show(ended.branch!, 'told.txt')
    expect(told).toContain('Only step three.')
    expect(told).toContain('Be quick.')
    const kinds = (await platform.api.allEvents(first.id)).map(({ type }) => type)
    expect(kinds.filter((kind) => kind === 'plan')).toHaveLength(2)
    expect(kinds.filter((kind) => kind === 'plan_decision')).toHaveLength(2)
    expect(
      (await platform.api.request('GET', `/tasks/${first.id}/logs`)).text.match(/session\/new|"corral":"end"/g),
    ).toHaveLength(3)
  })

  it('gives its sandbox back while it waits, survives kill -9 meanwhile, and goes on in another one', async () => {
    const repo = await repository()
    const waiting = await planned(repo, {
      task: 'touch it',
      hold_sandbox_seconds: 0,
      files: [{ path: 'hint', content: 'h' }],
    })
    await waitUntil('the sandbox to be given back', async () => !(await isHeld(waiting.id)))
    await platform.kill9()
    await platform.restart()
    expect(await platform.api.get(waiting.id)).toMatchObject({ status: 'WAITING_APPROVAL', plan: { revision: 1 } })
    expect((await platform.corral(['task', 'approve', waiting.id])).code).toBe(0)
    const ended = await platform.api.untilEnded(waiting.id)
    expect(ended, JSON.stringify(ended.cause)).toMatchObject({ status: 'SUCCEEDED' })
    expect(await repo.show(ended.branch!, 'touched.txt')).toBe('plan\ncode')
  })

  it('is rejected with the reason, from the command line', async () => {
    const waiting = await planned(await repository())
    expect((await platform.corral(['task', 'plan', waiting.id])).stdout).toContain('Then do: the work')
    expect((await platform.corral(['task', 'reject', waiting.id, 'not worth it'])).code).toBe(0)
    expect(await platform.api.untilEnded(waiting.id)).toMatchObject({
      status: 'CANCELLED',
      cause: { message: 'the plan was rejected: not worth it' },
      plan: { verdict: 'reject', remark: 'not worth it' },
    })
    await waitUntil('the sandbox to be given back', async () => !(await isHeld(waiting.id)))
    expect(await decide(waiting.id, 'approve', { revision: 1 })).toMatchObject({
      status: 409,
      json: { error: { code: 'PlanDecided', message: expect.stringContaining('already rejected') } },
    })
  })

  it('expires', async () => {
    const id = await platform.api.create({
      ...{ repo: (await repository()).path, task: 'x', agent: acpAgent, mode: 'plan', plan_expiry_seconds: 1 },
    })
    expect(await platform.api.untilEnded(id)).toMatchObject({ status: 'FAILED', cause: { code: 'PlanExpired' } })
    expect(await decide(id, 'approve', { revision: 1 })).toMatchObject({
      status: 409,
      json: { error: { code: 'PlanExpired' } },
    })
  })

  it('is refused for an agent that cannot be held to planning, and without a plan nothing can be decided', async () => {
    const repo = await repository()
    const agent = { name: 'command', command: 'true' }
    const refused = await platform.api.request('POST', '/tasks', {
      body: { repo: repo.path, task: 'x', agent, mode: 'plan' },
    })
    expect(refused).toMatchObject({ status: 422, text: expect.stringContaining('cannot plan') })
    const plain = await platform.api.run({ repo: repo.path, task: 'x', agent })
    expect(await decide(plain.id, 'approve', { revision: 1 })).toMatchObject({
      status: 409,
      json: { error: { code: 'TaskFinished' } },
    })
  })
})

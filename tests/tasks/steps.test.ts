import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { findProvider } from '@corral/agents'
import { createDaemon } from '@corral/daemon'
import { silentLogger, systemClock } from '@corral/ports'
import { DaemonClient, type TaskEvent } from '@corral/protocol'
import { type AgentTask, type AgentTaskStatus, type Stored, setCondition } from '@corral/resources'
import { directoryTaskRecords, type TaskRecords } from '@corral/tasks'
import { type GitFixture, gitRepository, temporaryDirectory } from '@corral/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { agentOf } from '../../packages/tasks/src/agent-spec.js'
import { createGit } from '../../packages/tasks/src/git/git.js'
import { writeGlobalConfig } from '../../packages/tasks/src/git/global-config.js'
import { createRepository } from '../../packages/tasks/src/repository/repository.js'
import { findWorkspace } from '../../packages/tasks/src/sandbox/workspace.js'
import { followAgentStep, startAgentStep, stopAgentStep } from '../../packages/tasks/src/steps/agent-steps.js'
import { takeCheckpoint } from '../../packages/tasks/src/steps/checkpoints.js'
import { repositoryStep } from '../../packages/tasks/src/steps/repository-step.js'
import { collectStep, collectStepWithin, pushStep } from '../../packages/tasks/src/steps/result-steps.js'
import { salvageStep } from '../../packages/tasks/src/steps/salvage-step.js'
import { setupStep } from '../../packages/tasks/src/steps/setup-step.js'
import type { Step, StepContext, StepOutcome } from '../../packages/tasks/src/steps/step.js'
import type { EndReason } from '../../packages/tasks/src/task-state/ending.js'

const uid = 'uid-1'
const release: (() => PromiseLike<unknown>)[] = []
let repo: GitFixture
let daemon: DaemonClient
let records: TaskRecords
let repository: StepContext['repository']
let task: Stored<AgentTask>
let model: Awaited<ReturnType<StepContext['findModel']>>

/** A real daemon in a directory of its own, a real repository and a real record; the cluster alone is left out. */
beforeEach(async () => {
  const scratch = temporaryDirectory()
  const workspace = join(scratch.path, 'workspace')
  mkdirSync(workspace)
  const inside = await createDaemon({
    workDir: workspace,
    stateDir: join(scratch.path, 'daemon'),
    clock: systemClock,
    log: silentLogger,
    env: { PATH: process.env.PATH, HOME: workspace, CORRAL_WORKSPACE: workspace },
    defaultCwd: workspace,
    onRunnerFinished: () => undefined,
  })
  daemon = new DaemonClient({ fetch: async (url, init) => inside.fetch(new Request(url, init)) })
  records = directoryTaskRecords({ directory: join(scratch.path, 'tasks'), now: () => new Date() })
  const globalConfig = await writeGlobalConfig(join(scratch.path, 'config'), process.env)
  repository = createRepository({
    git: createGit({ globalConfig, env: process.env }),
    mirrorsDirectory: join(scratch.path, 'mirrors'),
  })
  repo = await gitRepository(join(scratch.path, 'repo'))
  model = undefined
  task = made({})
  release.push(
    () => scratch[Symbol.asyncDispose](),
    () => inside.close(),
    () => records.close(),
  )
})
afterEach(async () => {
  for (const each of release.splice(0).reverse()) await each()
})

function made(spec: Partial<AgentTask['spec']>): Stored<AgentTask> {
  return {
    apiVersion: 'corral.dev/v1alpha1',
    kind: 'AgentTask',
    metadata: {
      ...{ name: 'task-a', namespace: 'n', uid, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
    },
    spec: {
      repository: { url: repo.path },
      prompt: 'Add a greeting',
      agent: { name: 'command', command: 'echo working; echo hello > greeting.txt' },
      ...spec,
    },
    status: { sandbox: { claimName: 'task-a', sandboxName: 's', podName: 's' } },
  }
}

function context(reason?: EndReason): StepContext {
  const { adapter, options } = agentOf(task)
  const signal = new AbortController().signal
  return {
    task,
    openSandbox: async () => ({ daemon, close: async () => undefined }),
    findWorkspace: () => findWorkspace(daemon, uid, signal),
    record: records.of(uid),
    former: undefined,
    findRepeated: async () => undefined,
    continued: undefined,
    findFormer: async () => undefined,
    findFormerPrompt: async () => undefined,
    adapter,
    agentOptions: options,
    repository,
    eventLog: records.events,
    broker: { baseUrl: 'http://corral-broker:8787', tokenFor: (of) => `token-of-${of}` },
    findModel: async () => model,
    enterPhase: async () => ({ hasPackages: false }),
    watchRefusals: () => ({ settled: async () => [], stop: async () => undefined }),
    grantedTo: async () => ({ egress: [], secrets: [] }),
    sandboxLimits: async () => ({}),
    applyResources: async () => true,
    applyImage: async () => true,
    findSecret: async () => undefined,
    packageClients: undefined,
    environments: undefined,
    signal,
    progress: () => undefined,
    report: () => undefined,
    watchTask: () => () => undefined,
    whySandboxEnded: async () => undefined,
    reason,
    now: () => new Date(),
    log: silentLogger,
  }
}

/** Does a step and records its outcome in the task, as the reconciler does. */
async function does(step: Step, reason?: EndReason): Promise<StepOutcome> {
  const outcome = await step(context(reason))
  if (outcome.events) await records.events.append(uid, outcome.events)
  const status: AgentTaskStatus = { ...task.status, ...outcome.status }
  const condition = {
    type: outcome.condition,
    status: outcome.conditionStatus ?? 'True',
    reason: outcome.reason,
  } as const
  const conditions = setCondition(status.conditions ?? [], { ...condition, message: outcome.message }, new Date())
  task = { ...task, status: { ...status, conditions } }
  return outcome
}
async function events(): Promise<TaskEvent[]> {
  const all: TaskEvent[] = []
  for await (const event of records.events.read(uid)) all.push(event)
  return all
}
const output = async (): Promise<string> =>
  (await events()).map((event) => (event.type === 'output' ? event.text : '')).join('')

describe('the steps of a task', () => {
  it('bring the repository in, run the agent, and bring its work out as a branch', async () => {
    const base = await repo.git('rev-parse', 'main')
    expect(await does(repositoryStep)).toMatchObject({ condition: 'RepositoryReady', status: { baseCommit: base } })
    expect(await does(setupStep)).toMatchObject({ condition: 'SetupDone', reason: 'NothingToDo' })
    expect(await does(startAgentStep)).toMatchObject({ condition: 'AgentStarted' })
    expect(await does(followAgentStep)).toMatchObject({ reason: 'Completed', status: { exitCode: 0 } })
    expect(await does(collectStep)).toMatchObject({ condition: 'ResultCollected', status: { outcome: 'changes' } })
    expect(await does(pushStep)).toMatchObject({ condition: 'Pushed', status: { branch: 'corral/task-a' } })
    expect(await repo.show('corral/task-a', 'greeting.txt')).toBe('hello')
    expect(await output()).toContain('working')
  })

  it('can each be repeated: one clone, one run, one line of output, one push', async () => {
    task = made({ agent: { name: 'command', command: 'echo once >> runs.txt; echo said' } })
    for (const step of [repositoryStep, setupStep, startAgentStep, followAgentStep, collectStep, pushStep])
      for (let time = 0; time < 2; time++) await does(step)
    expect(await repo.show('corral/task-a', 'runs.txt')).toBe('once')
    expect((await output()).match(/said/g)).toHaveLength(1)
    expect(repo.writesOf('corral/task-a')).toBe(1)
  })

  it('a repository that cannot be read fails the first of them by name', async () => {
    task = made({ baseBranch: 'nowhere' })
    await expect(does(repositoryStep)).rejects.toMatchObject({ code: 'BranchNotFound' })
  })

  it('a file of the request that leads out of the repository is refused, and nothing is written there', async () => {
    task = made({ files: [{ path: '../outside', content: 'x' }] })
    await expect(does(repositoryStep)).rejects.toMatchObject({
      code: 'FileInjectionFailed',
      message: '"../outside" leaves the repository',
    })
    const { scratch } = await findWorkspace(daemon, uid, new AbortController().signal)
    expect(await daemon.statFile(join(scratch, '../outside'))).toBeUndefined()
  })

  it('a set-up that fails says its exit code and last words, and they are in the log', async () => {
    task = made({ setup: 'echo no compiler >&2; exit 7' })
    await does(repositoryStep)
    await expect(does(setupStep)).rejects.toMatchObject({
      code: 'SetupFailed',
      message: expect.stringMatching(/exit code 7: .*no compiler/s) as string,
    })
    expect(await output()).toContain('no compiler')
  })

  it('what set-up leaves behind is not the work of the agent', async () => {
    task = made({ setup: 'echo built > build.log', agent: { name: 'command', command: 'true' } })
    for (const step of [repositoryStep, setupStep, startAgentStep, followAgentStep]) await does(step)
    expect(await does(collectStep)).toMatchObject({ status: { outcome: 'no_changes' } })
  })

  it('an agent that fails is over with its exit code, and what it did is still collected', async () => {
    task = made({ agent: { name: 'command', command: 'echo half > half.txt; exit 3' } })
    for (const step of [repositoryStep, setupStep, startAgentStep]) await does(step)
    expect(await does(followAgentStep)).toMatchObject({ reason: 'AgentFailed', status: { exitCode: 3 } })
    expect(await does(collectStep)).toMatchObject({ status: { outcome: 'changes' } })
  })

  it('an agent that is stopped ends with the reason it is stopped for', async () => {
    task = made({ agent: { name: 'command', command: 'echo begun; exec sleep 600' }, timeoutSeconds: 5 })
    for (const step of [repositoryStep, setupStep, startAgentStep]) await does(step)
    expect(await does(stopAgentStep, 'Timeout')).toMatchObject({
      condition: 'AgentFinished',
      reason: 'Timeout',
      message: 'the agent ran longer than 5 s',
    })
  })

  it.each([
    { without: 'a key for its model', isUsable: false, code: 'ModelKeyMissing', says: /needs a key for Anthropic/ },
    { without: 'its program', isUsable: true, code: 'AgentNotInstalled', says: /"claude" is not in the sandbox/ },
  ])('an agent without $without is not started, and says what to do', async ({ isUsable, code, says }) => {
    task = made({ agent: { name: 'claude' } })
    model = { provider: findProvider('anthropic')!, isUsable }
    for (const step of [repositoryStep, setupStep]) await does(step)
    await expect(does(startAgentStep)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(says) as string,
      hint: expect.stringMatching(/corral (secret set|agent install)/) as string,
    })
  })

  it('what lies beside the result and is too large is left out by name, and the sandbox that has it is kept', async () => {
    const command = 'echo other > other.txt; git stash -qu; echo hello > greeting.txt'
    task = made({ agent: { name: 'command', command } })
    for (const step of [repositoryStep, startAgentStep, followAgentStep]) await does(step)

    const { status } = await does(collectStepWithin({ keptBytes: 10 }))

    expect(status).toMatchObject({ outcome: 'changes', sandbox: { claimName: 'task-a', kept: true } })
    expect(status?.warnings?.map(({ code }) => code).sort()).toEqual(['KeptRefsLeftOut', 'StashKept'])
    expect(status?.artifacts).toBeUndefined()
    await does(pushStep)
    expect(await repo.git('show', `${task.status?.branch}:greeting.txt`)).toBe('hello')
  })

  it.each([
    { when: 'is kept with the task', keptBytes: 1_000_000, artifacts: ['left-out.tar'], isKept: undefined },
    { when: 'stays in the sandbox where that is too large', keptBytes: 10, artifacts: undefined, isKept: true },
  ])('a file with a name that git refuses $when', async ({ keptBytes, artifacts, isKept }) => {
    task = made({ agent: { name: 'command', command: "echo mine > 'git~1'; echo hello > greeting.txt" } })
    for (const step of [repositoryStep, startAgentStep, followAgentStep]) await does(step)

    const { status } = await does(collectStepWithin({ keptBytes }))

    expect(status?.warnings).toMatchObject([{ code: 'PathLeftOut', path: 'git~1' }])
    expect(status?.artifacts).toEqual(artifacts)
    expect(status?.sandbox?.kept).toBe(isKept)
  })

  it('a filter that waits for ever costs the agent’s settings, not its work', async () => {
    const filter = "git config filter.slow.clean 'sleep 100000'; echo '*.txt filter=slow' > .gitattributes"
    task = made({ agent: { name: 'command', command: `${filter}; echo hello > greeting.txt` } })
    for (const step of [repositoryStep, startAgentStep, followAgentStep]) await does(step)

    const { status } = await does(collectStepWithin({ keptBytes: 1_000_000, repositoryMs: 3_000 }))

    expect(status?.warnings).toMatchObject([
      { code: 'RepositoryDamaged', message: expect.stringContaining('not done after 3 s') as string },
    ])
    await does(pushStep)
    expect(await repo.show('corral/task-a', 'greeting.txt')).toBe('hello')
  })

  it('files that conflict with the agent’s branch are named, though the warning has nothing more to say', async () => {
    const command =
      'echo one > n.txt; git add n.txt; git commit -qm one; git checkout -q main; echo two > n.txt; echo three > greeting.txt'
    task = made({ agent: { name: 'command', command } })
    for (const step of [repositoryStep, startAgentStep, followAgentStep]) await does(step)
    expect((await does(collectStep)).status?.warnings).toMatchObject([{ code: 'UncommittedKept' }])
  })

  it('a sandbox that is lost with nothing but stashes leaves those of the last checkpoint', async () => {
    task = made({ agent: { name: 'command', command: 'echo more >> README.md; git stash -q' } })
    for (const step of [repositoryStep, startAgentStep, followAgentStep]) await does(step)
    await takeCheckpoint(daemon, context(), `${uid}.checkpoint-1`)
    const outcome = await does(salvageStep)
    expect(outcome.reason).toBe('Lost')
    expect(outcome.message).toContain('what lay beside it is kept.bundle')
    expect(task.status?.artifacts).toEqual(['kept.bundle'])
    const kept = await records.of(uid).localFile('artifact/kept.bundle')
    expect(await repo.git('bundle', 'list-heads', kept)).toContain('refs/corral/kept/stash/0')
    expect(task.status?.warnings?.map(({ code }) => code)).toEqual(['FromCheckpoint'])
  })

  it('a result that was never recorded is not pushed', async () => {
    await expect(does(pushStep)).rejects.toMatchObject({ message: 'the result was not recorded' })
  })
})

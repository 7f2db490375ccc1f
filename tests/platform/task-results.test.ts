import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, dirname, join } from 'node:path'
import type { CreateTaskRequest, TaskView } from '@corral/protocol'
import { SandboxClaims, SandboxTemplates } from '@corral/resources'
import {
  bareRemote,
  type GitFixture,
  type GitServer,
  gitRepository,
  lockedSshHost,
  type PlatformProcess,
  type SshStandIn,
  sshStandIn,
  startGitServer,
  startPlatformProcess,
  startTraceCollector,
  type TemporaryDirectory,
  type TraceCollector,
  temporaryDirectory,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let scratch: TemporaryDirectory
let server: GitServer
let platform: PlatformProcess
let ssh: SshStandIn
let collector: TraceCollector

beforeAll(async () => {
  scratch = temporaryDirectory()
  server = await startGitServer(join(scratch.path, 'served'), join(scratch.path, 'server'))
  ssh = sshStandIn(join(scratch.path, 'bin'), join(scratch.path, 'served'))
  collector = await startTraceCollector()
  platform = await startPlatformProcess({
    env: { ...server.environment, PATH: ssh.path, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
  })
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await server?.[Symbol.asyncDispose]()
  await collector?.[Symbol.asyncDispose]()
  await scratch?.[Symbol.asyncDispose]()
})

let count = 0
const fresh = (): string => join(scratch.path, `repo-${++count}`)
const served = (): string => join(scratch.path, 'served', `remote-${++count}.git`)

function run(repo: string, command: string, more: Partial<CreateTaskRequest> = {}): Promise<TaskView> {
  return platform.api.run({ repo, task: 'Add a greeting', agent: { name: 'command', command }, ...more })
}

const greet = 'echo "$CORRAL_PROMPT" > greeting.txt && cat "$CORRAL_PROMPT_FILE"'

/** Every end leaves a complete log, whose last event says the same as the record. */
async function expectLogToAgree(task: TaskView): Promise<void> {
  const events = await platform.api.allEvents(task.id)
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1))
  expect(events.at(-1)).toMatchObject({ type: 'result', status: task.status })
  expect(task.last_event_sequence).toBe(events.length)
}

async function expectSandboxGone(task: TaskView): Promise<void> {
  const kube = await platform.kube()
  const claim = { namespace: 'corral', name: task.id }
  await waitUntil('the claim is deleted', async () => !(await kube.find(SandboxClaims, claim)))
}

describe.concurrent('a task that succeeds', () => {
  it('FR-1 FR-3 FR-4 FR-5 FR-6 FR-7 S1-K5 S2-H6 S2-P3 S4-G2 S4-G5 S4-N1c S4-N2a S4-N2c S4-P2.5: brings a branch into a local repository and touches nothing else', async () => {
    const repo = await gitRepository(fresh())
    const before = await repo.fingerprint()
    const task = await run(repo.path, greet)
    expect(task).toMatchObject({
      status: 'SUCCEEDED',
      outcome: 'changes',
      pushed: true,
      branch: `corral/${task.id}`,
      base_branch: 'main',
      exit_code: 0,
      diff_stat: { files_changed: 1, insertions: 1, deletions: 0 },
      sandbox: { claim: task.id, isolation: platform.isolation },
    })
    expect(await repo.show(task.branch!, 'greeting.txt')).toBe('Add a greeting')
    expect(await repo.git('rev-parse', task.branch!)).toBe(task.commit)
    expect(await repo.git('rev-parse', `${task.branch}^`)).toBe(task.base_commit)
    expect(
      await repo.git('log', '-1', '--format=%an <%ae>|%s|%(trailers:key=Corral-Task,valueonly)', task.branch!),
    ).toBe(`Test <test@localhost>|Add a greeting|${task.id}`)
    await repo.git('branch', '-D', task.branch!)
    expect(await repo.fingerprint()).toBe(before)
    await expectLogToAgree(task)
    await expectSandboxGone(task)
    expect((await platform.api.request('GET', `/tasks/${task.id}/logs`)).text).toContain('Add a greeting')
  })

  it('S4-P3.4: is seen in a collector as one trace, from the caller’s own span over the request to the push', async () => {
    const repo = await gitRepository(fresh())
    const [traceId, callerId] = ['a'.repeat(32), 'b'.repeat(16)]
    const { json } = await platform.api.request('POST', '/tasks', {
      body: { repo: repo.path, task: 'Add a greeting', agent: { name: 'command', command: greet } },
      headers: { traceparent: `00-${traceId}-${callerId}-01` },
    })
    const { id } = json as { id: string }
    expect(await platform.api.untilEnded(id)).toMatchObject({ status: 'SUCCEEDED', pushed: true })
    const ofTrace = () => collector.spans.filter((span) => span.traceId === traceId)
    const task = await waitUntil('the task is told', () => ofTrace().find(({ name }) => name === 'task'))
    const request = ofTrace().find(({ name }) => name === 'POST /tasks')
    expect(request).toMatchObject({
      parentId: callerId,
      service: 'corral',
      attributes: { 'http.route': '/tasks', 'http.response.status_code': '201' },
    })
    expect(task).toMatchObject({
      parentId: request?.spanId,
      attributes: { 'corral.task': id, 'corral.code': 'Succeeded', 'corral.agent': 'command' },
      error: undefined,
    })
    const below = ofTrace().filter(({ parentId }) => parentId === task.spanId)
    const order = below.sort((left, right) => left.startMs - right.startMs || left.endMs - right.endMs)
    expect(order.map(({ name }) => name)).toEqual([
      ...['queue', 'sandbox', 'repository', 'setup', 'start-agent', 'follow-agent', 'collect', 'push'],
    ])
    for (const { startMs, endMs, error } of below) {
      expect(endMs).toBeGreaterThanOrEqual(startMs)
      expect(error).toBeUndefined()
    }
    expect(ofTrace()).toHaveLength(10)
    expect(JSON.stringify(ofTrace())).not.toContain('greeting')
  })

  it('brings Git LFS files in as contents and stores the agent’s as LFS objects', async () => {
    const repo = await gitRepository(fresh())
    const content = 'old\n'.repeat(100)
    const oidOf = (text: string): string => createHash('sha256').update(text).digest('hex')
    const stored = (text: string): string => {
      const oid = oidOf(text)
      return join(repo.path, '.git', 'lfs', 'objects', oid.slice(0, 2), oid.slice(2, 4), oid)
    }
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${oidOf(content)}\nsize ${content.length}\n`
    writeFileSync(join(repo.path, '.gitattributes'), '*.bin filter=lfs -text\n')
    writeFileSync(join(repo.path, 'a.bin'), pointer)
    await repo.git('add', '.')
    await repo.git('commit', '-qm', 'a large file')
    mkdirSync(dirname(stored(content)), { recursive: true })
    writeFileSync(stored(content), content)
    const task = await run(repo.path, 'cat a.bin a.bin > b.bin && git add b.bin && git commit -qm more', { lfs: true })
    expect(task).toMatchObject({ status: 'SUCCEEDED', pushed: true, diff_stat: { files_changed: 1 } })
    expect(task.warnings ?? []).toEqual([])
    expect(await repo.show(task.branch!, 'b.bin')).toContain(`oid sha256:${oidOf(content + content)}`)
    expect(readFileSync(stored(content + content), 'utf8')).toBe(content + content)
  })

  it('ends a set-up that takes longer than the request allows, and says so', async () => {
    const repo = await gitRepository(fresh())
    // No word about what it printed: a busy machine may need longer than that to start a shell.
    const task = await run(repo.path, greet, { setup: 'sleep 600', setup_timeout_seconds: 1 })
    expect(task).toMatchObject({
      status: 'FAILED',
      cause: { code: 'SetupTimeout', message: expect.stringContaining('not done after 1 s') as string },
    })
    await expectSandboxGone(task)
  })

  it('FR-2 S4-G3 S4-N2b: records when each stage was reached, in order', async () => {
    const repo = await gitRepository(fresh())
    const task = await run(repo.path, greet)
    const { times } = task
    const order = [
      task.created_at,
      times?.provisioning_at,
      times?.sandbox_ready_at,
      times?.repository_ready_at,
      times?.setup_done_at,
      times?.running_at,
      times?.agent_finished_at,
      times?.result_collected_at,
      times?.pushed_at,
      times?.finished_at,
    ]
    expect(order.every((time) => time !== undefined)).toBe(true)
    const moments = order.map((time) => Date.parse(time!))
    expect(moments).toEqual([...moments].sort((left, right) => left - right))
  })

  it('takes file:// and pushes to a bare remote once', async () => {
    const remote = await bareRemote(served())
    const task = await run(`file://${remote.path}`, greet, { new_branch: 'feature/greeting' })
    expect(task).toMatchObject({ status: 'SUCCEEDED', branch: 'feature/greeting' })
    expect(await remote.show('feature/greeting', 'greeting.txt')).toBe('Add a greeting')
    expect(remote.writesOf('feature/greeting')).toBe(1)
  })

  it('takes https:// with the credentials of the user, which the sandbox never has', async () => {
    const remote = await bareRemote(served())
    const url = `${server.url}/${remote.path.split('/').at(-1)}`
    const task = await run(url, 'env > environment.txt; git config --list > config.txt; cat ~/.git-credentials; true')
    expect(task).toMatchObject({ status: 'SUCCEEDED', pushed: true })
    expect(remote.writesOf(task.branch!)).toBe(1)
    const seen = `${await remote.show(task.branch!, 'environment.txt')}\n${await remote.show(task.branch!, 'config.txt')}`
    expect(seen).not.toMatch(/correct|alice|credential/)
    expect(server.requests.some((request) => request.includes('git-receive-pack'))).toBe(true)
    expect(server.refused()).toBeGreaterThan(0)
  })

  it.each([
    { form: 'ssh://', address: (path: string) => `ssh://git@code.example:2222${path}`, as: '-p 2222 git@code.example' },
    {
      form: 'user@host:path',
      address: (path: string) => `git@other.example:${basename(path)}`,
      as: 'git@other.example',
    },
  ])('takes $form through the user’s own ssh, which is told to ask nobody', async ({ address, as }) => {
    const remote = await bareRemote(served())
    const task = await run(address(remote.path), greet)
    expect(task).toMatchObject({ status: 'SUCCEEDED', pushed: true })
    expect(await remote.show(task.branch!, 'greeting.txt')).toBe('Add a greeting')
    expect(remote.writesOf(task.branch!)).toBe(1)
    const calls = ssh.calls().filter((call) => call.includes(as))
    for (const service of ['git-upload-pack', 'git-receive-pack'])
      expect(calls.filter((call) => call.includes(service)).length, service).toBeGreaterThan(0)
    for (const call of calls) expect(call).toMatch(/^-oBatchMode=yes /)
  })

  it('keeps the commits an agent made itself and adds what it left uncommitted', async () => {
    const repo = await gitRepository(fresh())
    const task = await run(repo.path, 'echo 1 > a && git add a && git commit -qm "the agent’s own" && echo 2 > b')
    expect(task.diff_stat).toMatchObject({ files_changed: 2 })
    expect((await repo.git('log', '--format=%s', `main..${task.branch}`)).split('\n')).toEqual([
      'Add a greeting',
      'the agent’s own',
    ])
  })

  it('starts from the base branch that was asked for', async () => {
    const repo = await gitRepository(fresh())
    await repo.git('checkout', '-q', '-b', 'release')
    await repo.git('commit', '-q', '--allow-empty', '-m', 'on release')
    await repo.git('checkout', '-q', 'main')
    const task = await run(repo.path, greet, { base_branch: 'release' })
    expect(task.base_branch).toBe('release')
    expect(await repo.git('log', '-1', '--format=%s', `${task.branch}^`)).toBe('on release')
  })

  it('counts no change as a result, not as a failure', async () => {
    const repo = await gitRepository(fresh())
    const task = await run(repo.path, 'true')
    expect(task).toMatchObject({ status: 'SUCCEEDED', outcome: 'no_changes' })
    expect(task.commit).toBeUndefined()
    expect(await repo.branches()).toEqual(['main'])
    await expectLogToAgree(task)
  })

  it('FR-9: injects files, new ones outside the commit, tracked ones as changes', async () => {
    const repo = await gitRepository(fresh(), { 'settings.json': '{}\n' })
    const task = await run(
      repo.path,
      'cat notes/context.md > seen.txt; stat -c %a tool.sh >> seen.txt; ./tool.sh >> seen.txt',
      {
        files: [
          { path: 'notes/context.md', content: 'from the request\n' },
          {
            path: 'tool.sh',
            content: Buffer.from('#!/bin/sh\necho ran\n').toString('base64'),
            encoding: 'base64',
            mode: '0755',
          },
          { path: 'settings.json', content: '{"injected":true}\n' },
        ],
      },
    )
    expect(task.status).toBe('SUCCEEDED')
    expect(await repo.show(task.branch!, 'seen.txt')).toBe('from the request\n755\nran')
    expect((await repo.git('ls-tree', '-r', '--name-only', task.branch!)).split('\n')).toEqual([
      'seen.txt',
      'settings.json',
    ])
    expect(await repo.show(task.branch!, 'settings.json')).toBe('{"injected":true}')
  })

  it('runs the repository’s .corral/setup before the agent', async () => {
    const repo = await gitRepository(fresh(), { '.corral/setup': 'echo prepared; echo ready > ~/prepared\n' })
    const task = await run(repo.path, 'cp ~/prepared seen.txt')
    expect(await repo.show(task.branch!, 'seen.txt')).toBe('ready')
    expect(await platform.api.allEvents(task.id)).toContainEqual(
      expect.objectContaining({ type: 'output', stage: 'setup', text: expect.stringContaining('prepared') }),
    )
  })

  it('prefers the set-up command of the request', async () => {
    const repo = await gitRepository(fresh(), { '.corral/setup': 'echo file > /tmp/which\n' })
    const task = await run(repo.path, 'cp /tmp/which seen.txt', { setup: 'echo request > /tmp/which' })
    expect(await repo.show(task.branch!, 'seen.txt')).toBe('request')
  })
})

describe.concurrent('S4-G6: a task that fails says why and keeps the work', () => {
  interface Failure {
    when: string
    command?: string
    request?: Partial<CreateTaskRequest>
    repository?: () => Promise<{ repo: string; fixture?: GitFixture }>
    ends: { status: string; cause: string; exit_code?: number; message?: RegExp }
    /** Whether the work done so far is on the branch. */
    keepsWork?: boolean
  }
  const half = 'echo half > work.txt'
  const hog = `node -e 'const kept = []; for (;;) kept.push(Buffer.alloc(1 << 20, 1))'`
  const small = { sandbox: { template: 'small' } }
  // Only root has control groups for sure.
  const outOfMemory = process.getuid?.() === 0 ? 'OutOfMemory' : undefined

  beforeAll(async () => {
    const kube = await platform.kube()
    const { spec } = await kube.get(SandboxTemplates, { namespace: 'corral', name: 'default' })
    for (const container of spec.podTemplate.spec.containers ?? [])
      container.resources = { limits: { ...container.resources?.limits, memory: '200Mi' } }
    await kube.create(SandboxTemplates, { metadata: { namespace: 'corral', name: 'small' }, spec })
  })

  it.each<Failure>([
    {
      when: 'the agent exits non-zero',
      command: `${half}; exit 7`,
      ends: { status: 'FAILED', cause: 'AgentFailed', exit_code: 7 },
      keepsWork: true,
    },
    {
      when: 'the agent is killed',
      command: `${half}; kill -9 $$`,
      ends: { status: 'FAILED', cause: 'AgentKilled' },
      keepsWork: true,
    },
    ...(outOfMemory
      ? [
          {
            when: 'the kernel ends the agent for want of memory',
            command: `${half}; exec ${hog}`,
            request: small,
            ends: { status: 'FAILED', cause: outOfMemory, message: /memory/ },
            keepsWork: true,
          },
          {
            when: 'the kernel ends a child of the agent for want of memory, and the agent fails',
            command: `${half}; ${hog} || exit 3`,
            request: small,
            ends: { status: 'FAILED', cause: outOfMemory, message: /memory/ },
            keepsWork: true,
          },
          {
            when: 'the kernel ends the set-up command for want of memory',
            request: { ...small, setup: hog },
            ends: {
              status: 'FAILED',
              cause: 'SetupFailed',
              message: /ended a process of the sandbox for want of memory/,
            },
          },
          {
            when: 'an agent kills itself after a child of set-up ran out of memory',
            command: `${half}; kill -9 $$`,
            request: { ...small, setup: `${hog} || true; sleep 4` },
            ends: { status: 'FAILED', cause: 'AgentKilled' },
            keepsWork: true,
          },
        ]
      : []),
    {
      when: 'FR-10 S4-G4: the agent runs out of time',
      command: `${half}; sleep 600`,
      request: { timeout_seconds: 1 },
      ends: { status: 'TIMED_OUT', cause: 'Timeout', message: /longer than 1 s/ },
      keepsWork: true,
    },
    {
      when: 'the agent runs out of time and ignores the gentle signal',
      command: `trap "" TERM; ${half}; while :; do sleep 0.2; done`,
      request: { timeout_seconds: 1 },
      ends: { status: 'TIMED_OUT', cause: 'Timeout' },
      keepsWork: true,
    },
    {
      when: 'the set-up command fails',
      request: { setup: 'echo no compiler here >&2; exit 9' },
      ends: { status: 'FAILED', cause: 'SetupFailed', message: /exit code 9.*no compiler here/s },
    },
    {
      when: 'the base branch does not exist on the server',
      repository: async () => ({ repo: `${server.url}/${(await bareRemote(served())).path.split('/').at(-1)}` }),
      request: { base_branch: 'nowhere' },
      ends: { status: 'FAILED', cause: 'BranchNotFound', message: /nowhere/ },
    },
    {
      when: 'the ssh server refuses the user’s keys',
      repository: async () => ({ repo: `ssh://git@${lockedSshHost}/project.git` }),
      ends: { status: 'FAILED', cause: 'RepositoryAccessDenied', message: /was denied: [^;]*publickey\)\.$/ },
    },
    {
      when: 'the repository does not exist on the server',
      repository: async () => ({ repo: `${server.url}/missing.git` }),
      ends: { status: 'FAILED', cause: 'RepositoryNotFound' },
    },
    {
      when: 'the new branch exists already and has work of its own',
      repository: async () => {
        const fixture = await gitRepository(fresh())
        await fixture.git('checkout', '-q', '-b', 'taken')
        await fixture.git('commit', '-q', '--allow-empty', '-m', 'someone else')
        await fixture.git('checkout', '-q', 'main')
        return { repo: fixture.path }
      },
      command: half,
      request: { new_branch: 'taken' },
      ends: { status: 'FAILED', cause: 'BranchExists' },
    },
    {
      when: 'a hook of the remote refuses the push',
      repository: async () => {
        const fixture = await bareRemote(served())
        const { chmodSync, writeFileSync } = await import('node:fs')
        const hook = join(fixture.path, 'hooks', 'pre-receive')
        writeFileSync(hook, '#!/bin/sh\necho "protected by policy" >&2\nexit 1\n')
        chmodSync(hook, 0o755)
        return { repo: `${server.url}/${fixture.path.split('/').at(-1)}` }
      },
      command: half,
      ends: { status: 'FAILED', cause: 'PushRefused', message: /protected by policy/ },
    },
    {
      when: 'the sandbox pool does not exist',
      request: { sandbox: { pool: 'no-such-pool' } },
      ends: { status: 'FAILED', cause: 'PoolNotFound' },
    },
  ])('$when', async ({ command = 'true', request, repository, ends, keepsWork }) => {
    const { repo, fixture } = (await repository?.()) ?? (await localRepository())
    const task = await run(repo, command, request)
    expect(task).toMatchObject({ status: ends.status, cause: { code: ends.cause } })
    expect(task.cause?.hint).toBeTruthy()
    if (ends.message) expect(task.cause?.message).toMatch(ends.message)
    if (ends.exit_code !== undefined) expect(task.exit_code).toBe(ends.exit_code)
    expect(task.pushed ?? false).toBe(keepsWork ?? false)
    if (keepsWork) expect(await fixture?.show(task.branch!, 'work.txt')).toBe('half')
    await expectLogToAgree(task)
    await expectSandboxGone(task)
  })

  async function localRepository(): Promise<{ repo: string; fixture: GitFixture }> {
    const fixture = await gitRepository(fresh())
    return { repo: fixture.path, fixture }
  }
})

describe.concurrent('what a task may reach', () => {
  let registry: Server
  let port: number
  beforeAll(async () => {
    registry = createServer((_, response) => response.end('package contents\n'))
    await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve))
    port = (registry.address() as AddressInfo).port
  })
  afterAll(() => new Promise((resolve) => registry.close(resolve)))

  const fetchIt = (): string =>
    `node -e "fetch('http://localhost:${port}/').then(r => r.text()).then(t => require('fs').writeFileSync('/tmp/got', t))"`

  it('set-up reaches what the request grants, and the record shows it', async () => {
    const repo = await gitRepository(fresh())
    const egress = [`localhost:${port}`]
    const task = await run(repo.path, 'cp /tmp/got got.txt', { setup: fetchIt(), egress })
    expect(task).toMatchObject({ status: 'SUCCEEDED', egress })
    expect(await repo.show(task.branch!, 'got.txt')).toBe('package contents')
  })

  it('set-up reaches nothing without a grant', async () => {
    const repo = await gitRepository(fresh())
    const task = await run(repo.path, 'true', { setup: fetchIt() })
    expect(task).toMatchObject({ status: 'FAILED', cause: { code: 'SetupFailed' } })
    expect(task.cause?.message).toMatch(/fetch failed/)
  })
})

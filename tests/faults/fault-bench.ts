import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { anySignal, isFinalPhase, type TaskEvent, type TaskView } from '@corral/protocol'
import { AgentTasks, findCondition, SandboxClaims } from '@corral/resources'
import {
  bareRemote,
  cradlePid,
  type GitFixture,
  type GitServer,
  hangMs,
  type PlatformProcess,
  startGitServer,
  startPlatformProcess,
  type TemporaryDirectory,
  temporaryDirectory,
  waitUntil,
} from '@corral/testing'
import { type PoolState, readPoolState } from './pool-state.js'

export const faults = [
  'main',
  'cradle',
  'main and cradle',
  'daemon',
  'supervisor',
  'bwrap',
  'SIGTERM',
  'remote away',
] as const
/** A full disk needs one of its own, which only root may mount: `openFaultBench({ diskMebibytes })`. */
export type Fault = (typeof faults)[number] | 'disk full'

export const stages = [
  'queued',
  'claiming',
  'sandbox ready',
  'repository',
  'set-up',
  'agent running',
  'collecting',
  'pushing',
  'waiting',
] as const
export type Stage = (typeof stages)[number]

export const warmSandboxes = 2

const setup = 'echo preparing; sleep 0.5'
/** Every run of the agent leaves a line of its own before and after a while. */
const commandOf = (seconds: number): string =>
  `echo run >> runs.txt; echo working; sleep ${seconds}; echo end >> runs.txt`
/** Longer than the fault takes to come on a busy machine: an agent that it ends must not be faster. */
const endlessSeconds = 600

/** An agent of the Agent Client Protocol that plans first, and does the same once its plan is approved. */
const planningAgent = String.raw`
import { createInterface } from 'node:readline'
import { appendFileSync } from 'node:fs'

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n')
const say = (text) =>
  send({ method: 'session/update', params: { sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } } })
let mode = 'code'
createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params } = JSON.parse(line)
  const answer = (result) => send({ id, result })
  if (method === 'initialize') answer({ protocolVersion: 1, agentCapabilities: {} })
  if (method === 'session/new')
    answer({ sessionId: 's', modes: { currentModeId: 'code', availableModes: [{ id: 'code', name: 'Code' }, { id: 'plan', name: 'Plan' }] } })
  if (method === 'session/set_mode') {
    mode = params.modeId
    answer({})
  }
  if (method !== 'session/prompt') return
  if (mode === 'plan') say('Count.')
  else {
    appendFileSync('runs.txt', 'run\n')
    say('working')
    await new Promise((resolve) => setTimeout(resolve, 1000))
    appendFileSync('runs.txt', 'end\n')
  }
  answer({ stopReason: 'end_turn' })
})
`

/** A platform with a remote, to be broken. */
export interface FaultBench extends AsyncDisposable {
  readonly platform: PlatformProcess
  readonly remote: GitFixture
  readonly server: GitServer
  /**
   * Creates a task and waits until it is at the stage, with whatever can be held there held. An agent that the coming
   * fault ends does not end by itself before.
   */
  taskAt(stage: Stage, coming?: Fault): Promise<string>
  /** Does the harm, and starts again what a person would start again: main. */
  strike(fault: Fault, id: string): Promise<void>
  /** Lets go of what `taskAt` held. */
  release(): Promise<void>
  /** Waits until nothing of earlier tasks is left and every warm sandbox is ready. */
  untilHealthy(): Promise<void>
  create(): Promise<string>
  /**
   * Waits while the remote is away for a refusal to clone. A task that had its clone before the remote went gets none: on a
   * busy machine a stage that cannot be held is over before the fault comes. Answers what its user is promised.
   */
  untilRefused(id: string): Promise<End>
}

export async function openFaultBench(options: { diskMebibytes?: number } = {}): Promise<FaultBench> {
  const scratch: TemporaryDirectory = temporaryDirectory()
  const dataDir = options.diskMebibytes ? mountDisk(join(scratch.path, 'data'), options.diskMebibytes) : undefined
  const files = { 'README.md': '# Sample\n', 'agent.mjs': planningAgent }
  const remote = await bareRemote(join(scratch.path, 'served', 'project.git'), files)
  const server = await startGitServer(join(scratch.path, 'served'), join(scratch.path, 'server'))
  const platform = await startPlatformProcess({
    env: server.environment,
    args: ['--warm', String(warmSandboxes)],
    ...(dataDir ? { dataDir } : {}),
  })
  const filler = join(platform.dataDir, 'mirrors', 'filler')
  let over = new AbortController()
  let isQueueHeld = false

  const request = { repo: `${server.url}/project.git`, task: 'Count', setup }
  const create = (seconds = 1): Promise<string> =>
    platform.api.create({ ...request, agent: { name: 'command', command: commandOf(seconds) } })
  let planned: string | undefined

  const restart = async (): Promise<void> => {
    await platform.restart({ args: isQueueHeld ? ['--max-tasks', '0'] : [] })
  }

  /** Resolves when the new task reaches the condition. */
  const recorded = async (known: Set<string>, condition: string, signal: AbortSignal): Promise<void> => {
    const kube = await platform.kube()
    for await (const { object } of kube.watch(AgentTasks, { namespace: 'corral', signal }))
      if (!known.has(object.metadata.name) && findCondition(object.status?.conditions ?? [], condition)) return
  }
  const claimed = async (known: Set<string>, signal: AbortSignal): Promise<void> => {
    const kube = await platform.kube()
    for await (const { object } of kube.watch(SandboxClaims, { namespace: 'corral', signal }))
      if (!known.has(object.metadata.name)) return
  }
  const asked = (path: RegExp, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      // A task that ended before it asked would be waited for without end.
      signal.addEventListener('abort', () => reject(new Error(`the remote was not asked for ${path}`)), { once: true })
      server.hold((request) => {
        if (!path.test(request)) return Promise.resolve()
        resolve()
        return new Promise((release) => signal.addEventListener('abort', () => release(), { once: true }))
      })
    })
  const printed = async (id: string, text: string, signal: AbortSignal): Promise<void> => {
    for await (const event of platform.api.events(id, { signal }))
      if (event.type === 'output' && event.text.includes(text)) return
  }
  const conditionAt: Partial<Record<Stage, string>> = { 'sandbox ready': 'SandboxReady', collecting: 'AgentFinished' }

  const taskAt: FaultBench['taskAt'] = async (stage, coming) => {
    over = new AbortController()
    const signal = anySignal([over.signal, AbortSignal.timeout(hangMs)])
    if (stage === 'queued') {
      isQueueHeld = true
      await platform.stop()
      await restart()
      return create()
    }
    if (stage === 'waiting') {
      planned = await platform.api.create({
        ...request,
        agent: { name: 'acp', command: 'node agent.mjs' },
        mode: 'plan',
      })
      await platform.api.untilPhase(planned, 'WAITING_APPROVAL')
      return planned
    }
    const kube = await platform.kube()
    const known = new Set(
      (await kube.list(AgentTasks, { namespace: 'corral' })).items.map((task) => task.metadata.name),
    )
    const condition = conditionAt[stage]
    const reached = condition
      ? recorded(known, condition, signal)
      : stage === 'claiming'
        ? claimed(known, signal)
        : stage === 'repository'
          ? asked(/^POST .*git-upload-pack$/, signal)
          : stage === 'pushing'
            ? asked(/^POST .*git-receive-pack$/, signal)
            : undefined
    const isEnded = coming !== undefined && expectedEnd(coming, stage) === 'what was on disk'
    const id = await create(isEnded ? endlessSeconds : 1)
    await (reached ?? printed(id, stage === 'set-up' ? 'preparing' : 'working', signal))
    return id
  }

  const approve = (id: string): Promise<boolean> =>
    waitUntil('the plan is approved', async () => {
      const { status, text } = await platform.api.request('POST', `/tasks/${id}/approve`, { body: { revision: 1 } })
      if (status !== 202 && status !== 507) throw new Error(`the plan was not approved: ${status} ${text}`)
      return status === 202
    })
  const release = async (): Promise<void> => {
    rmSync(filler, { force: true })
    over.abort()
    server.hold(undefined)
    if (planned) await approve(planned)
    planned = undefined
    if (!isQueueHeld) return
    isQueueHeld = false
    await platform.stop()
    await restart()
  }

  const killCradle = (): void => {
    const pid = cradlePid(platform.dataDir)
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
  }
  /** In the task's pod where it has one, else in every pod. */
  const killInside = async (name: 'corral-daemon' | 'supervisor' | 'bwrap', id: string): Promise<void> => {
    const podName = (await platform.api.get(id)).sandbox?.pod
    for (const pid of processesOfPods(platform.dataDir, name, podName)) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It ended between the look and the signal.
      }
    }
  }
  const strike: FaultBench['strike'] = async (fault, id) => {
    switch (fault) {
      case 'main':
        await platform.kill9()
        return restart()
      case 'SIGTERM':
        await platform.stop()
        return restart()
      case 'cradle':
        return killCradle()
      case 'main and cradle':
        killCradle()
        await platform.kill9()
        return restart()
      case 'daemon':
        return killInside('corral-daemon', id)
      case 'supervisor':
      case 'bwrap':
        return killInside(fault, id)
      case 'disk full':
        fill(filler, (options.diskMebibytes ?? 0) + 1)
        await waitUntil('the platform says so', async () => {
          const { status, text } = await platform.api.request('GET', '/readyz')
          return status === 503 && text.includes('DiskFull')
        })
        return
      case 'remote away':
        server.setAway(true)
        over.abort()
        server.hold(undefined)
    }
  }

  return {
    platform,
    remote,
    server,
    create: () => create(),
    async untilRefused(id) {
      const isPast = ({ status, base_commit: base }: TaskView): boolean => isFinalPhase(status) || base !== undefined
      const task = await platform.api.until(id, 'refused, or past its clone', isPast)
      return task.base_commit === undefined ? 'a refusal to clone' : 'all of the work'
    },
    taskAt,
    strike,
    release,
    async untilHealthy() {
      const kube = await platform.kube()
      let seen: PoolState | undefined
      const lastSeen = (): string => `${JSON.stringify(seen, undefined, 2)}\n${platform.output().slice(-8_000)}`
      await waitUntil(
        'the pool is healthy and nothing is left of tasks',
        async () => {
          seen = await readPoolState(kube)
          const counts = [seen.claims.length, seen.sandboxes.length, seen.pods.length]
          return seen.areReady && counts.join() === [0, warmSandboxes, warmSandboxes].join()
        },
        // Three lists a look: more often they would take the processor from what is to heal.
        { lastSeen, intervalMs: 250 },
      )
    },
    async [Symbol.asyncDispose]() {
      over.abort()
      if (dataDir) {
        await platform.stop()
        execFileSync('umount', ['-l', dataDir])
      }
      await platform[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
      await scratch[Symbol.asyncDispose]()
    },
  }
}

function mountDisk(path: string, mebibytes: number): string {
  mkdirSync(path, { mode: 0o711 })
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=0711`, 'corral-test', path])
  return path
}

/** Takes all the room there is. */
function fill(path: string, mebibytes: number): void {
  try {
    writeFileSync(path, Buffer.alloc(mebibytes * 2 ** 20))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}

/** Pids of a program in the pods of a data directory, told by the users the pods run as. */
function processesOfPods(dataDir: string, name: string, podName: string | undefined): number[] {
  const records = readdirSync(join(dataDir, 'pods'))
    .map((uid) => join(dataDir, 'pods', uid, 'record.json'))
    .filter((path) => existsSync(path))
    .map((path) => JSON.parse(readFileSync(path, 'utf8')) as { name: string; hostUid: number })
  const uids = new Set(records.filter((pod) => !podName || pod.name === podName).map((pod) => String(pod.hostUid)))
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .filter((pid) => {
      const status = readProc(pid, 'status')
      const [, comm] = /^Name:\t(.*)$/m.exec(status) ?? []
      const [, uid = ''] = /^Uid:\t(\d+)/m.exec(status) ?? []
      return comm === name && uids.has(uid)
    })
    .map(Number)
}

function readProc(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    // It ended.
    return ''
  }
}

/** What a user gets. */
export type End = 'all of the work' | 'what was on disk' | 'a refusal to clone' | 'a full disk by name'

/** What a user gets whose task was at this stage when the fault came. */
export function expectedEnd(fault: Fault, stage: Stage): End {
  const isAfterClone = ['set-up', 'agent running', 'collecting', 'pushing', 'waiting'].includes(stage)
  if (fault === 'remote away') return isAfterClone ? 'all of the work' : 'a refusal to clone'
  const killsAgent = ['cradle', 'main and cradle', 'daemon', 'supervisor', 'bwrap'].includes(fault)
  return killsAgent && stage === 'agent running' ? 'what was on disk' : 'all of the work'
}

/** Problems with how a task ended; none when it is as promised. */
export async function problemsOf(bench: FaultBench, task: TaskView, promised: readonly End[]): Promise<string[]> {
  const said = [task.status, task.cause?.code, task.outcome].filter((word) => word !== undefined).join(' ')
  const ends: Partial<Record<string, End>> = {
    'SUCCEEDED changes': 'all of the work',
    'FAILED SandboxLost partial': 'what was on disk',
    'FAILED CloneFailed': 'a refusal to clone',
    'FAILED DiskFull': 'a full disk by name',
    'FAILED DiskFull partial': 'what was on disk',
    'FAILED DiskFull changes': 'what was on disk',
  }
  const end = ends[said]
  if (!end || !promised.includes(end)) return [`${task.id} ended as "${said}": ${task.cause?.message ?? ''}`]
  if (end === 'a refusal to clone') return []
  if (end === 'a full disk by name')
    return runsOf(await bench.platform.api.allEvents(task.id)) === 0 ? [] : [`${task.id} lost work`]
  const work = await bench.remote.show(task.branch ?? '', 'runs.txt')
  const events = await bench.platform.api.allEvents(task.id)
  const runs = runsOf(events)
  return [
    ...(work === (end === 'all of the work' ? 'run\nend' : 'run') ? [] : [`${task.id} left "${work}"`]),
    ...(task.pushed ? [] : [`${task.id} was not pushed`]),
    ...((await bench.remote.git('rev-parse', task.branch ?? '')) === task.commit ? [] : [`${task.id}: other commit`]),
    ...(runs === 1 ? [] : [`${task.id} ran its agent ${runs} times`]),
    ...(events.every(({ sequence }, index) => sequence === index + 1) ? [] : [`${task.id}: a gap in the events`]),
  ]
}

function runsOf(events: readonly TaskEvent[]): number {
  return events.filter((event) => 'text' in event && event.text?.includes('working')).length
}

import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Clock, Logger } from '@corral/ports'
import {
  bootHeader,
  CorralError,
  errorResponse,
  fileOperationSchema,
  processIdSchema,
  runnerTaskSchema,
  type StartProcessRequest,
  sandboxBindingSchema,
  signalRequestSchema,
  startProcessRequestSchema,
  terminalSizeSchema,
} from '@corral/protocol'
import { Hono } from 'hono'
import { failureResponse } from './failure-response.js'
import { fileOperation } from './file-operations.js'
import { findWorkspace } from './find-workspace.js'
import { outputResponse } from './output-stream.js'
import { servePath } from './path-routes.js'
import type { ProcessHandle } from './process-handle.js'
import { ProcessRegistry } from './process-registry.js'
import { bodyChunks, check, queryFlag, queryNumber, readJson } from './request-input.js'
import { ReversePorts } from './reverse-ports.js'
import { Runner } from './runner.js'
import { sandboxMetrics } from './sandbox-metrics.js'

export interface DaemonOptions {
  /** Where the runner leaves its result. */
  readonly workDir: string
  /** Where process records live. A second daemon on the same directory continues them. */
  readonly stateDir: string
  readonly clock: Clock
  readonly log: Logger
  /** What processes inherit. */
  readonly env: NodeJS.ProcessEnv
  /** The working directory of a process that names none. */
  readonly defaultCwd: string
  /** A program that starts commands faster than this process can; see `SpawnLanes`. */
  readonly spawnHelper?: string | undefined
  /** How long the runner's simulated work takes. */
  readonly runnerWorkMs?: number
  /** Told once when the runner's task is over. */
  readonly onRunnerFinished: (exitCode: 0 | 1) => void
}

/** The daemon without a socket: one request in, one response out. */
export interface Daemon {
  readonly processes: ProcessRegistry
  readonly reversePorts: ReversePorts
  /** Names this life of the daemon. */
  readonly boot: string
  fetch(request: Request): Promise<Response>
  /** Starts a process or joins the one with this id; `boot` is the life the request is meant for, any without it. */
  openProcess(id: string, request: StartProcessRequest, boot: string | undefined): Promise<ProcessHandle>
  /** Whether the runner works on a task. */
  readonly hasTask: boolean
  /** Ends all processes, the stubborn ones after `graceMs`. */
  terminate(graceMs: number): Promise<void>
  /** Lets go of the processes without ending them; only those in a terminal end. */
  close(): Promise<void>
}

/** Opens the state directory, picks up what runs, and serves. */
export async function createDaemon(options: DaemonOptions): Promise<Daemon> {
  const { workDir, stateDir, clock, log, env, defaultCwd, spawnHelper } = options
  const directory = join(stateDir, 'processes')
  const processes = await ProcessRegistry.open({ directory, clock, log, env, defaultCwd, spawnHelper })
  const workMs = options.runnerWorkMs ?? 2_000
  const runner = new Runner({ workDir, workMs, clock, log, onFinished: options.onRunnerFinished })
  const reversePorts = new ReversePorts(log)
  const boot = randomUUID()
  const openProcess: Parts['openProcess'] = async (id, request, meantFor) => {
    if (runner.isLatched) throw new CorralError('TaskAlreadyAccepted', 'this sandbox works on a runner task')
    if (meantFor && meantFor !== boot && !(await processes.find(id))) {
      throw new CorralError('ProcessLost', 'the daemon has started anew since this request was made')
    }
    return processes.startOrJoin(id, request)
  }
  const app = routes({ processes, runner, reversePorts, boot, openProcess }, defaultCwd, log)
  return {
    processes,
    reversePorts,
    boot,
    openProcess: async (...call) => (await openProcess(...call)).handle,
    // Before the router: it matches decoded paths and stops at a line end, which a file name may contain.
    fetch: async (request) => (await servePath(request, log)) ?? app.fetch(request),
    get hasTask() {
      return runner.isLatched
    },
    terminate: (graceMs) => processes.terminate(graceMs),
    async close() {
      await reversePorts.close()
      await processes.detach()
    },
  }
}

interface Parts {
  readonly processes: ProcessRegistry
  readonly runner: Runner
  readonly reversePorts: ReversePorts
  readonly boot: string
  openProcess(
    id: string,
    request: StartProcessRequest,
    boot: string | undefined,
  ): Promise<{ handle: ProcessHandle; isNew: boolean }>
}

function routes({ processes, runner, reversePorts, boot, openProcess }: Parts, workDir: string, log: Logger): Hono {
  const app = new Hono()
  app.onError((error) => failureResponse(error, log))
  app.notFound((c) => errorResponse('NotFound', `there is no route ${c.req.method} ${c.req.path}`))

  app.get('/healthz', (c) => c.text('ok', 200, { [bootHeader]: boot }))
  app.post('/task', async (c) => {
    const task = await readJson(c.req.raw, runnerTaskSchema, 'BadRequest')
    if (processes.size > 0) throw new CorralError('ProcessesExist', 'this sandbox is used for processes')
    runner.accept(task)
    return c.json({ status: 'accepted' }, 202)
  })

  app.get('/v1/processes', async (c) => c.json({ processes: await processes.records() }))
  app.put('/v1/processes/:id', async (c) => {
    const id = check(c.req.param('id'), processIdSchema)
    const request = await readJson(c.req.raw, startProcessRequestSchema)
    const { handle, isNew } = await openProcess(id, request, c.req.header(bootHeader))
    if (queryFlag(new URL(c.req.url).searchParams.get('attach'), 'attach')) {
      return outputResponse(handle, 0, true, c.req.raw.signal)
    }
    return c.json(handle.record(), isNew ? 201 : 200)
  })
  app.get('/v1/processes/:id', async (c) => c.json((await processes.get(c.req.param('id'))).record()))
  app.get('/v1/processes/:id/output', async (c) => {
    const handle = await processes.get(c.req.param('id'))
    const { searchParams } = new URL(c.req.url)
    const offset = queryNumber(searchParams.get('offset'), 'offset', 0)
    const follow = queryFlag(searchParams.get('follow'), 'follow')
    return outputResponse(handle, offset, follow, c.req.raw.signal)
  })
  app.post('/v1/processes/:id/stdin', async (c) => {
    const handle = await processes.get(c.req.param('id'))
    const eof = queryFlag(new URL(c.req.url).searchParams.get('eof'), 'eof')
    await handle.writeStdin(bodyChunks(c.req.raw), eof, c.req.raw.signal)
    return c.body(null, 204)
  })
  app.post('/v1/processes/:id/signal', async (c) => {
    const handle = await processes.get(c.req.param('id'))
    const { signal, group = true } = await readJson(c.req.raw, signalRequestSchema)
    handle.kill(signal, group)
    return c.body(null, 204)
  })
  app.post('/v1/processes/:id/resize', async (c) => {
    const handle = await processes.get(c.req.param('id'))
    handle.resize(await readJson(c.req.raw, terminalSizeSchema))
    return c.body(null, 204)
  })
  app.post('/v1/processes/:id/confirm', async (c) => {
    const handle = await processes.get(c.req.param('id'))
    handle.confirm?.(queryNumber(new URL(c.req.url).searchParams.get('offset'), 'offset', 0))
    return c.body(null, 204)
  })
  app.post('/v1/file-operations', async (c) => fileOperation(await readJson(c.req.raw, fileOperationSchema)))
  app.put('/v1/binding', async (c) => {
    processes.bindEnv((await readJson(c.req.raw, sandboxBindingSchema)).env)
    return c.body(null, 204)
  })
  app.get('/v1/reverse-ports/:port', async (c) => {
    const port = Number(c.req.param('port'))
    if (await reversePorts.check(port)) return c.json({ port, reachable: true })
    throw new CorralError('BrokerUnreachable', `no program outside takes connections to port ${port} of the sandbox`)
  })
  app.get('/v1/workspace', async (c) => {
    const found = await findWorkspace(processes.env)
    if (found) return c.json(found)
    throw new CorralError('NotFound', 'the sandbox has no directory to work in')
  })
  app.get('/v1/metrics', async (c) => c.json(await sandboxMetrics(workDir)))
  return app
}

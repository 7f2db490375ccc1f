import { randomUUID } from 'node:crypto'
import { lstat, realpath } from 'node:fs/promises'
import { create } from '@bufbuild/protobuf'
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from '@connectrpc/connect'
import { CorralError, type ProcessExitRecord, type SignalName, type StartProcessRequest } from '@corral/protocol'
import {
  ExecuteResponseSchema,
  type ProcessConfig,
  ProcessService,
  ResizeTTYResponseSchema,
  SendSignalResponseSchema,
  Signal,
  StartResponseSchema,
  WriteStdinResponseSchema,
} from '@corral/protocol/process-service'
import { confine } from './confined-path.js'
import type { ProcessHandle } from './process-handle.js'
import type { ProcessRegistry } from './process-registry.js'
import { endGroup, outputOf, runCollected } from './upstream-exec.js'

/** An answer must fit the four MiB that gRPC clients take; both streams together, with room for the rest. */
const maxExecuteBytes = 4 * 1024 * 1024 - 64 * 1024

const signals: Readonly<Record<number, SignalName>> = {
  [Signal.SIGINT]: 'SIGINT',
  [Signal.SIGKILL]: 'SIGKILL',
  [Signal.SIGTERM]: 'SIGTERM',
}

/** `process.v1.ProcessService` over the daemon's own processes. */
export function processService(processes: ProcessRegistry, root: string): (router: ConnectRouter) => void {
  const running = new Map<number, ProcessHandle>()
  let lastId = 0
  const get = (id: number): ProcessHandle => {
    const handle = running.get(id)
    if (!handle) throw new ConnectError(`no process ${id}`, Code.NotFound)
    return handle
  }
  return (router) =>
    router.service(ProcessService, {
      async *start({ config, pty }, context) {
        const request = await startRequest(root, config)
        const tty = pty && { columns: pty.cols || 80, rows: pty.rows || 24 }
        const kept = { ...request, stdin: 'open', keep: 'memory', ...(tty ? { tty } : {}) } as const
        context.signal.throwIfAborted()
        const { handle } = await translated(processes.startOrJoin(`upstream-${randomUUID()}`, kept))
        lastId += 1
        const processId = lastId
        running.set(processId, handle)
        try {
          yield create(StartResponseSchema, { event: { case: 'init', value: { processId } } })
          const output = outputOf(handle, context.signal)
          let next = await output.next()
          for (; !next.done; next = await output.next()) {
            yield create(StartResponseSchema, { event: { case: next.value.stream, value: next.value.data } })
          }
          yield create(StartResponseSchema, { event: { case: 'exit', value: { exitCode: exitCode(next.value) } } })
        } finally {
          running.delete(processId)
          if (!handle.record().exit) endGroup(handle)
        }
      },
      async execute({ config }, context: HandlerContext) {
        const request = await startRequest(root, config)
        const call = { maxBytes: maxExecuteBytes, signal: context.signal }
        const { exit, stdout, stderr } = await translated(runCollected(processes, request, call))
        return create(ExecuteResponseSchema, { exitCode: exitCode(exit), stdout, stderr })
      },
      async writeStdin({ processId, payload }, context) {
        const handle = get(processId)
        const chunks = (async function* () {
          if (payload.case === 'input') yield payload.value
        })()
        await translated(handle.writeStdin(chunks, payload.case === 'eof', context.signal))
        return create(WriteStdinResponseSchema)
      },
      async sendSignal({ processId, signal }) {
        const name = signals[signal]
        const handle = get(processId)
        if (!name) throw new ConnectError(`unsupported signal ${signal}`, Code.InvalidArgument)
        try {
          handle.kill(name, true)
        } catch {
          // It has just ended: there is nothing left to signal.
        }
        return create(SendSignalResponseSchema)
      },
      async resizeTTY({ processId, cols, rows }) {
        const handle = get(processId)
        if (cols < 1 || rows < 1) throw new ConnectError('cols and rows must be positive', Code.InvalidArgument)
        await translated((async () => handle.resize({ columns: cols, rows }))())
        return create(ResizeTTYResponseSchema)
      },
    })
}

async function startRequest(root: string, config: ProcessConfig | undefined): Promise<StartProcessRequest> {
  const argv = config?.command ?? []
  if (!argv[0]) throw new ConnectError('command is required', Code.InvalidArgument)
  return { argv, env: config?.envVars ?? {}, cwd: await workingDirectory(root, config?.cwd ?? '') }
}

async function workingDirectory(root: string, cwd: string): Promise<string> {
  return translated(
    (async () => {
      await using place = await confine(root, cwd)
      if (!(await lstat(place.path).catch(() => undefined))) {
        throw new CorralError('WorkingDirectoryMissing', `"${cwd}" does not exist`)
      }
      // Awaited here: the path is gone once the place is disposed.
      return await realpath(place.path)
    })(),
  )
}

function exitCode(exit: ProcessExitRecord): number {
  return exit.exit_code
}

const codes: Readonly<Record<string, Code>> = {
  CommandNotFound: Code.NotFound,
  WorkingDirectoryMissing: Code.NotFound,
  ENOENT: Code.NotFound,
  ENOTDIR: Code.NotFound,
  CommandNotExecutable: Code.PermissionDenied,
  PermissionDenied: Code.PermissionDenied,
  ProcessExited: Code.FailedPrecondition,
  StdinClosed: Code.FailedPrecondition,
  NotATerminal: Code.FailedPrecondition,
  OutputLimitExceeded: Code.ResourceExhausted,
  TooManyRequests: Code.ResourceExhausted,
  BadRequest: Code.InvalidArgument,
  Invalid: Code.InvalidArgument,
  ABORT_ERR: Code.Canceled,
}

async function translated<T>(call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    if (error instanceof ConnectError) throw error
    if (!(error instanceof Error)) throw error
    const code = 'code' in error ? codes[String(error.code)] : undefined
    // Missing programs given by path are missing, not forbidden.
    if (/is not there or not executable/.test(error.message)) throw new ConnectError(error.message, Code.NotFound)
    throw code === undefined ? error : new ConnectError(error.message, code)
  }
}

import { randomUUID } from 'node:crypto'
import {
  CorralError,
  type DaemonClient,
  type FrameSource,
  isUnsent,
  type OutputEvent,
  type ProcessRecord,
  type StartProcessRequest,
} from '@corral/protocol'
import type { ProcessLines } from './process-lines.js'
import type { FileEntry, ProcessEvent, ProcessSpec, RuntimeProcess, SandboxRuntime } from './sandbox-runtime.js'

/** How often the daemon is told what has arrived; well inside the window it holds. */
const confirmEveryBytes = 512 * 1024
/** What the node sends to the processes of a pod that is to end. */
const [sigTerm, sigKill] = [15, 9]

export interface CorralRuntime extends SandboxRuntime {
  readonly kind: 'corral'
  /** A process that outlives the daemon and every client. */
  startDurable(id: string, spec: ProcessSpec): Promise<ProcessRecord>
  attach(id: string, fromOffset: number): RuntimeProcess
  /** What there is of the output from an offset on, without waiting for more. */
  readOutput(id: string, fromOffset: number, call: { signal?: AbortSignal | undefined }): AsyncIterable<ProcessEvent>
  listProcesses(call: { signal?: AbortSignal | undefined }): Promise<ProcessRecord[]>
  /** See `DaemonClient`. */
  checkReversePort(port: number, call: { signal?: AbortSignal | undefined }): Promise<void>
}

/** What was sent to a process through its handle: an end by it is what the caller asked for. */
interface SentSignals {
  count: number
}

/**
 * Our own daemon. `boot` names its life: a command that may have reached an earlier life is never sent to a later one.
 * `onCut` is asked when a line breaks and rejects when the sandbox is gone.
 */
export function corralRuntime(
  daemon: DaemonClient,
  boot: string,
  onCut: (failure: CorralError) => Promise<void>,
  lines?: ProcessLines,
): CorralRuntime {
  let currentBoot = boot

  /** A sandbox that is deleted ends its processes before its connections: such an end is no result of the command. */
  async function requireSandbox(signal: number | undefined, sent: SentSignals): Promise<void> {
    if (sent.count > 0 || (signal !== sigTerm && signal !== sigKill)) return
    await onCut(new CorralError('ProcessLost', `the command was ended by signal ${signal}`))
  }

  function follow(
    id: string,
    open: (signal: AbortSignal) => Promise<Response | FrameSource | undefined>,
    offset: number,
    sent: SentSignals,
    line: () => { confirm(offset: number): void } | undefined = () => undefined,
  ) {
    const confirm = {
      everyBytes: confirmEveryBytes,
      // A confirmation that is lost is made up for by the next one.
      send: (at: number) => {
        const open = line()
        if (open) open.confirm(at)
        else void daemon.confirmOutput(id, at).catch(() => {})
      },
    }
    const events = daemon.follow(id, open, { offset, onCut, confirm, connectMs: 0 })
    return translated(events, id, (signal) => requireSandbox(signal, sent))
  }

  function control(id: string, begun: Promise<unknown>, sent: SentSignals): Omit<RuntimeProcess, 'id' | 'events'> {
    return {
      write: async (data) => {
        await begun
        await daemon.writeStdin(id, data)
      },
      end: async () => {
        await begun
        await daemon.writeStdin(id, new Uint8Array(0), { eof: true })
      },
      kill: async (signal) => {
        await begun
        sent.count += 1
        await daemon.signal(id, signal)
      },
      resize: async (size) => {
        await begun
        await daemon.resize(id, size)
      },
    }
  }

  return {
    kind: 'corral',
    start(spec) {
      const id = `exec-${randomUUID()}`
      const request = startRequest(spec, 'memory')
      let hasAnswer = false
      let isFirst = true
      /** Whether a request that names it may have reached a daemon. */
      let mayRun = false
      const sent: SentSignals = { count: 0 }
      let line: (FrameSource & { confirm(offset: number): void }) | undefined
      let settle: { resolve: () => void; reject: (error: unknown) => void }
      const begun = new Promise<void>((resolve, reject) => {
        settle = { resolve, reject }
      })
      begun.catch(() => {})
      const openOverHttp = (signal: AbortSignal): Promise<Response> =>
        daemon.openProcess(id, request, { signal, boot: currentBoot }).catch((error: unknown) => {
          mayRun ||= !isUnsent(error)
          throw error
        })
      /** Over a line at first; what a cut has left open is asked over HTTP, which finds it by its id. */
      const send = async (signal: AbortSignal, isOverLine: boolean): Promise<Response | FrameSource> => {
        const start = { id, request, boot: currentBoot, onSend: () => (mayRun = true) }
        line = isOverLine ? await lines?.start(start, signal) : undefined
        const answer = line ?? (await openOverHttp(signal))
        hasAnswer = true
        settle.resolve()
        return answer
      }
      const open = async (signal: AbortSignal): Promise<Response | FrameSource | undefined> => {
        line = undefined
        if (hasAnswer) return undefined
        const [mayRunAlready, isOverLine] = [mayRun, isFirst]
        isFirst = false
        try {
          return await send(signal, isOverLine)
        } catch (error) {
          if (!(error instanceof CorralError && error.code === 'ProcessLost') || mayRunAlready) throw error
          // Refused, and never sent before: it runs nowhere, and may go to the daemon's new life.
          currentBoot = (await daemon.boot({ signal })) ?? ''
          return await send(signal, false)
        }
      }
      async function* events() {
        try {
          yield* follow(id, open, 0, sent, () => line)
        } catch (error) {
          settle.reject(error)
          throw error
        }
      }
      return { id, events: events(), ...control(id, begun, sent) }
    },
    startDurable: (id, spec) => daemon.startProcess(id, startRequest(spec, 'disk')),
    attach: (id, fromOffset) => {
      const sent: SentSignals = { count: 0 }
      const events = follow(id, async () => undefined, fromOffset, sent)
      return { id, events, ...control(id, Promise.resolve(), sent) }
    },
    readOutput: (id, offset, call) =>
      translated(daemon.readOutput(id, { ...call, offset, follow: false }), id, async () => {}),
    listProcesses: (call) => daemon.listProcesses(call),
    checkReversePort: (port, call) => daemon.checkReversePort(port, call),
    metrics: (call) => daemon.metrics(call),
    bindEnv: (env, call) => daemon.bind({ env: { ...env } }, call),
    files: {
      read: (path, call) => daemon.readFileStream(path, call),
      write: (path, data, call) => daemon.writeFile(path, data, { ...call, mkdirs: true }),
      stat: (path, call) => daemon.statFile(path, call),
      async *list(path, { recursive, glob, ...call }): AsyncIterable<FileEntry> {
        if (recursive || glob !== undefined) {
          return yield* daemon.walk(path, { ...call, ...(glob === undefined ? {} : { glob }) })
        }
        const { entries, truncated } = await daemon.listDirectory(path, call)
        if (truncated) return yield* directEntries(daemon.walk(path, call))
        for (const entry of entries) yield { ...entry, path: entry.name }
      },
      mkdir: (path, call) => daemon.fileOperation({ operation: 'mkdir', path, recursive: true }, call),
      move: (from, to, { overwrite = false, ...call }) =>
        daemon.fileOperation({ operation: 'move', from, to, overwrite }, call),
      copy: (from, to, { overwrite = false, ...call }) =>
        daemon.fileOperation({ operation: 'copy', from, to, overwrite, recursive: true }, call),
      remove: (path, { recursive = false, ...call }) => daemon.deleteFile(path, { ...call, recursive }),
      watch: (path, call) => daemon.watchFiles(path, call),
      pack: (directory, call) => daemon.getTar(directory, call),
      unpack: (directory, tar, call) => daemon.putTar(directory, tar, call),
    },
  }
}

async function* directEntries(entries: AsyncIterable<FileEntry>): AsyncIterable<FileEntry> {
  for await (const entry of entries) if (!entry.path.includes('/')) yield entry
}

function startRequest(spec: ProcessSpec, keep: 'memory' | 'disk'): StartProcessRequest {
  const { argv, cwd, env, stdin, pty, user } = spec
  return {
    argv: [...argv],
    keep,
    ...(cwd === undefined ? {} : { cwd }),
    ...(env ? { env: { ...env } } : {}),
    ...(pty ? { tty: { ...pty } } : {}),
    ...(user === undefined ? {} : { user }),
    ...(stdin instanceof Uint8Array ? { input: Buffer.from(stdin).toString('base64') } : {}),
    ...(stdin === 'open' ? { stdin: 'open' as const } : {}),
  }
}

async function* translated(
  events: AsyncIterable<OutputEvent>,
  id: string,
  onExit: (signal: number | undefined) => Promise<void>,
): AsyncIterable<ProcessEvent> {
  try {
    for await (const event of events) {
      if (event.type !== 'exit') yield event
      else if (event.exit.exit_code < 0) {
        throw new CorralError('ProcessLost', `process "${id}": ${event.exit.message ?? 'its end was not seen'}`)
      } else {
        await onExit(event.exit.signal)
        yield { type: 'exit', exitCode: event.exit.exit_code, signal: event.exit.signal }
      }
    }
  } catch (error) {
    // Started and no longer known: the daemon under it began anew.
    if (error instanceof CorralError && error.code === 'NotFound') {
      throw new CorralError('ProcessLost', `process "${id}" is not known to the sandbox any more`, { cause: error })
    }
    throw error
  }
}

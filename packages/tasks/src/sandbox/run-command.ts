import {
  anySignal,
  CorralError,
  type DaemonClient,
  type OutputEvent,
  type ProcessExitRecord,
  type StartProcessRequest,
} from '@corral/protocol'
import { TaskError } from '../task-error.js'

export interface CommandResult {
  exit: ProcessExitRecord
  /** Standard output, at most `maxOutputBytes` from its end. */
  stdout: string
  /** The last lines of both streams as they came, for error messages. */
  tail: string
}

export interface RunCommandOptions {
  signal: AbortSignal
  timeoutMs: number
  /** Cause to fail with when the time is over. */
  timeoutCode?: string
  onOutput?: (stream: 'stdout' | 'stderr', data: Uint8Array) => Promise<void>
  maxOutputBytes?: number
  /** Called once the command runs, or was joined; a second time where it runs again. */
  onStarted?: (() => void) | undefined
  /** The command may run again when its exit code is lost because the sandbox restarted. */
  isRepeatable?: boolean
}

const maxRuns = 3
/** Well below what the daemon holds of a process in memory before it makes that wait. */
const confirmEveryBytes = 512 * 1024

/**
 * Runs a command in the sandbox to its end under an id of its own: repeated with the same id it joins the first run and
 * sees its whole output. When the time is over the command's group is killed and `timeoutCode` thrown.
 */
export async function runCommand(
  daemon: DaemonClient,
  id: string,
  request: StartProcessRequest,
  options: RunCommandOptions,
): Promise<CommandResult> {
  for (let run = 1; ; run++) {
    const result = await runOnce(daemon, run === 1 ? id : `${id}.${run}`, request, options)
    const wasLost = result.exit.exit_code < 0
    if (!wasLost || !options.isRepeatable || run === maxRuns) return result
  }
}

async function runOnce(
  daemon: DaemonClient,
  id: string,
  request: StartProcessRequest,
  options: RunCommandOptions,
): Promise<CommandResult> {
  const timeout = AbortSignal.timeout(options.timeoutMs)
  const signal = anySignal([options.signal, timeout])
  const stdout = textTail(options.maxOutputBytes ?? 64 * 1024)
  const both = textTail(4 * 1024)
  try {
    let isOpened = false
    const open = async (opening: AbortSignal): Promise<Response | undefined> => {
      if (isOpened) return undefined
      const response = await daemon.openProcess(id, request, { signal: opening })
      isOpened = true
      options.onStarted?.()
      return response
    }
    for await (const event of outputOf(daemon, id, request, open, signal)) {
      if (event.type === 'exit')
        return { exit: event.exit, stdout: stdout.text(), tail: both.text() || (event.exit.message ?? '') }
      if (event.type === 'gap') continue
      if (event.stream === 'stdout') stdout.push(event.data)
      both.push(event.data)
      await options.onOutput?.(event.stream, event.data)
    }
    throw new TaskError('SandboxLost', `the output of ${id} ended without an exit`)
  } catch (error) {
    if (!timeout.aborted || options.signal.aborted) throw error
    await daemon.signal(id, 'SIGKILL', { timeoutMs: 5_000 }).catch(() => undefined)
    throw new TaskError(
      options.timeoutCode ?? 'InternalError',
      `not done after ${Math.round(options.timeoutMs / 1000)} s: ${both.text()}`,
      {
        cause: error,
      },
    )
  }
}

/**
 * The output of a command, and its exit. One that is kept in memory ends with the daemon: a new daemon does not know it, which
 * is told as an exit that was not seen. What an earlier reader confirmed of it is gone, and with it only part of an error's text.
 */
async function* outputOf(
  daemon: DaemonClient,
  id: string,
  { keep }: StartProcessRequest,
  open: (signal: AbortSignal) => Promise<Response | undefined>,
  signal: AbortSignal,
): AsyncIterable<OutputEvent> {
  if (keep !== 'memory') return yield* daemon.follow(id, open, { signal })
  const send = (offset: number): void => void daemon.confirmOutput(id, offset).catch(() => undefined)
  const confirm = { everyBytes: confirmEveryBytes, send }
  try {
    try {
      yield* daemon.follow(id, open, { signal, confirm })
    } catch (error) {
      if (codeOf(error) !== 'Expired') throw error
      const { output_bytes } = await daemon.getProcess(id, { signal })
      yield* daemon.readOutput(id, { signal, confirm, offset: output_bytes })
    }
  } catch (error) {
    if (codeOf(error) !== 'NotFound') throw error
    const time = new Date().toISOString()
    yield {
      type: 'exit',
      offset: 0,
      exit: { exit_code: -1, message: 'the daemon that had started it has ended', time },
    }
  }
}

const codeOf = (error: unknown): string | undefined => (error instanceof CorralError ? error.code : undefined)

function textTail(limitBytes: number): { push(data: Uint8Array): void; text(): string } {
  let kept = Buffer.alloc(0)
  return {
    push(data) {
      kept = Buffer.concat([kept, data])
      if (kept.length > limitBytes) kept = kept.subarray(kept.length - limitBytes)
    },
    text: () => kept.toString('utf8').trim(),
  }
}

import { anySignal, type DaemonClient, type ProcessExitRecord, type StartProcessRequest } from '@corral/protocol'
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
  /** The command may run again when its exit code is lost because the sandbox restarted. */
  isRepeatable?: boolean
}

const maxRuns = 3

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
      return response
    }
    for await (const event of daemon.follow(id, open, { signal })) {
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

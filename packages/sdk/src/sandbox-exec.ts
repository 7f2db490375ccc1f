import { randomUUID } from 'node:crypto'
import type { KubeClient, ObjectRef } from '@corral/kube'
import type { ProcessExit } from '@corral/ports'
import { execArgv, killArgv } from './exec-command.js'
import { SandboxError, translated } from './sandbox-error.js'
import { timeLimit } from './time-limit.js'

export interface ExecOptions {
  /** The first container without it. */
  container?: string | undefined
  cwd?: string | undefined
  env?: Readonly<Record<string, string>> | undefined
  signal?: AbortSignal | undefined
  /**
   * False sends the command as it is, for images without `env`: then `kill` closes the connection and what the runtime
   * makes of that is its own affair.
   */
  killable?: boolean | undefined
}

export interface ExecBufferedOptions extends ExecOptions {
  stdin?: string | Uint8Array | undefined
  /** Ends the command; the call then fails with `Timeout`. 60 s without it. */
  timeoutMs?: number | undefined
  /** Of stdout and of stderr each; more ends the command with `OutputLimitExceeded`. 10 MiB without it. */
  maxOutputBytes?: number | undefined
}

export interface ExecResult {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

export interface ExecStreamOptions extends ExecOptions {
  stdin?: boolean | undefined
  tty?: boolean | undefined
}

/** A command that runs in a sandbox. With `tty` all output is on stdout. */
export interface ExecProcess {
  readonly stdout: AsyncIterable<Uint8Array>
  readonly stderr: AsyncIterable<Uint8Array>
  writeStdin(chunk: Uint8Array): Promise<void>
  endStdin(): void
  resize(columns: number, rows: number): void
  /** Settles when the command has ended and its output was delivered or let go; soon after `kill` in any case. */
  wait(): Promise<ProcessExit>
  /** Ends the command and everything it started, inside the sandbox, not just the line to it. */
  kill(): Promise<void>
}

const openTimeoutMs = 30_000
const killTimeoutMs = 10_000
const killSettleMs = 5_000

/** Runs a command and streams its output. `signal` kills it. */
export async function execStream(
  kube: KubeClient,
  pod: ObjectRef,
  command: readonly string[],
  options: ExecStreamOptions = {},
): Promise<ExecProcess> {
  const { container, stdin, tty, signal, killable = true } = options
  const marker = randomUUID()
  const target = container === undefined ? {} : { container }
  const argv = execArgv(command, { ...options, marker: killable ? marker : undefined })
  const process = await translated(
    () =>
      kube.exec(pod, {
        command: argv,
        timeoutMs: openTimeoutMs,
        ...target,
        ...(stdin ? { stdin } : {}),
        ...(tty ? { tty } : {}),
      }),
    signal,
  )

  let hasEnded = false
  let settleKilled: (exit: ProcessExit) => void = () => {}
  const killed = new Promise<ProcessExit>((resolve) => {
    settleKilled = resolve
  })
  const ended = Promise.race([process.exited, killed]).then((exit) => {
    hasEnded = true
    signal?.removeEventListener('abort', onAbort)
    return exit
  })
  const kill = async (): Promise<void> => {
    if (hasEnded) return
    try {
      if (killable) await runToEnd(kube, pod, { command: killArgv(marker), ...target })
    } finally {
      // The command is dead or cannot be reached: either way the line is of no more use.
      setTimeout(() => settleKilled({ exitCode: 137, signal: 9, message: 'killed' }), killSettleMs).unref()
      process.kill()
    }
  }
  // The kill that `signal` causes has no caller to throw to; a cluster that cannot be reached shows in `wait`.
  const onAbort = () => void kill().catch(() => {})
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted) onAbort()

  return {
    stdout: process.stdout,
    stderr: process.stderr,
    writeStdin: (chunk) => process.writeStdin(chunk),
    endStdin: () => process.endStdin(),
    resize: (columns, rows) => process.resize(columns, rows),
    wait: () => ended,
    kill: () => translated(kill),
  }
}

/** Runs a command to its end and returns what it wrote. A command that fails is a result, not an error. */
export async function execBuffered(
  kube: KubeClient,
  pod: ObjectRef,
  command: readonly string[],
  options: ExecBufferedOptions = {},
): Promise<ExecResult> {
  const { stdin, timeoutMs = 60_000, maxOutputBytes = 10 * 1024 * 1024, signal, ...rest } = options
  const limitMs = timeLimit(timeoutMs)
  const process = await execStream(kube, pod, command, { ...rest, stdin: stdin !== undefined, signal })
  let failure: SandboxError | undefined
  const stop = (error: SandboxError): void => {
    if (failure) return
    failure = error
    process.kill().catch(() => {})
  }
  const onTimeout = (): void =>
    stop(new SandboxError('Timeout', `the command did not end within ${timeoutMs / 1000} s and was killed`))
  const timer = limitMs === undefined ? undefined : setTimeout(onTimeout, limitMs)
  try {
    const collect = (chunks: AsyncIterable<Uint8Array>) =>
      collectText(chunks, maxOutputBytes, () =>
        stop(new SandboxError('OutputLimitExceeded', `the command wrote more than ${maxOutputBytes} bytes`)),
      )
    const output = Promise.all([collect(process.stdout), collect(process.stderr)])
    // What cannot be written shows in the command's own end.
    if (stdin !== undefined) await process.writeStdin(asBytes(stdin)).catch(() => {})
    if (stdin !== undefined) process.endStdin()
    const exit = await process.wait()
    if (signal?.aborted) throw new SandboxError('Aborted', 'the call was aborted and the command killed')
    if (failure) throw failure
    const lost = lostReason(exit)
    if (lost !== undefined) throw new SandboxError('ConnectionLost', lost)
    const [stdout, stderr] = await output
    return { exitCode: exit.exitCode, stdout, stderr }
  } finally {
    clearTimeout(timer)
  }
}

/** Why the end of a command is not known: its exit code is then made up. One that could not be started has 126 or 127. */
export function lostReason({ exitCode, signal, message }: ProcessExit): string | undefined {
  return signal === undefined && exitCode !== 126 && exitCode !== 127 ? message : undefined
}

async function runToEnd(
  kube: KubeClient,
  pod: ObjectRef,
  options: { command: readonly string[]; container?: string },
): Promise<void> {
  const process = await kube.exec(pod, {
    ...options,
    timeoutMs: killTimeoutMs,
    signal: AbortSignal.timeout(killTimeoutMs),
  })
  await Promise.all([drain(process.stdout), drain(process.stderr), process.exited])
}

async function drain(chunks: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of chunks);
}

async function collectText(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
  onTooLong: () => void,
): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let length = 0
  try {
    for await (const chunk of chunks) {
      length += chunk.length
      // Read on, so that the command is not held up before the kill reaches it.
      if (length > maxBytes) onTooLong()
      else text += decoder.decode(chunk, { stream: true })
    }
  } catch {
    // The line broke: `wait` reports it.
  }
  return text + decoder.decode()
}

function asBytes(data: string | Uint8Array): Uint8Array {
  return typeof data === 'string' ? new TextEncoder().encode(data) : data
}

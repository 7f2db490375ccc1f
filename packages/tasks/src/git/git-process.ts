import { type ChildProcess, spawn } from 'node:child_process'
import { anySignal, redactUrls } from '@corral/protocol'

export interface GitOptions {
  cwd?: string
  env?: Readonly<Record<string, string>>
  signal?: AbortSignal
  timeoutMs?: number
  /** Output beyond this is cut off at the front: errors stand at the end. */
  maxOutputBytes?: number
  /** An open file that becomes standard input, from where it stands. */
  stdin?: number
  /** An open file that takes standard output byte for byte; the result then does not hold it. */
  stdout?: number
  /** Takes standard error line by line as it comes; a line that git overwrites (progress) counts as one. */
  onStderr?: ((line: string) => void) | undefined
}

export interface GitResult {
  stdout: string
  stderr: string
}

/** A git command that failed. `stderr` is git's own words with credentials in URLs removed. */
export class GitError extends Error {
  override readonly name: string = 'GitError'
  constructor(
    readonly args: readonly string[],
    /** As a shell would say it: 128 and the signal's number for a process that one ended. */
    readonly exitCode: number | null,
    readonly stderr: string,
    options: { cause?: unknown } = {},
  ) {
    super(`git ${args[0] ?? ''} failed (${exitCode ?? 'killed'}): ${lastLines(stderr, 3)}`, options)
  }
}

/** Runs git without prompts, hooks or a terminal. Rejects with `GitError` on a non-zero exit, abort or timeout. */
export type Git = (args: readonly string[], options?: GitOptions) => Promise<GitResult>

/** Runs git to its end. `args` are what an error names: the words without what is put around every command. */
export async function runGit(
  argv: readonly string[],
  args: readonly string[],
  options: GitOptions,
): Promise<GitResult> {
  const running = startGit(argv, args, options)
  const { stdout: pipe } = running.child
  const stdout = pipe ? collectTail(pipe, options.maxOutputBytes ?? 4 * 1024 * 1024) : undefined
  await running.done
  return { stdout: stdout?.() ?? '', stderr: running.stderr() }
}

export interface RunningGit {
  child: ChildProcess
  /** Resolves when it ended well or was ended by `end`. */
  done: Promise<void>
  stderr(): string
  end(): void
}

/** Starts git in a process group of its own. */
export function startGit(
  argv: readonly string[],
  args: readonly string[],
  options: GitOptions & { isConversation?: boolean },
): RunningGit {
  const timeoutMs = options.timeoutMs ?? 120_000
  const timeout = AbortSignal.timeout(timeoutMs)
  const signal = options.signal ? anySignal([options.signal, timeout]) : timeout
  const [program = 'git', ...rest] = argv
  const child = spawn(program, rest, {
    ...(options.cwd ? { cwd: options.cwd } : {}),
    env: options.env,
    stdio: [options.isConversation ? 'pipe' : (options.stdin ?? 'ignore'), options.stdout ?? 'pipe', 'pipe'],
    detached: true,
  })
  // The group is killed, not only git itself: ssh, index-pack and remote helpers are its children.
  const killGroup = (): void => {
    try {
      if (child.pid) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // The group is already gone.
    }
  }
  if (signal.aborted) killGroup()
  signal.addEventListener('abort', killGroup, { once: true })
  // A git that ends while it is asked closes the pipe; how it ended is told by `done`.
  child.stdin?.on('error', () => undefined)
  const stderr = collectTail(child.stderr!, 64 * 1024)
  if (options.onStderr) eachLine(child.stderr!, options.onStderr)
  let wasEnded = false
  const fail = (exitCode: number | null, why: string, cause?: unknown): GitError =>
    new GitError(args.map(redactUrls), exitCode, redactUrls(why), cause === undefined ? {} : { cause })
  const done = new Promise<void>((resolve, reject) => {
    child.once('error', (error) => reject(fail(null, error.message, error)))
    child.once('close', (code, signalName) => {
      if (code === 0 || wasEnded) return resolve()
      const exitCode = code ?? (signalName ? 128 + (signalNumbers[signalName] ?? 0) : null)
      if (!signal.aborted) return reject(fail(exitCode, stderr()))
      reject(fail(null, `${stderr()}\n${abortText(signal, timeoutMs)}`, signal.reason))
    })
  }).finally(() => signal.removeEventListener('abort', killGroup))
  return {
    child,
    done,
    stderr: () => redactUrls(stderr()),
    end() {
      wasEnded = true
      killGroup()
    },
  }
}

const signalNumbers: Readonly<Record<string, number>> = {
  SIGABRT: 6,
  SIGKILL: 9,
  SIGSEGV: 11,
  SIGXCPU: 24,
  SIGXFSZ: 25,
}

function collectTail(stream: NodeJS.ReadableStream, limit: number): () => string {
  const chunks: Buffer[] = []
  let size = 0
  stream.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    size += chunk.length
    while (size > limit && chunks.length > 1) size -= chunks.shift()!.length
  })
  return () => Buffer.concat(chunks).toString('utf8')
}

function eachLine(stream: NodeJS.ReadableStream, take: (line: string) => void): void {
  let rest = ''
  stream.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString('utf8')).split(/[\r\n]/)
    rest = lines.pop()!.slice(-1_000)
    for (const line of lines) if (line.trim() !== '') take(redactUrls(line.trim()))
  })
}

function abortText(signal: AbortSignal, timeoutMs: number): string {
  return (signal.reason as { name?: string })?.name === 'TimeoutError' ? `no answer within ${timeoutMs} ms` : 'aborted'
}

export function lastLines(text: string, count: number): string {
  return text.trim().split('\n').slice(-count).join('; ')
}

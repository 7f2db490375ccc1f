import { spawn } from 'node:child_process'
import { anySignal } from '@corral/protocol'

export interface GitOptions {
  cwd?: string
  env?: Readonly<Record<string, string>>
  signal?: AbortSignal
  timeoutMs?: number
  /** Output beyond this is cut off at the front: errors stand at the end. */
  maxOutputBytes?: number
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
    readonly exitCode: number | null,
    readonly stderr: string,
    options: { cause?: unknown } = {},
  ) {
    super(`git ${args[0] ?? ''} failed (${exitCode ?? 'killed'}): ${lastLines(stderr, 3)}`, options)
  }
}

/** Runs git without prompts, hooks or a terminal. Rejects with `GitError` on a non-zero exit, abort or timeout. */
export type Git = (args: readonly string[], options?: GitOptions) => Promise<GitResult>

/**
 * A git whose environment asks nobody and runs nothing of the repositories it touches. `globalConfig` is a file that
 * includes the user's own configuration, so the user's credential helpers and ssh settings apply.
 */
export function createGit(base: { globalConfig: string; env: Readonly<Record<string, string | undefined>> }): Git {
  const env = {
    ...base.env,
    GIT_CONFIG_GLOBAL: base.globalConfig,
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: base.env.GIT_ASKPASS ?? '',
    GIT_SSH_COMMAND: base.env.GIT_SSH_COMMAND ?? 'ssh -oBatchMode=yes',
    LC_ALL: 'C',
  }
  return (args, options = {}) => runGit(args, { ...options, env: { ...definedOnly(env), ...options.env } })
}

async function runGit(args: readonly string[], options: GitOptions): Promise<GitResult> {
  const timeoutMs = options.timeoutMs ?? 120_000
  const signal = options.signal
    ? anySignal([options.signal, AbortSignal.timeout(timeoutMs)])
    : AbortSignal.timeout(timeoutMs)
  const safe = ['-c', 'core.hooksPath=/dev/null', '-c', 'protocol.ext.allow=never', '-c', 'gc.auto=0']
  const child = spawn('git', [...safe, ...args], {
    ...(options.cwd ? { cwd: options.cwd } : {}),
    env: options.env,
    stdio: ['ignore', 'pipe', 'pipe'],
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
  const limit = options.maxOutputBytes ?? 4 * 1024 * 1024
  const stdout = collectTail(child.stdout, limit)
  const stderr = collectTail(child.stderr, 64 * 1024)
  try {
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', resolve)
    })
    const result = { stdout: stdout(), stderr: redactUrls(stderr()) }
    if (exitCode !== 0) {
      const why = signal.aborted ? `${result.stderr}\n${abortText(signal, timeoutMs)}` : result.stderr
      throw new GitError(args.map(redactUrls), exitCode, why, signal.aborted ? { cause: signal.reason } : {})
    }
    return result
  } catch (error) {
    if (error instanceof GitError) throw error
    throw new GitError(args.map(redactUrls), null, String(error instanceof Error ? error.message : error), {
      cause: error,
    })
  } finally {
    signal.removeEventListener('abort', killGroup)
  }
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

function abortText(signal: AbortSignal, timeoutMs: number): string {
  return (signal.reason as { name?: string })?.name === 'TimeoutError' ? `no answer within ${timeoutMs} ms` : 'aborted'
}

/** `https://user:secret@host` → `https://host`: what git prints may reach users and logs. */
export function redactUrls(text: string): string {
  return text.replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s/@]+@/gi, '$1')
}

export function lastLines(text: string, count: number): string {
  return text.trim().split('\n').slice(-count).join('; ')
}

function definedOnly(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined))
}

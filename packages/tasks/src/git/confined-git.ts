import type { Readable, Writable } from 'node:stream'
import { type Confine, limitedArgv, type ProcessLimits } from './confine.js'
import { type Git, type GitOptions, type RunningGit, runGit, startGit } from './git-process.js'

/** git for one repository that holds what a sandbox sent. */
export interface ConfinedGit {
  run: Git
  /** Starts git with pipes on standard input and output; the caller ends it. */
  start(args: readonly string[], options: { signal: AbortSignal; timeoutMs: number }): GitConversation
  /** The same with an open file as standard output. */
  startInto(file: number, args: readonly string[], options: { signal: AbortSignal; timeoutMs: number }): GitInput
}

/** A git that waits for what it is asked until it is closed. */
export interface GitInput {
  readonly stdin: Writable
  /** Rejects with `GitError` when git ended by itself and not well. */
  readonly ended: Promise<void>
  close(): Promise<void>
}

/** A git that is asked and answers until it is closed. */
export interface GitConversation extends GitInput {
  readonly stdout: Readable
}

export interface ConfinedGitOptions {
  /** The repository with what came from the sandbox: the only place this git may write to. */
  directory: string
  /** Other places it reads objects from. */
  readable: readonly string[]
  limits: ProcessLimits & {
    /** The largest single allocation: an object that says it is larger is refused before it is unpacked. */
    objectBytes: number
  }
  confine: Confine
  path: string | undefined
}

/**
 * A git for objects we did not make. It knows no configuration but what is written here, no network and no helper
 * program; one thread, small windows and no file larger than `bigFileThreshold` in memory keep its size foreseeable,
 * and limits of the process hold whatever it does.
 */
export function createConfinedGit(options: ConfinedGitOptions): ConfinedGit {
  const { directory, limits } = options
  const env = {
    PATH: options.path ?? '/usr/local/bin:/usr/bin:/bin',
    HOME: '/nonexistent',
    GIT_DIR: directory,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_NO_LAZY_FETCH: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_ALLOC_LIMIT: String(limits.objectBytes),
    LC_ALL: 'C',
  }
  const config = {
    'core.hooksPath': '/dev/null',
    'protocol.allow': 'never',
    'gc.auto': '0',
    'core.bigFileThreshold': '32m',
    'core.packedGitWindowSize': '32m',
    'core.packedGitLimit': '256m',
    'core.deltaBaseCacheLimit': '64m',
    'pack.threads': '1',
    'pack.windowMemory': '128m',
  }
  const flags = Object.entries(config).flatMap(([key, value]) => ['-c', `${key}=${value}`])
  const argvOf = (args: readonly string[]): readonly string[] =>
    options.confine({
      argv: limitedArgv(['git', ...flags, ...args], limits),
      readable: options.readable,
      writable: [directory],
    })
  const start = (args: readonly string[], more: Pick<GitOptions, 'signal' | 'timeoutMs' | 'stdout'>): RunningGit => {
    const running = startGit(argvOf(args), args, { ...more, cwd: directory, env, isConversation: true })
    running.done.catch(() => undefined) // looked at by the caller through `ended`
    return running
  }
  return {
    run: (args, call = {}) => runGit(argvOf(args), args, { ...call, cwd: directory, env }),
    start(args, call) {
      const running = start(args, call)
      return { ...inputOf(running), stdout: running.child.stdout! }
    },
    startInto: (file, args, call) => inputOf(start(args, { ...call, stdout: file })),
  }
}

function inputOf(running: RunningGit): GitInput {
  return {
    stdin: running.child.stdin!,
    ended: running.done,
    async close() {
      running.end()
      // What is left unread would keep the process from being seen to end.
      running.child.stdout?.destroy()
      await running.done.catch(() => undefined)
    },
  }
}

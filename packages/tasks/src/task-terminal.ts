import { type DaemonClient, type OutputEvent, type TerminalSize, titleOf } from '@corral/protocol'
import type { SandboxAccess } from './sandbox/sandbox-session.js'
import { TaskError } from './task-error.js'
import type { TaskService } from './task-service.js'

/** A shell in the sandbox of a task. It is a process of the daemon: it goes on when the client disconnects. */
export interface TaskTerminal {
  /** Output from the offset that was asked for, then the end of the shell. */
  readonly output: AsyncIterable<OutputEvent>
  write(data: Uint8Array): Promise<void>
  resize(size: TerminalSize): Promise<void>
  /** Closes the connection; the shell goes on. */
  close(): Promise<void>
}

export interface TaskTerminals {
  /** Opens the shell named `session`, or joins it where it runs. `NotFound` without a sandbox. */
  open(
    id: string,
    options: { session: string; from: number; size: TerminalSize; signal: AbortSignal },
  ): Promise<TaskTerminal>
}

const shell = `for d in "\${CORRAL_WORKSPACE:-}" /workspace "\${HOME:-}"; do
  if [ -n "$d" ] && [ -d "$d/repo" ]; then cd "$d/repo"; break; fi
done
if command -v bash >/dev/null; then exec bash; else exec sh; fi`

export function createTaskTerminals(options: {
  tasks: Pick<TaskService, 'get'>
  sandboxes: SandboxAccess
  namespace: string
}): TaskTerminals {
  return {
    async open(id, { session, from, size, signal }) {
      const { sandbox, status, task } = await options.tasks.get(id)
      if (!sandbox?.name)
        throw new TaskError('NotFound', `task ${id} has no sandbox (${status}): ${titleOf(task)}`, {
          hint: 'A task has one while it runs; with keep_sandbox a failed one keeps it.',
        })
      const line = await options.sandboxes.open(
        { namespace: options.namespace, name: sandbox.name, provider: sandbox.provider },
        { signal },
      )
      const { daemon } = line
      const process = `terminal-${session}`
      try {
        await start(daemon, process, size, signal)
      } catch (error) {
        await line.close()
        throw error
      }
      return {
        output: daemon.readOutput(process, { offset: from, signal }),
        write: (data) => daemon.writeStdin(process, data, { signal }),
        resize: (next) => daemon.resize(process, next, { signal }),
        close: () => line.close(),
      }
    },
  }
}

async function start(daemon: DaemonClient, id: string, size: TerminalSize, signal: AbortSignal): Promise<void> {
  const env = { TERM: 'xterm-256color', COLORTERM: 'truecolor' }
  const record = await daemon.startProcess(
    id,
    { argv: ['/bin/sh', '-c', shell], env, tty: size, stdin: 'open' },
    { signal },
  )
  if (!record.exit) await daemon.resize(id, size, { signal }).catch(() => undefined) // it may end just now
}

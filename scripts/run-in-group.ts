import { spawn } from 'node:child_process'
import { constants } from 'node:os'

/**
 * Runs a command with this one's standard streams and answers its exit code. The command has a process group of its own, and a
 * signal to this process goes to all of it: npm and shells end at a signal without the programs that they started.
 */
export function runInGroup(program: string, words: readonly string[], env = process.env): Promise<number> {
  const child = spawn(program, words, { stdio: 'inherit', env, detached: true })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
        process.kill(-child.pid, signal)
    })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal ?? 'SIGKILL']))
  })
}

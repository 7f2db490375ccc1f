import { spawn } from 'node:child_process'
import { constants } from 'node:os'

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']

/**
 * Runs a program and answers its exit code. A signal to this process ends the program with all it started, and then this process:
 * an npm that is left behind goes on writing while the next one begins.
 */
export async function runToEnd(program, args, options) {
  let child
  let stopped
  const end = (signal) => {
    try {
      if (child?.pid) process.kill(-child.pid, signal)
    } catch (error) {
      if (error.code !== 'ESRCH') throw error
    }
  }
  const stop = (signal) => {
    stopped = signal
    end(signal)
  }
  // Before there is anything that a signal could leave behind.
  for (const signal of signals) process.on(signal, stop)
  child = spawn(program, args, { ...options, detached: true })
  const code = await new Promise((resolve) => {
    child.once('error', () => resolve(1))
    child.once('exit', (status) => resolve(status ?? 1))
  })
  for (const signal of signals) process.off(signal, stop)
  if (stopped) {
    end('SIGKILL') // What a shell started in the background is deaf to SIGINT.
    process.exit(128 + constants.signals[stopped])
  }
  return code
}

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

/**
 * Keeps a core busy until its parent is gone, so that a killed run leaves no loop behind. The parent is told to it: one that
 * dies before the loop's first line could not be told from the one that takes its place.
 */
const loop = `for (;;) { for (let i = 0; i < 3e8; i += 1); if (process.ppid !== ${process.pid}) break }`

export interface BusyLoops extends AsyncDisposable {
  readonly pids: readonly number[]
}

/** Starts programs that do nothing but use up processor time. Disposing ends each of them by its process id. */
export async function startBusyLoops(count: number): Promise<BusyLoops> {
  const loops: ChildProcess[] = []
  const end = async (): Promise<void> => {
    await Promise.all(
      loops
        .filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
        .map(async (each) => {
          const ended = once(each, 'exit')
          each.kill('SIGKILL')
          await ended
        }),
    )
  }
  try {
    for (let index = 0; index < count; index += 1) {
      const child = spawn(process.execPath, ['-e', loop], { stdio: 'ignore' })
      loops.push(child)
      await once(child, 'spawn')
    }
  } catch (error) {
    await end()
    throw error
  }
  return { pids: loops.flatMap(({ pid }) => pid ?? []), [Symbol.asyncDispose]: end }
}

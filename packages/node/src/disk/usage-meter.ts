import { Worker } from 'node:worker_threads'
import { type MeasureRequest, measurePod, type PodUsage } from './pod-usage.js'

/** Counts what pods take, a few at a time: one with a million names does not keep the others waiting. */
export interface UsageMeter {
  measure(request: MeasureRequest): Promise<PodUsage>
  close(): Promise<void>
}

/** Few, since they take their share of the processors; more than one, since one count may take a quarter of a minute. */
const mostThreads = 3

/**
 * Counts in threads of its own, which are started as they are needed: hundreds of thousands of files would hold up
 * the thread that decides about pods. `program` is `usage-thread` as one plain JavaScript file; without it the caller's
 * thread counts.
 */
export function usageMeter(program: string | undefined): UsageMeter {
  if (program === undefined) return { measure: async (request) => measurePod(request), close: async () => {} }
  const threads = new Set<Worker>()
  const idle: Worker[] = []
  const waiting: ((thread: Worker) => void)[] = []
  const start = (): Worker => {
    const thread = new Worker(program, { name: 'disk-usage', execArgv: [] })
    thread.unref()
    threads.add(thread)
    return thread
  }
  const take = (): Worker | Promise<Worker> => {
    const thread = idle.pop() ?? (threads.size < mostThreads ? start() : undefined)
    return thread ?? new Promise((resolve) => waiting.push(resolve))
  }
  /** The next count goes on with it; one is kept ready. */
  const give = (thread: Worker): void => {
    const next = waiting.shift()
    if (next) next(thread)
    else if (idle.length === 0) idle.push(thread)
    else {
      threads.delete(thread)
      void thread.terminate()
    }
  }
  const replace = (thread: Worker): void => {
    threads.delete(thread)
    waiting.shift()?.(start())
  }
  const ask = (thread: Worker, request: MeasureRequest): Promise<PodUsage> =>
    new Promise((resolve, reject) => {
      // Only these three: a worker has listeners of its own, and without them its answers do not arrive any more.
      const finish = (act: () => void): void => {
        thread.off('message', answered).off('error', fail).off('exit', ended)
        act()
      }
      const fail = (error: Error): void =>
        finish(() => {
          replace(thread)
          reject(error)
        })
      const answered = (usage: PodUsage): void =>
        finish(() => {
          give(thread)
          resolve(usage)
        })
      const ended = (code: number): void => fail(new Error(`the thread that counts disk usage ended with ${code}`))
      thread.on('message', answered).on('error', fail).on('exit', ended)
      thread.postMessage(request)
    })
  return {
    measure: async (request) => ask(await take(), request),
    async close() {
      await Promise.all([...threads].map((thread) => thread.terminate()))
    },
  }
}

import { Worker } from 'node:worker_threads'
import { type MeasureRequest, measurePod, type PodUsage } from './pod-usage.js'

/** Counts what pods take, one after the other. */
export interface UsageMeter {
  measure(request: MeasureRequest): Promise<PodUsage>
  close(): Promise<void>
}

/**
 * Counts in a thread of its own, which is started at the first measurement: hundreds of thousands of files would hold up
 * the thread that decides about pods. `program` is `usage-thread` as one plain JavaScript file; without it the caller's
 * thread counts.
 */
export function usageMeter(program: string | undefined): UsageMeter {
  if (program === undefined) return { measure: async (request) => measurePod(request), close: async () => {} }
  let worker: Worker | undefined
  let last: Promise<unknown> = Promise.resolve()
  const ask = (request: MeasureRequest): Promise<PodUsage> =>
    new Promise((resolve, reject) => {
      worker ??= new Worker(program, { name: 'disk-usage', execArgv: [] })
      const thread = worker
      thread.unref()
      // Only these three: a worker has listeners of its own, and without them its answers do not arrive any more.
      const finish = (act: () => void): void => {
        thread.off('message', answered).off('error', fail).off('exit', ended)
        act()
      }
      const fail = (error: Error): void => {
        worker = undefined // the next measurement starts another
        finish(() => reject(error))
      }
      const answered = (usage: PodUsage): void => finish(() => resolve(usage))
      const ended = (code: number): void => fail(new Error(`the thread that counts disk usage ended with ${code}`))
      thread.on('message', answered).on('error', fail).on('exit', ended)
      thread.postMessage(request)
    })
  return {
    measure(request) {
      const answer = last.then(() => ask(request))
      last = answer.catch(() => undefined)
      return answer
    },
    async close() {
      await worker?.terminate()
    },
  }
}

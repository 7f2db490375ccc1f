import { fork } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ApiTarget } from './api-target.js'
import type { LoadJob, LoadReply, LoadResult } from './load-jobs.js'

/** A process that makes requests, so that measuring does not share an event loop with what is measured. */
export interface LoadClient {
  run(target: Pick<ApiTarget, 'url' | 'token' | 'ca'>, job: LoadJob, connections?: number): Promise<LoadResult>
  stop(): Promise<void>
}

const worker = join(dirname(fileURLToPath(import.meta.url)), 'load-worker.ts')

/** Starts the load process; one job at a time. */
export function startLoadClient(): LoadClient {
  const child = fork(worker, [], { execArgv: process.execArgv, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  return {
    run(target, job, connections = 16) {
      const { url, token, ca } = target
      return new Promise((resolve, reject) => {
        const onExit = (code: number | null): void => reject(new Error(`the load process ended with ${code}`))
        child.once('exit', onExit)
        child.once('message', (reply: LoadReply) => {
          child.off('exit', onExit)
          if ('error' in reply) reject(new Error(reply.error))
          else resolve(reply.result)
        })
        child.send({ address: { url, token, ca, connections }, job })
      })
    },
    async stop() {
      child.kill('SIGTERM')
      await gone
    },
  }
}

import { setTimeout as pause } from 'node:timers/promises'
import type { ApiHandler, ApiRequest, ApiResponse, WatchFrame } from '@corral/ports'
import { KubeError } from '@corral/resources'
import { refusal } from './passes.js'

/** A generator with a seed, so that a failing run can be repeated. */
export function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

export type Fault = 'conflict' | 'busy' | 'internal' | 'lost' | 'unanswered' | 'stale read' | 'dropped watch' | 'dead'

/** An API server behind a bad network. */
export interface FaultyHandler extends ApiHandler {
  /** How often each fault happened. */
  readonly counts: ReadonlyMap<Fault, number>
  /** From now on nothing gets through in either direction, as for a process that was killed. */
  kill(): void
}

export interface FaultyHandlerOptions {
  random: () => number
  /** Part of writes and reads that go wrong, and of watch events after which the watch breaks. */
  rate: number
  /** Longest time by which watch events come late. */
  lateByMs: number
}

const writeFaults = ['conflict', 'busy', 'internal', 'lost', 'unanswered'] as const

/** Passes requests on, most of the time. Writes that are `unanswered` are carried out all the same. */
export function faultyHandler(handler: ApiHandler, { random, rate, lateByMs }: FaultyHandlerOptions): FaultyHandler {
  const counts = new Map<Fault, number>()
  const lastSeen = new Map<string, ApiResponse>()
  const beforeThat = new Map<string, ApiResponse>()
  let isDead = false
  const happened = (fault: Fault): Fault => {
    counts.set(fault, (counts.get(fault) ?? 0) + 1)
    return fault
  }
  const noAnswer = (): Error => new KubeError('Timeout', 'no answer, made by the test')

  async function handle(request: ApiRequest): Promise<ApiResponse> {
    if (isDead) return fail('dead')
    if (request.method !== 'GET') return write(request)
    const response = await handler.handle(request)
    if (response.body.type === 'watch') {
      return { ...response, body: { type: 'watch', frames: unreliable(response.body.frames) } }
    }
    const older = beforeThat.get(request.path)
    if (older && random() < rate) {
      happened('stale read')
      return older
    }
    return response
  }

  async function write(request: ApiRequest): Promise<ApiResponse> {
    const fault = random() < rate ? writeFaults[Math.floor(random() * writeFaults.length)] : undefined
    if (fault) happened(fault)
    switch (fault) {
      case 'conflict':
        return refusal(409, 'Conflict')
      case 'busy': {
        const busy = refusal(429, 'TooManyRequests')
        return { ...busy, headers: { ...busy.headers, 'retry-after': '0' } }
      }
      case 'internal':
        return refusal(500, 'InternalError')
      case 'lost':
        throw noAnswer()
      case 'unanswered':
        await handler.handle(request)
        throw noAnswer()
      case undefined: {
        const response = await handler.handle(request)
        if (isDead) return fail('dead')
        if (response.status < 300) remember(request.path.replace(/\/status$/, ''), response)
        return response
      }
    }
  }

  function remember(path: string, response: ApiResponse): void {
    const last = lastSeen.get(path)
    if (last) beforeThat.set(path, last)
    lastSeen.set(path, response)
  }

  async function* unreliable(frames: AsyncIterable<WatchFrame>): AsyncGenerator<WatchFrame> {
    for await (const frame of frames) {
      if (lateByMs > 0 && random() < rate) await pause(random() * lateByMs)
      if (isDead) return
      yield frame
      if (random() < rate / 10) {
        happened('dropped watch')
        return
      }
    }
  }

  function fail(fault: Fault): never {
    happened(fault)
    throw noAnswer()
  }

  return {
    counts,
    handle,
    connect: (request) => handler.connect(request),
    kill() {
      isDead = true
    },
  }
}

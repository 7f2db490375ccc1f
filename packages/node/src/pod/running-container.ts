import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '@corral/ports'
import type { Container, LifecycleHandler } from '@corral/resources'
import type { Cell, CellExit } from '../isolation/isolation.js'
import { runHandler } from '../probes/handler.js'
import { probeLoop } from '../probes/probe-loop.js'
import type { ProbeKind } from '../probes/probe-state.js'

export interface RunningContainerOptions {
  cell: Cell
  container: Container
  podIP: string
  now(): Date
  log: Logger
  /** A cell taken over from an earlier node process had its postStart hook and its start already. */
  isAdopted: boolean
  wasStarted: boolean
  on: {
    started(): void
    ready(isReady: boolean): void
    unhealthy(kind: ProbeKind | 'postStart', message: string): void
    probeFailed(kind: ProbeKind, message: string): void
    hookFailed(hook: 'PostStart' | 'PreStop', message: string): void
    exited(exit: CellExit): void
  }
}

/** One run of a container: its probes, its hooks, its end. */
export interface RunningContainer {
  readonly cell: Cell
  /** preStop hook, SIGTERM, and after the grace period everything in the cell is killed. A second call can only hurry. */
  stop(graceSeconds: number): void
  /** Lets go of the cell without ending it. */
  detach(): void
  /** Settles after the last probe, hook and stop of this run. */
  readonly settled: Promise<void>
}

const hookTimeoutMs = 30_000
const minimumTermMs = 2_000

export function runContainer(options: RunningContainerOptions): RunningContainer {
  const { cell, container, on, log } = options
  const life = new AbortController()
  const work = new Set<Promise<void>>()
  const upForMs = options.isAdopted ? options.now().getTime() - Date.parse(cell.startedAt) : 0
  let stopping: { deadlineMs: number; hurry: AbortController } | undefined

  const own = (promise: Promise<void>): void => {
    const guarded = promise.catch((error: unknown) => {
      if (!life.signal.aborted) log.warn('container task failed', { container: container.name, error })
    })
    work.add(guarded)
    void guarded.finally(() => work.delete(guarded))
  }

  const lost = (): CellExit => {
    const { startedAt } = cell
    return { exitCode: 137, oomKilled: false, startedAt, finishedAt: options.now().toISOString(), lost: true }
  }
  // The exit of a detached cell belongs to the next node process.
  void cell.exited.catch(lost).then((exit) => {
    const isDetached = life.signal.aborted
    life.abort()
    if (!isDetached) on.exited(exit)
  })

  const context = { cell, container, podIP: options.podIP }
  const loop = (kind: ProbeKind, onVerdict: (isSuccess: boolean, message: string) => void): Promise<void> => {
    const probe = container[`${kind}Probe`]
    if (!probe) return Promise.resolve()
    return probeLoop({
      kind,
      probe,
      context,
      upForMs,
      signal: life.signal,
      onVerdict: (verdict, message) => onVerdict(verdict === 'success', message),
      onFailure: (message) => on.probeFailed(kind, message),
      ...(kind === 'startup' ? { endsOn: 'success' as const } : {}),
    })
  }

  function begin(): void {
    on.started()
    if (container.readinessProbe) own(loop('readiness', (isReady) => on.ready(isReady)))
    else on.ready(true)
    own(
      loop('liveness', (isAlive, message) => {
        if (!isAlive) on.unhealthy('liveness', message)
      }),
    )
  }

  async function start(): Promise<void> {
    const hook = container.lifecycle?.postStart
    if (hook && !options.isAdopted) {
      const failure = await runHook(hook, hookTimeoutMs)
      if (failure) {
        on.hookFailed('PostStart', failure)
        on.unhealthy('postStart', failure)
        return
      }
    }
    if (life.signal.aborted) return
    if (!container.startupProbe || options.wasStarted) return begin()
    await loop('startup', (isUp, message) => (isUp ? begin() : on.unhealthy('startup', message)))
  }

  async function runHook(hook: LifecycleHandler, timeoutMs: number): Promise<string | undefined> {
    if (hook.sleep) {
      await sleep(Math.min(hook.sleep.seconds * 1000, timeoutMs), undefined, { signal: life.signal })
      return undefined
    }
    const result = await runHandler(hook, { ...context, timeoutMs, signal: life.signal })
    return result.ok ? undefined : result.message
  }

  async function stopNow(graceSeconds: number, hurry: AbortController): Promise<void> {
    const hook = container.lifecycle?.preStop
    const began = performance.now()
    if (hook && graceSeconds > 0) {
      const failure = await Promise.race([runHook(hook, graceSeconds * 1000), aborted(hurry.signal)])
      if (failure) on.hookFailed('PreStop', failure)
    }
    if (life.signal.aborted) return
    if (graceSeconds > 0) {
      await cell.signal(stopSignal(container)).catch(ignoreGone)
      const leftMs = Math.max(graceSeconds * 1000 - (performance.now() - began), hook ? minimumTermMs : 0)
      await sleep(leftMs, undefined, { signal: AbortSignal.any([hurry.signal, life.signal]) }).catch(ignoreGone)
    }
    if (!life.signal.aborted) await cell.kill()
  }

  own(start())

  return {
    cell,
    stop(graceSeconds) {
      const deadlineMs = performance.now() + graceSeconds * 1000
      if (!stopping) {
        stopping = { deadlineMs, hurry: new AbortController() }
        own(stopNow(graceSeconds, stopping.hurry))
      } else if (deadlineMs < stopping.deadlineMs) {
        stopping.deadlineMs = deadlineMs
        const { hurry } = stopping
        own(sleep(graceSeconds * 1000, undefined, { signal: life.signal }).then(() => hurry.abort()))
      }
    },
    detach: () => life.abort(),
    settled: (async () => {
      await new Promise<void>((resolve) => life.signal.addEventListener('abort', () => resolve(), { once: true }))
      while (work.size > 0) await Promise.all(work)
    })(),
  }
}

function stopSignal(container: Container): NodeJS.Signals {
  return (container.lifecycle?.stopSignal as NodeJS.Signals | undefined) ?? 'SIGTERM'
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined), { once: true }))
}

/** The container may end at any moment while it is being stopped; then there is nothing left to do. */
const ignoreGone = (): void => {}

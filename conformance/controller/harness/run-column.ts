import { type Activity, startActivity } from './activity.js'
import type { Column, ColumnId, ManagerCall } from './column.js'
import type { Scenario } from './scenario.js'
import { Scene } from './scene.js'
import { type ScriptedNode, startScriptedNode } from './scripted-node.js'
import { ensureNamespace } from './service-account.js'

/** What became of one scenario in one column. */
export interface Result {
  readonly number: string
  readonly title: string
  readonly passed: boolean
  readonly ms: number
  /** Why it failed. */
  readonly note?: string
  /** What was there to see, with everything that changes from run to run replaced. */
  readonly observations: Readonly<Record<string, unknown>>
}

export interface ColumnRun {
  readonly id: ColumnId
  readonly title: string
  readonly facts: Readonly<Record<string, unknown>>
  readonly results: readonly Result[]
  readonly calls: readonly ManagerCall[]
}

export interface RunOptions {
  parallel: number
  quietMs: number
  onResult(column: Column, result: Result): void
  /** Told of a scenario that failed and is played again later. */
  onRetry(column: Column, result: Result): void
}

/** Runs every scenario in a column, those with the same flags under one manager, and closes the column. */
export async function runColumn(
  column: Column,
  scenarios: readonly Scenario[],
  options: RunOptions,
): Promise<ColumnRun> {
  const results: Result[] = []
  let node: ScriptedNode | undefined
  let activity: Activity | undefined
  try {
    node = await startScriptedNode(column.client)
    activity = await startActivity(column.client)
    const keep = (result: Result): void => {
      results.push(result)
      options.onResult(column, result)
    }
    const stage: Stage = { column, node, activity, quietMs: options.quietMs }
    for (const group of byFlags(scenarios)) {
      const manager = await column.startManager(group[0]?.flags ?? [])
      try {
        const failed: Scenario[] = []
        const queue = [...group]
        const worker = async (): Promise<void> => {
          for (let next = queue.shift(); next; next = queue.shift()) {
            const result = await play(next, stage, '')
            if (result.passed) {
              keep(result)
              continue
            }
            failed.push(next)
            options.onRetry(column, result)
          }
        }
        await Promise.all(Array.from({ length: options.parallel }, worker))
        // Some scenarios have windows of two seconds, which a busy machine may miss: they play again, alone.
        for (const scenario of failed) keep(await playAgain(scenario, stage))
      } finally {
        await manager.stop()
      }
    }
    const { id, title, facts } = column
    return { id, title, facts, results: inOrderOf(scenarios, results), calls: column.calls?.() ?? [] }
  } finally {
    await node?.stop()
    await activity?.stop()
    await column.close()
  }
}

/** Where scenarios of one column are played. */
interface Stage {
  column: Column
  node: ScriptedNode
  activity: Activity
  quietMs: number
}

async function playAgain(scenario: Scenario, stage: Stage): Promise<Result> {
  const second = await play(scenario, stage, '-again')
  return second.passed ? second : play(scenario, stage, '-at-last')
}

async function play(scenario: Scenario, stage: Stage, suffix: string): Promise<Result> {
  const { column, node, activity, quietMs } = stage
  const { number, title } = scenario
  const namespace = `s-${number.replaceAll(/[^0-9a-z]+/g, '-')}${suffix}`
  const lifetime = new AbortController()
  const scene = new Scene({ client: column.client, node, activity, namespace, quietMs, signal: lifetime.signal })
  const startedMs = Date.now()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const limitMs = scenario.timeoutMs
    timer = setTimeout(() => reject(new Error(`still running after ${limitMs} ms`)), limitMs)
  })
  const finish = (note?: string): Result => ({
    number,
    title,
    passed: note === undefined,
    ms: Date.now() - startedMs,
    ...(note !== undefined && { note }),
    observations: scene.observations,
  })
  try {
    await ensureNamespace(column.client, namespace)
    const work = scenario.run(scene)
    work.catch(() => {}) // a scenario that is late may still fail after its end
    await Promise.race([work, late])
    return finish()
  } catch (error) {
    return finish((error as Error).message)
  } finally {
    clearTimeout(timer)
    lifetime.abort()
    node.script(namespace, undefined)
    // The namespace stays: tidying up would keep managers busy with refusals, and the whole server goes soon.
  }
}

function byFlags(scenarios: readonly Scenario[]): Scenario[][] {
  const groups = new Map<string, Scenario[]>()
  for (const scenario of scenarios) {
    const key = scenario.flags.join(' ')
    const group = groups.get(key) ?? []
    group.push(scenario)
    groups.set(key, group)
  }
  return [...groups.values()]
}

function inOrderOf(scenarios: readonly Scenario[], results: readonly Result[]): Result[] {
  const order = new Map(scenarios.map(({ number }, index) => [number, index]))
  return [...results].sort((a, b) => (order.get(a.number) ?? 0) - (order.get(b.number) ?? 0))
}

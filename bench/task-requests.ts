import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CreateTaskRequest, isFinalPhase, TasksClient } from '@corral/protocol'
import { Pool } from 'undici'
import { until } from './common/until.js'

export interface PlatformAddress {
  url: string
  token: string
}

/** A small repository with one commit. */
export function makeRepository(directory: string): string {
  mkdirSync(directory, { recursive: true })
  const git = (...args: string[]): void => {
    const identity = ['-c', 'user.name=Bench', '-c', 'user.email=bench@example.com']
    execFileSync('git', [...identity, ...args], { cwd: directory, stdio: 'ignore' })
  }
  git('init', '--quiet', '--initial-branch=main')
  writeFileSync(join(directory, 'README.md'), '# Sample\n')
  git('add', '.')
  git('commit', '--quiet', '-m', 'start')
  return directory
}

/** Sends `POST /tasks` on a fixed schedule; the times until each was answered. */
export async function postTasks(
  platform: PlatformAddress,
  options: { repository: string; ratePerSecond: number; durationMs: number },
): Promise<number[]> {
  const pool = new Pool(platform.url, { connections: 32 })
  const headers = { authorization: `Bearer ${platform.token}`, 'content-type': 'application/json' }
  const body = JSON.stringify(commandTask(options.repository, 'true'))
  const latenciesMs: number[] = []
  const post = async (): Promise<void> => {
    const sentAt = performance.now()
    const answer = await pool.request({ method: 'POST', path: '/tasks', headers, body })
    const text = await answer.body.text()
    if (answer.statusCode !== 201) throw new Error(`POST /tasks: ${answer.statusCode} ${text.slice(0, 300)}`)
    latenciesMs.push(performance.now() - sentAt)
  }
  const total = Math.floor((options.durationMs / 1000) * options.ratePerSecond)
  const startedAt = performance.now()
  const pending: Promise<void>[] = []
  try {
    while (pending.length < total) {
      const due = Math.min(total, Math.floor(((performance.now() - startedAt) / 1000) * options.ratePerSecond) + 1)
      while (pending.length < due) pending.push(post())
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await Promise.all(pending)
  } finally {
    await Promise.allSettled(pending)
    await pool.destroy()
  }
  return latenciesMs
}

/** Starts tasks that do nothing for a while, and waits until all of them run. */
export async function startIdleTasks(platform: PlatformAddress, repository: string, count: number): Promise<string[]> {
  const client = new TasksClient({ baseUrl: platform.url, token: platform.token })
  const ids: string[] = []
  for (let index = 0; index < count; index += 1)
    ids.push((await client.create(commandTask(repository, 'sleep 600'))).id)
  await until(
    `${count} tasks running`,
    async () => (await Promise.all(ids.map((id) => client.get(id)))).every(({ status }) => status === 'RUNNING'),
    120_000,
  )
  return ids
}

/** What one task costs beside its agent: from the request to its final status, less the agent's own time. */
export async function taskOverheadMs(platform: PlatformAddress, repository: string): Promise<number> {
  const agentMs = 500
  const client = new TasksClient({ baseUrl: platform.url, token: platform.token })
  const startedAt = performance.now()
  const { id } = await client.create(commandTask(repository, `sleep ${agentMs / 1000}; echo done > done.txt`))
  for await (const event of client.events(id)) if (event.type === 'result') break
  // The result is told first; the record of it is what other clients see.
  await until('the task recorded', async () => isFinalPhase((await client.get(id)).status))
  const tookMs = performance.now() - startedAt
  const { status, cause } = await client.get(id)
  if (status !== 'SUCCEEDED') throw new Error(`the task ended as ${status}: ${JSON.stringify(cause)}`)
  return tookMs - agentMs
}

export function commandTask(repository: string, command: string): CreateTaskRequest {
  return { repo: repository, task: 'Bench', agent: { name: 'command', command } }
}

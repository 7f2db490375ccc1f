import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { bundleDaemon, type DaemonBundle, type RunningDaemon, startDaemon } from './daemon-process.test-suite.js'

let bundle: DaemonBundle
let directory: string
let daemon: RunningDaemon | undefined

beforeAll(async () => {
  bundle = await bundleDaemon()
})
afterAll(() => bundle.remove())
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'corral-runner-'))
})
afterEach(async () => {
  daemon?.process.kill('SIGKILL')
  await daemon?.exited
  daemon = undefined
  await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
})

async function start(env: Record<string, string> = {}): Promise<RunningDaemon> {
  daemon = await startDaemon(bundle, directory, env)
  return daemon
}
const post = (body: string) => fetch(`${daemon?.url}/task`, { method: 'POST', body })
const task = JSON.stringify({ taskID: 't-1', message: 'hello' })

describe('the runner', () => {
  it('S0-C4: answers ok on /healthz', async () => {
    await start()
    const response = await fetch(`${daemon?.url}/healthz`)
    expect([response.status, await response.text()]).toEqual([200, 'ok'])
  })

  it('S0-C5: refuses a bad body with 400, whatever is bad about it, and stays free for a task', async () => {
    await start({ CORRAL_DAEMON_RUNNER_WORK_MS: '60000' })
    const badBodies: [body: string, says: RegExp][] = [
      ['hello', /JSON/],
      ['', /JSON/],
      ['{"message":"m"}', /taskID/],
      ['{"taskID":"../x","message":"m"}', /taskID/],
      ['{"taskID":"a","message":1}', /message/],
      ['[]', /object/],
    ]
    for (const [body, says] of badBodies) {
      const refused = await post(body)
      expect([body, refused.status]).toEqual([body, 400])
      expect(await refused.json()).toMatchObject({
        error: { code: 'BadRequest', message: expect.stringMatching(says) },
      })
    }
    expect((await post(task)).status).toBe(202)
  })

  it('S0-C6, S0-C7, S0-C9, S0-T1: accepts one task with 202, refuses the second with 409 and stays up while it works', async () => {
    await start({ CORRAL_DAEMON_RUNNER_WORK_MS: '60000' })
    const accepted = await post(task)
    expect([accepted.status, await accepted.json()]).toEqual([202, { status: 'accepted' }])
    const second = await post(task)
    expect(second.status).toBe(409)
    expect(await second.json()).toMatchObject({ error: { code: 'TaskAlreadyAccepted' } })
    expect((await fetch(`${daemon?.url}/healthz`)).status).toBe(200)
  })

  it('S0-C7: of many tasks at once exactly one is accepted', async () => {
    await start({ CORRAL_DAEMON_RUNNER_WORK_MS: '60000' })
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(task)))
    expect(answers.filter((answer) => answer.status === 202)).toHaveLength(1)
    expect(answers.filter((answer) => answer.status === 409)).toHaveLength(19)
  })

  it('S0-C3, S0-C10, S0-C11: writes the result, works two seconds, logs JSON and exits 0', async () => {
    const { exited, logs } = await start()
    const acceptedMs = performance.now()
    await post(task)
    expect(await exited).toEqual({ code: 0, signal: null })
    expect(performance.now() - acceptedMs).toBeGreaterThanOrEqual(1_990)
    const [id, message, time] = (await readFile(join(directory, 'work', 'result-t-1.txt'), 'utf8')).split('\n')
    expect([id, message]).toEqual(['Task ID: t-1', 'Message: hello'])
    expect(time).toMatch(/^Completed at: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/)
    expect(logs.map((line) => line.msg)).toContain('task completed')
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('S0-C8: %s before a task ends it cleanly', async (signal) => {
    const { process: child, exited } = await start()
    child.kill(signal)
    expect(await exited).toEqual({ code: 0, signal: null })
  })

  it('S0-C12: a result that cannot be written is logged and exits 1', async () => {
    await writeFile(join(directory, 'work'), 'a file where the directory should be')
    const { exited, logs } = await start()
    expect((await post(task)).status).toBe(202)
    expect(await exited).toEqual({ code: 1, signal: null })
    expect(logs).toContainEqual(expect.objectContaining({ level: 'error', msg: 'task failed' }))
  })

  it('S0-C12: a port that is taken is logged and exits 1', async () => {
    const { url } = await start()
    const failure = startDaemon(bundle, directory, { CORRAL_DAEMON_PORT: new URL(url).port })
    await expect(failure).rejects.toThrow(/ended with 1: .*EADDRINUSE/)
  })

  it('answers 409 to a task once a process exists', async () => {
    const { client } = await start()
    await client.startProcess('p', { argv: ['true'] })
    await expect(client.sendTask({ taskID: 't', message: 'm' })).rejects.toMatchObject({ code: 'ProcessesExist' })
  })

  it('answers 409 to a process once a task was taken', async () => {
    const { client } = await start({ CORRAL_DAEMON_RUNNER_WORK_MS: '60000' })
    await client.sendTask({ taskID: 't', message: 'm' })
    const starting = client.startProcess('p', { argv: ['true'] })
    await expect(starting).rejects.toMatchObject({ code: 'TaskAlreadyAccepted' })
  })
})

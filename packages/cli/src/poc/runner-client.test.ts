import { createServer, type Server } from 'node:http'
import { AgentSandboxClient, SandboxError } from '@corral/agent-sandbox-sdk'
import { afterEach, expect, it } from 'vitest'
import { isDeadline, runnerRetry, sendRunnerTask } from './runner-client.js'

/** A loopback address of its own stands for the name in cluster DNS; the runner's port is fixed. */
const address = '127.0.88.88'
let server: Server | undefined
afterEach(() => new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve())))

interface Received {
  method: string | undefined
  url: string | undefined
  type: string | undefined
  body: unknown
}

/** A runner that answers each request with the next status; the last one stays. */
async function runner(...statuses: number[]): Promise<Received[]> {
  const received: Received[] = []
  server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    request.on('end', () => {
      const { method, url, headers } = request
      received.push({ method, url, type: headers['content-type'], body: JSON.parse(text) })
      const status = statuses[Math.min(received.length, statuses.length) - 1] ?? 500
      response.writeHead(status, { 'content-type': 'application/json' }).end(bodies[status] ?? '{}')
    })
  })
  await new Promise<void>((resolve) => server?.listen(8888, address, resolve))
  return received
}

const bodies: Record<number, string> = {
  202: '{"status":"accepted"}',
  409: '{"error":{"code":"TaskAlreadyAccepted","message":"one task"}}',
}

const send = async (serviceFQDN: string | undefined, failed: unknown[] = []): Promise<void> =>
  sendRunnerTask(
    new AgentSandboxClient({ kubeconfigPath: '/nonexistent' }),
    { name: 'box', namespace: 'default', serviceFQDN },
    { taskId: 'one', message: 'Hello' },
    { local: false, signal: AbortSignal.timeout(240_000), onAttempt: (_, error) => failed.push(error), pauseMs: 1 },
  )

it('S0-O7 S1-K1: the task is posted as JSON to port 8888 of the sandbox’s name', async () => {
  const received = await runner(202)
  await send(address)
  expect(received).toEqual([
    {
      method: 'POST',
      url: '/task',
      type: expect.stringMatching(/^application\/json/),
      body: { taskID: 'one', message: 'Hello' },
    },
  ])
})

it('S0-O8: it is tried five times, two seconds apart, and then given up', async () => {
  const received = await runner(500)
  const failed: unknown[] = []
  await expect(send(address, failed)).rejects.toThrow('POST /task answered 500')
  expect([received.length, failed.length]).toEqual([5, 5])
  expect(runnerRetry).toEqual({ attempts: 5, pauseMs: 2_000 })
})

it.each([202, 409])('S0-O8 S0-O9: a later %s is success', async (status) => {
  const received = await runner(500, 503, status)
  await send(address)
  expect(received).toHaveLength(3)
})

it('S0-O12: without a name to reach it by, the error names the way through the API', async () => {
  await expect(send(undefined)).rejects.toThrow(/--local/)
})

const failedFor = (reason: string): Error =>
  new SandboxError('SandboxFailed', `claim "poc-late" failed: ${reason}`, { details: { reason } })

it.each([
  { when: 'the time is up', error: new Error('aborted'), signal: AbortSignal.abort(), is: true },
  { when: 'the claim expired a moment before', error: failedFor('ClaimExpired'), signal: undefined, is: true },
  { when: 'the template is missing', error: failedFor('TemplateNotFound'), signal: undefined, is: false },
])('S0-O2: whether the deadline is named when $when: $is', ({ error, signal, is }) => {
  expect(isDeadline(error, signal ?? new AbortController().signal)).toBe(is)
})

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type StreamFrame, TasksClient } from '@corral/protocol'
import { gitRepository } from '@corral/testing'
import WebSocket from 'ws'
import { startCorral } from './common/corral-process.js'
import type { Recorder } from './common/result-file.js'
import { median, percentile } from './common/samples.js'

const readers = 1_000
const slow = 100

/** What a thousand readers of a running task cost the server, and whether those that do not read hurt one that does. */
export async function subscriptions(recorder: Recorder, directory: string): Promise<void> {
  const platform = await startCorral<{ url: string; token: string; pid: number }>(
    ['up', '--data-dir', join(directory, 'many'), '--port', '0', '--api-port', '0'],
    directory,
  )
  const sockets: WebSocket[] = []
  try {
    const { url, token } = platform.ready
    const client = new TasksClient({ baseUrl: url, token })
    const repo = await gitRepository(join(directory, 'many-repo'))
    const command = 'for i in $(seq 1 4000); do echo "mark $i."; sleep 0.05; done'
    const { id } = await client.create({ repo: repo.path, task: 'Count', agent: { name: 'command', command } })
    for await (const event of client.events(id)) if (event.type === 'output') break
    const before = memoryMegabytes(platform.pid)
    const delays: number[] = []
    const healthy = await subscribe(url, token, id)
    sockets.push(healthy)
    healthy.on('message', (data) => {
      const now = Date.now()
      const frame = JSON.parse(String(data)) as StreamFrame
      if (frame.type === 'events') for (const event of frame.events) delays.push(now - Date.parse(event.time))
    })
    while (sockets.length < readers)
      sockets.push(...(await Promise.all(Array.from({ length: 50 }, () => subscribe(url, token, id)))))
    await pause(4_000)
    const grown = memoryMegabytes(platform.pid) - before
    const alone = delays.splice(0).slice(-60)
    for (const socket of sockets.slice(1, 1 + slow)) socket.pause()
    await pause(5_000)
    const beside = delays.slice(-60)
    recorder.row({
      measure: `${readers.toLocaleString('en-US')} subscriptions to a running task, memory of the server`,
      unit: 'MB',
      values: { corral: grown },
      required: '<= 100 MB',
      isMet: grown <= 100,
    })
    recorder.row({
      measure: `event to a reader beside ${readers} others, p50; with ${slow} that do not read`,
      unit: 'ms',
      values: { 'all read': median(alone), 'some do not': median(beside) },
      ratio: median(beside) / median(alone),
      required: '<= 1.5 ×, or 20 ms more',
      isMet: median(beside) <= Math.max(1.5 * median(alone), median(alone) + 20),
    })
    recorder.row({
      measure: 'the same, p90',
      unit: 'ms',
      values: { 'all read': percentile(alone, 0.9), 'some do not': percentile(beside, 0.9) },
    })
    recorder.note('the readers are one process on the same machine: what they take of it is in the delays')
    await client.cancel(id)
  } finally {
    for (const socket of sockets) socket.terminate()
    await platform.stop()
  }
}

function subscribe(url: string, token: string, task: string): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/stream`, {
      headers: { authorization: `Bearer ${token}` },
    })
    socket.once('error', reject)
    socket.once('open', () => {
      socket.send(JSON.stringify({ type: 'subscribe', task, after: 0 }))
      resolve(socket)
    })
  })
}

const memoryMegabytes = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_000

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

import { silentLogger } from '@corral/ports'
import { expect, it, onTestFinished } from 'vitest'
import { type KeyedWorker, keyedWorker } from './keyed-worker.js'

/** A worker that notes its calls; what `work` answers decides how long a call takes. */
function start(
  work: (key: string, call: number) => Promise<void>,
  workers = 4,
): { worker: KeyedWorker; calls: string[] } {
  const calls: string[] = []
  const worker = keyedWorker({
    name: 'test',
    workers,
    backoff: { baseMs: 1, maxMs: 1 },
    log: silentLogger,
    async work(key) {
      calls.push(key)
      await work(key, calls.filter((each) => each === key).length)
    },
  })
  onTestFinished(() => worker.close())
  return { worker, calls }
}

it('works once on a key that is added many times in one turn', async () => {
  const { worker, calls } = start(async () => {})
  for (const key of ['a', 'b', 'a', 'a']) worker.add(key)
  await worker.idle()
  expect(calls).toEqual(['a', 'b'])
})

it('works once more on a key that is added while it is in hand, never twice at once', async () => {
  let running = 0
  const { worker, calls } = start(async (key, call) => {
    expect(++running).toBe(1)
    if (call === 1) worker.add(key)
    await new Promise((resolve) => setImmediate(resolve))
    running--
  })
  worker.add('a')
  await worker.idle()
  expect(calls).toEqual(['a', 'a'])
})

it('repeats a call that throws', async () => {
  let repeat: () => void = () => {}
  const repeated = new Promise<void>((resolve) => {
    repeat = resolve
  })
  const { worker, calls } = start(async (_key, call) => {
    if (call === 1) throw new Error('not yet')
    repeat()
  })
  worker.add('a')
  await repeated
  await worker.idle()
  expect(calls).toEqual(['a', 'a'])
})

it('starts nothing after it was closed, and waits for the call in hand', async () => {
  let isOver = false
  const { worker, calls } = start(async () => {
    await new Promise((resolve) => setImmediate(resolve))
    isOver = true
  }, 1)
  worker.add('a')
  worker.add('b')
  await new Promise((resolve) => setImmediate(resolve))
  await worker.close()
  worker.add('c')
  await worker.idle()
  expect(calls).toEqual(['a'])
  expect(isOver).toBe(true)
})

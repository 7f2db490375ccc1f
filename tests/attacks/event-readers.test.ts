import { type TemporaryDirectory, temporaryDirectory } from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fileEventLog } from '../../packages/tasks/src/event-log/file-event-log.js'

const uid = '0b9d3a52-0000-4000-8000-000000000001'
const guardMs = 240_000
/** Of 16 KB each, so that sixteen are read at once. */
const count = 60

describe('many readers of a task’s events that begin at once', () => {
  let scratch: TemporaryDirectory
  beforeAll(() => {
    scratch = temporaryDirectory()
  })
  afterAll(() => scratch[Symbol.asyncDispose]())

  it('leave the event loop to other requests after a few parts of the log, and each gets all of it', {
    timeout: guardMs,
  }, async () => {
    const log = fileEventLog({ directory: scratch.path, now: () => new Date(0) })
    await log.append(
      uid,
      Array.from({ length: count }, () => ({ type: 'output', stream: 'stdout', text: 'x'.repeat(16_000) }) as const),
    )
    let inThisTurn = 0
    let most = 0
    let isOver = false
    const turn = (): void => {
      inThisTurn = 0
      if (!isOver) setImmediate(turn)
    }
    setImmediate(turn)
    const read = async (): Promise<number> => {
      let events = 0
      for await (const _ of log.read(uid)) {
        events += 1
        most = Math.max(most, ++inThisTurn)
      }
      return events
    }
    const read100 = await Promise.all(Array.from({ length: 100 }, read))
    isOver = true
    await log.close()
    expect(new Set(read100)).toEqual(new Set([count]))
    expect(most).toBeLessThanOrEqual(64)
  })
})

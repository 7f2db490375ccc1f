import type { TaskEvent, TaskEventBody } from '@corral/protocol'
import { expect, it } from 'vitest'
import { liveEvents } from './live-events.js'

const shown = (...bodies: TaskEventBody[]): string[] => {
  const live = liveEvents()
  return bodies.flatMap((body, index) =>
    live.push({ sequence: index + 1, time: '2026-01-01T00:00:00.000Z', ...body } as TaskEvent),
  )
}
const message = 'there is no branch "x" in /r'
const error: TaskEventBody = { type: 'error', code: 'BranchNotFound', message }
const failed: TaskEventBody = { type: 'stage', stage: 'repository', state: 'failed', detail: message }

it('leaves to the end what the end says', () => {
  const result: TaskEventBody = { type: 'result', status: 'FAILED', cause: { code: 'BranchNotFound', message } }
  expect(shown(error, failed, result)).toEqual(['✗ repository'])
})

it('tells a failure that is not the end once, with its reason', () => {
  expect(shown(error, failed, { type: 'stage', stage: 'claim', state: 'started' })).toEqual([
    `✗ repository  ${message}`,
    '▸ claiming a sandbox',
  ])
})

it('keeps an error that nothing else says', () => {
  expect(shown({ ...error, message: 'model away' }, { type: 'message', role: 'assistant', text: 'hm' })).toEqual([
    '! model away',
    '  hm',
  ])
})

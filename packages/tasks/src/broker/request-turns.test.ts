import { expect, it } from 'vitest'
import { createRequestTurns } from './request-turns.js'

it.each<{ when: string; arriving: number[]; begun: number[] }>([
  { when: 'one request comes now and then', arriving: [1, 1, 1], begun: [1, 1, 1] },
  { when: 'as many come as one turn takes', arriving: [4, 0, 4], begun: [4, 0, 4] },
  { when: 'ten come at once', arriving: [10, 0, 0, 0], begun: [4, 4, 2, 0] },
  { when: 'more come while others wait', arriving: [6, 3, 0, 1], begun: [4, 4, 1, 1] },
])('when $when, requests begin in the order they came and few in one turn', ({ arriving, begun }) => {
  let turns: (() => void)[] = []
  const inTurn = createRequestTurns((run) => turns.push(run))
  const order: number[] = []
  let sent = 0
  const perTurn = arriving.map((count) => {
    const before = order.length
    const due = turns
    turns = []
    for (const run of due) run()
    for (let index = 0; index < count; index += 1) {
      const id = sent
      sent += 1
      inTurn(() => order.push(id))
    }
    return order.length - before
  })

  expect(perTurn).toEqual(begun)
  expect(order).toEqual(order.map((_, index) => index))
})

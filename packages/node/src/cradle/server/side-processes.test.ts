import { describe, expect, it } from 'vitest'
import { type ProcessEntry, sideProcesses } from './side-processes.js'

const process = (pid: number, parent: number, ...inner: number[]): ProcessEntry => ({
  pid,
  parent,
  namespacePids: [pid, ...inner],
})

const cell = [process(10, 1), process(11, 10, 1), process(12, 11, 2)]

describe('what is ended in a cell that took too much, and what is left', () => {
  it.each<{ when: string; main?: number; table: ProcessEntry[]; ends: number[] }>([
    { when: 'only the container itself is there', table: cell, ends: [] },
    { when: 'its main process has a child', table: [...cell, process(13, 12, 3)], ends: [13] },
    { when: 'the child has children', table: [...cell, process(13, 12, 3), process(14, 13, 4)], ends: [13, 14] },
    { when: 'an orphan was taken over by the supervisor', table: [...cell, process(9, 11, 5)], ends: [9] },
    { when: 'something was started beside the main process', table: [process(20, 11, 7), ...cell], ends: [20] },
    { when: 'other cells run', table: [...cell, process(30, 1), process(31, 30, 1), process(32, 31, 2)], ends: [] },
    {
      when: 'a shell is the first process and the Node supervisor its child',
      main: 9,
      table: [process(10, 1), process(11, 10, 1), process(12, 11, 2), process(13, 12, 9), process(14, 13, 10)],
      ends: [14],
    },
    {
      when: 'there is no pid namespace: the launcher is the supervisor',
      main: 11,
      table: [process(10, 1), process(11, 10), process(12, 10), process(13, 11)],
      ends: [13, 12],
    },
    { when: 'nothing is left of it', table: [process(30, 1)], ends: [] },
  ])('$when', ({ main = 2, table, ends }) => {
    expect(sideProcesses(10, main, table)).toEqual(ends)
  })
})

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { directoryTaskRecords } from './directory-task-records.js'
import { memoryTaskRecords } from './memory-task-records.js'
import { describeTaskRecords } from './task-records.test-suite.js'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-records-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const now = (): Date => new Date('2026-01-01T00:00:00Z')
const openDirectory = (): ReturnType<typeof directoryTaskRecords> =>
  directoryTaskRecords({ directory: mkdtempSync(join(directory, 'tasks-')), now })

describeTaskRecords('directory', openDirectory)
describeTaskRecords('memory', () => memoryTaskRecords({ now }))

it('a platform finds the records that an earlier release wrote', async () => {
  const tasks = mkdtempSync(join(directory, 'earlier-'))
  mkdirSync(join(tasks, 'a-task'))
  const files = { 'agent.log': 'log', 'diff.patch': 'diff', 'in.bundle': 'in', 'out.bundle': 'out' }
  for (const [name, content] of Object.entries(files)) writeFileSync(join(tasks, 'a-task', name), content)
  writeFileSync(
    join(tasks, 'a-task', 'events.ndjson'),
    '{"sequence":1,"time":"2026-01-01T00:00:00.000Z","type":"result","status":"SUCCEEDED"}\n',
  )
  const records = directoryTaskRecords({ directory: tasks, now })
  const found = await Promise.all(
    (['agent-log', 'diff', 'bundle-in', 'bundle-out'] as const).map((part) => records.of('a-task').find(part)),
  )
  expect(found.map((part) => part?.sizeBytes)).toEqual([3, 4, 2, 3])
  expect(await records.events.tail('a-task')).toMatchObject({ sequence: 1, finished: true })
  await records.close()
})

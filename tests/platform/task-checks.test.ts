import { join } from 'node:path'
import type { TaskEvent, TaskView } from '@corral/protocol'
import {
  type GitFixture,
  gitRepository,
  type PlatformProcess,
  startPlatformProcess,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@corral/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'

let scratch: TemporaryDirectory
let platform: PlatformProcess
let repo: GitFixture
beforeAll(async () => {
  scratch = temporaryDirectory()
  platform = await startPlatformProcess()
  repo = await gitRepository(join(scratch.path, 'repo'))
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await scratch?.[Symbol.asyncDispose]()
})

/** Wrong at first; right, and with what it was told, when it is told that a check failed. */
const repairing =
  'if grep -q WRONG-ANSWER "$CORRAL_PROMPT_FILE"; then echo good > answer; cp "$CORRAL_PROMPT_FILE" told; else echo bad > answer; fi; echo "wrote $(cat answer)"'
const judging = {
  name: 'answer',
  command: 'date > made-by-check; cat answer; grep -q good answer || { echo WRONG-ANSWER; exit 3; }',
}
const agent = (command: string) => ({ name: 'command', command })
const show = (task: TaskView, path: string): Promise<string> => repo.git('show', `${task.commit}:${path}`)
const outcomes = (task: TaskView) => task.checks?.rounds.map(({ results }) => results.map(({ outcome }) => outcome))
const checkEvents = (events: TaskEvent[]) =>
  events.flatMap((event) =>
    event.type === 'check'
      ? [`${event.name} ${event.round} ${event.outcome}`]
      : event.type === 'check_round'
        ? [`round ${event.round} ${event.passed}`]
        : [],
  )

it('a failing check goes back to the agent, which repairs it in round two', async () => {
  const fine = { name: 'fine', command: 'true' }
  const task = await platform.api.run({
    repo: repo.path,
    task: 'Answer well',
    agent: agent(repairing),
    checks: [judging, fine],
  })
  expect(task).toMatchObject({ status: 'SUCCEEDED', outcome: 'changes', pushed: true })
  expect(outcomes(task)).toEqual([
    ['failed', 'passed'],
    ['passed', 'passed'],
  ])
  expect(task.checks?.rounds[0]?.results[0]).toMatchObject({ exit_code: 3, output: 'bad\nWRONG-ANSWER' })
  const told = await show(task, 'told')
  expect(told).toMatch(/^Answer well\n/)
  expect(told).toContain('Check "answer" failed (exit code 3)')
  expect(told).toContain('bad\nWRONG-ANSWER')
  expect(told).not.toContain('"fine"')
  // What the check made is not work of the agent.
  await expect(show(task, 'made-by-check')).rejects.toThrow(/does not exist in|exists on disk, but not in/)
  expect(task.warnings).toMatchObject([{ code: 'CheckFileLeftOut', path: 'made-by-check' }])

  const events = await platform.api.allEvents(task.id)
  expect(checkEvents(events)).toEqual([
    'answer 1 failed',
    'fine 1 passed',
    'round 1 false',
    'answer 2 passed',
    'fine 2 passed',
    'round 2 true',
  ])
  const written = events.flatMap((event) => (event.type === 'output' ? [event] : []))
  expect(written.flatMap(({ stage, text }) => (stage ? [] : [text.trim()]))).toEqual(['wrote bad', 'wrote good'])
  const ofCheck = written.filter(({ check }) => check === 'answer').map(({ text }) => text)
  expect(ofCheck.join('')).toContain('WRONG-ANSWER')
  const log = await platform.api.request('GET', `/tasks/${task.id}/artifacts/check-1-answer.log`)
  expect(log.text).toBe('bad\nWRONG-ANSWER\n')
})

it('checks that still fail fail the task; its branch is there, or is not, as was asked for', async () => {
  const request = {
    repo: repo.path,
    task: 'Try',
    agent: agent('echo try >> answer'),
    checks: [{ name: 'never', command: 'echo no; false' }],
  }
  const pushed = await platform.api.run({ ...request, check_rounds: 1 })
  expect(pushed).toMatchObject({ status: 'FAILED', cause: { code: 'ChecksFailed' }, pushed: true })
  expect(pushed.cause?.message).toBe('checks still failed after 2 rounds: never')
  expect(await show(pushed, 'answer')).toBe('try\ntry')

  const run = await platform.corral([
    'run',
    'Try',
    '--repo',
    repo.path,
    '--command',
    'echo try >> answer',
    '--check',
    'echo no; false',
    '--check-rounds',
    '0',
    '--no-push-failed',
    '--json',
  ])
  expect(run.code).toBe(1)
  const withheld = JSON.parse(run.stdout.trim().split('\n').at(-1) ?? '') as TaskView
  expect(withheld).toMatchObject({ status: 'FAILED', cause: { code: 'ChecksFailed' } })
  expect(withheld.branch).toBeUndefined()
  expect(outcomes(withheld)).toEqual([['failed']])
  expect(await repo.git('branch', '--list', `corral/${withheld.id}`)).toBe('')
  expect((await platform.corral(['task', 'diff', withheld.id, '--name-only'])).stdout).toBe('answer\n')
})

it('a check that does not end in its time has failed; a cancel ends one that runs and keeps the work', async () => {
  const slow = await platform.api.run({
    repo: repo.path,
    task: 'Work',
    agent: agent('echo work > answer'),
    checks: [{ name: 'slow', command: 'echo begun; sleep 600', timeout_seconds: 1 }],
    check_rounds: 0,
  })
  expect(slow).toMatchObject({ status: 'FAILED', cause: { code: 'ChecksFailed' } })
  expect(outcomes(slow)).toEqual([['timed_out']])

  const id = await platform.api.create({
    repo: repo.path,
    task: 'Work',
    agent: agent('echo work > answer'),
    checks: [{ name: 'slow', command: 'sleep 600' }],
  })
  for await (const event of platform.api.events(id)) {
    if (event.type === 'stage' && event.stage === 'checks') break
  }
  await platform.api.request('POST', `/tasks/${id}/cancel`)
  const cancelled = await platform.api.untilEnded(id)
  expect(cancelled).toMatchObject({ status: 'CANCELLED', cause: { code: 'Cancelled' }, pushed: true })
  expect(await show(cancelled, 'answer')).toBe('work')
})

it('kill -9 of the platform during a check or a repair runs nothing twice and loses nothing', async () => {
  const id = await platform.api.create({
    repo: repo.path,
    task: 'Count',
    agent: agent(
      'echo run >> ../runs; echo "agent $(wc -l < ../runs)"; if [ "$(wc -l < ../runs)" -gt 1 ]; then sleep 3; fi; cp ../runs runs',
    ),
    checks: [
      {
        name: 'counts',
        command: 'echo looking; echo check >> ../checks; cp ../checks checks; sleep 3; [ "$(wc -l < ../runs)" -gt 1 ]',
      },
    ],
  })
  const killedAt = async (isThere: (event: TaskEvent) => boolean): Promise<void> => {
    for await (const event of platform.api.events(id)) if (isThere(event)) break
    await platform.kill9()
    await platform.restart()
  }
  await killedAt((event) => event.type === 'output' && event.check === 'counts')
  await killedAt((event) => event.type === 'check_round')
  const task = await platform.api.untilEnded(id)
  expect(task).toMatchObject({ status: 'SUCCEEDED' })
  expect(outcomes(task)).toEqual([['failed'], ['passed']])
  expect(await show(task, 'runs')).toBe('run\nrun')
  const events = await platform.api.allEvents(id)
  expect(checkEvents(events)).toEqual(['counts 1 failed', 'round 1 false', 'counts 2 passed', 'round 2 true'])
  const said = events.flatMap((event) => (event.type === 'output' ? [event.text.trim()] : []))
  expect(said, 'what a check writes is told as it comes, once').toEqual(['agent 1', 'looking', 'agent 2', 'looking'])
})

import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CreateTaskRequest, EnvironmentView, TaskView } from '@corral/protocol'
import {
  type GitFixture,
  gitRepository,
  type PlatformProcess,
  startPlatformProcess,
  type TemporaryDirectory,
  temporaryDirectory,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let scratch: TemporaryDirectory
let platform: PlatformProcess
let repo: GitFixture
beforeAll(async () => {
  scratch = temporaryDirectory()
  platform = await startPlatformProcess()
  repo = await gitRepository(join(scratch.path, 'large'), { 'a.txt': 'one\n', 'gone.txt': 'x\n' })
  for (let index = 0; index < 10; index += 1) writeFileSync(join(repo.path, `${index}.bin`), randomBytes(1_000_000))
  await repo.git('add', '-A')
  await repo.git('commit', '-qm', 'large files')
  await repo.git('tag', 'v1')
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await scratch?.[Symbol.asyncDispose]()
})

async function run(command: string, more: Partial<CreateTaskRequest> = {}) {
  const agent = { name: 'command', command } as const
  const task: TaskView = await platform.api.run({ repo: repo.path, task: 'Look', agent, ...more })
  const events = await platform.api.allEvents(task.id)
  const said = events.flatMap((event) => (event.type === 'output' ? [event.text] : [])).join('')
  const brought = events.flatMap((event) =>
    event.type === 'stage' && event.stage === 'repository' && event.state === 'finished' ? [event.detail ?? ''] : [],
  )
  return { task, said, brought: brought.join('') }
}

async function environment(): Promise<EnvironmentView | undefined> {
  const { stdout } = await platform.corral(['env', 'list', '--json', '--data-dir', platform.dataDir])
  const { environments } = JSON.parse(stdout) as { environments: EnvironmentView[] }
  return environments.find((each) => each.repo === repo.path)
}

/** Everything a user could tell a snapshot from a clone by. */
const look = [
  'git status --short --branch',
  'git fsck --full --strict 2>&1',
  'git log --oneline | wc -l',
  'git describe --tags',
  'git for-each-ref --format="%(refname)"',
  'git stash list',
  'cat a.txt; ls | wc -l',
].join('; ')

const isRoot = process.getuid?.() === 0

describe.skipIf(!isRoot)(`a large repository${isRoot ? '' : ' (a plain user is sent all of it)'}`, () => {
  it('is sent whole to the first task, and later ones find a checkout in their sandbox', async () => {
    const first = await run(look)
    expect(first.task, first.said).toMatchObject({ status: 'SUCCEEDED', outcome: 'no_changes' })
    expect(first.brought).toMatch(/, \d{8,} bytes as a bundle, on branch/)
    await waitUntil('a snapshot', async () => (await environment())?.snapshots.length === 1)
    const second = await run(look)
    expect(second.task, second.said).toMatchObject({ status: 'SUCCEEDED', outcome: 'no_changes' })
    expect(second.brought).toMatch(/, \d{2,3} bytes as a bundle beyond a snapshot of/)
    const withoutTask = (text: string, { id }: TaskView): string => text.replaceAll(id, 'TASK')
    expect(withoutTask(second.said, second.task)).toBe(withoutTask(first.said, first.task))
  })

  it('gets what changed since, whatever that is, and the result is the same as without', async () => {
    writeFileSync(join(repo.path, 'a.txt'), 'two\n')
    await repo.git('rm', '-q', 'gone.txt')
    await repo.git('mv', '3.bin', 'moved.bin')
    await repo.git('add', '-A')
    await repo.git('commit', '-qm', 'second')
    await repo.git('tag', '-a', 'v2', '-m', 'annotated')
    const work = 'rm 1.bin; echo three >> a.txt; echo x > 2.bin; mkdir d; echo new > d/new.txt'
    const command = `${look}; ${work}`
    const onto = await run(command)
    expect(onto.brought).toMatch(/, \d{3,5} bytes as a bundle beyond a snapshot of/)
    const whole = await run(command, { use_snapshot: false })
    expect(whole.brought).not.toContain('snapshot')
    expect(onto.said.replaceAll(onto.task.id, 'TASK')).toBe(whole.said.replaceAll(whole.task.id, 'TASK'))
    const treeOf = ({ task }: { task: TaskView }): Promise<string> => repo.git('rev-parse', `${task.branch}^{tree}`)
    expect(await treeOf(onto)).toBe(await treeOf(whole))
    expect(await repo.git('rev-parse', `${onto.task.branch}^`)).toBe(await repo.git('rev-parse', 'main'))
  })

  it('is there for a follow-up, at the commit of the former task', async () => {
    const former = await run('echo work >> work.txt; git add work.txt; git commit -qm work')
    const body = { task: 'Go on' }
    const answer = await platform.api.request('POST', `/tasks/${former.task.id}/messages`, { body })
    const task = answer.json as TaskView
    const ended = await platform.api.untilEnded(task.id)
    expect(ended).toMatchObject({ status: 'SUCCEEDED' })
    const events = JSON.stringify(await platform.api.allEvents(task.id))
    expect(events).toContain('bytes as a bundle beyond a snapshot of')
  })

  it('is sent whole where what the agent did to its repository needs the base again', async () => {
    const { task, brought } = await run('echo kept > kept.txt; rm -rf .git')
    expect(brought).toContain('beyond a snapshot of')
    expect(task, JSON.stringify(task.cause)).toMatchObject({ status: 'SUCCEEDED', outcome: 'changes' })
    expect(await repo.git('show', `${task.branch}:kept.txt`)).toBe('kept')
    expect(task.warnings?.map(({ code }) => code)).toContain('HistoryLost')
  })
})

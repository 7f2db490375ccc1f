import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TasksClient, type TaskView } from '@corral/protocol'
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
let client: TasksClient
let repo: GitFixture
let task: TaskView

beforeAll(async () => {
  scratch = temporaryDirectory()
  platform = await startPlatformProcess()
  client = new TasksClient({ baseUrl: platform.url, token: platform.token })
  repo = await gitRepository(join(scratch.path, 'repo'))
  writeFileSync(join(repo.path, 'old.txt'), 'one\ntwo\n')
  await repo.git('add', '.')
  await repo.git('commit', '-qm', 'old')
  const command = [
    "printf 'one\\nTWO\\n' > old.txt",
    'mkdir -p src out/pages',
    "printf '\\351\\000' > src/bytes.bin",
    "printf 'na\\351ve\\n' > src/latin1.txt",
    'echo report > out/report.html; echo page > out/pages/p; printf "out/\\n" > .gitignore',
  ].join('; ')
  task = await platform.api.run({
    repo: repo.path,
    task: 'Write',
    agent: { name: 'command', command },
    artifacts: ['out/report.html', 'out/pages', 'missing.txt'],
  })
  expect(task).toMatchObject({ status: 'SUCCEEDED', outcome: 'changes' })
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await scratch?.[Symbol.asyncDispose]()
})

const bytes = async (chunks: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all)
}

it('the change is there in pieces: files, the patch of one, contents of either side', async () => {
  const { files, additions, deletions, truncated } = await client.files(task.id)
  expect(files.map(({ path, status, binary }) => [path, status, binary])).toEqual([
    ['.gitignore', 'added', false],
    ['old.txt', 'modified', false],
    ['src/bytes.bin', 'added', true],
    ['src/latin1.txt', 'added', false],
  ])
  expect({ additions, deletions, truncated }).toEqual({ additions: 3, deletions: 1, truncated: false })
  const patch = (await bytes(client.diff(task.id, { path: 'old.txt' }))).toString()
  expect(patch).toMatch(/^diff --git a\/old\.txt b\/old\.txt\n/)
  expect(patch.length).toBe(files[1]?.patch_bytes)
  expect(patch.endsWith('-two\n+TWO\n')).toBe(true)
  expect((await bytes(client.file(task.id, 'old.txt'))).toString()).toBe('one\nTWO\n')
  expect((await bytes(client.file(task.id, 'old.txt', { ref: 'base' }))).toString()).toBe('one\ntwo\n')
  expect((await bytes(client.file(task.id, 'old.txt', { offset: 4, limit: 2 }))).toString()).toBe('TW')
  expect([...(await bytes(client.file(task.id, 'src/bytes.bin')))]).toEqual([0xe9, 0])
  await expect(bytes(client.file(task.id, 'src'))).rejects.toMatchObject({ code: 'FileNotFound' })
  await expect(bytes(client.file(task.id, '../x'))).rejects.toMatchObject({ code: 'Invalid' })
  await expect(bytes(client.diff(task.id, { path: 'no' }))).rejects.toMatchObject({ code: 'FileNotFound' })
})

it('files that were named are kept, the missing one is a warning', async () => {
  const { artifacts } = await client.artifacts(task.id)
  expect(artifacts.map(({ name, path }) => [name, path])).toEqual([
    ['pages', 'out/pages'],
    ['report.html', 'out/report.html'],
  ])
  expect(task.artifacts).toEqual(['pages', 'report.html'])
  expect(task.warnings).toMatchObject([{ code: 'ArtifactMissing', path: 'missing.txt' }])
  const out = join(scratch.path, 'kept')
  expect(await platform.corral(['task', 'artifacts', task.id, '--download', out])).toMatchObject({ code: 0 })
  expect(readFileSync(join(out, 'report.html'), 'utf8')).toBe('report\n')
  expect(readFileSync(join(out, 'pages')).includes('page\n')).toBe(true)
  await expect(bytes(client.artifact(task.id, '../diff.patch'))).rejects.toMatchObject({ code: 'FileNotFound' })
})

it('corral task diff shows sums, names, and JSON that keeps every byte', async () => {
  const stat = await platform.corral(['task', 'diff', task.id, '--stat'])
  expect(stat.stdout).toMatch(/ old\.txt +\| 2 \+-\n src\/bytes\.bin +\| Bin\n/)
  expect(stat.stdout).toContain('4 files changed, 3 insertions(+), 1 deletion(-)')
  expect((await platform.corral(['task', 'diff', task.id, '--name-only'])).stdout).toBe(
    '.gitignore\nold.txt\nsrc/bytes.bin\nsrc/latin1.txt\n',
  )
  const json = JSON.parse((await platform.corral(['task', 'diff', task.id, '--json'])).stdout) as Record<string, string>
  expect(json.encoding).toBe('base64')
  expect(Buffer.from(json.diff ?? '', 'base64').equals(await bytes(client.diff(task.id)))).toBe(true)
})

it('apply brings the change into a clean work tree, and only there', async () => {
  const tree = { cwd: repo.path }
  writeFileSync(join(repo.path, 'mine.txt'), 'mine\n')
  const dirty = await platform.corral(['task', 'apply', task.id], tree)
  expect(dirty).toMatchObject({ code: 1 })
  expect(dirty.stderr).toContain('1 file that is not committed')
  expect(await repo.git('status', '--porcelain')).toBe('?? mine.txt')

  const applied = await platform.corral(['task', 'apply', task.id, '--allow-dirty', '--json'], tree)
  expect(JSON.parse(applied.stdout)).toMatchObject({ id: task.id, conflicts: false, files: [{}, {}, {}, {}] })
  expect(readFileSync(join(repo.path, 'src/bytes.bin'))).toEqual(Buffer.from([0xe9, 0]))

  await repo.git('stash', '-u', '-q')
  await repo.git('checkout', '-qb', 'other')
  writeFileSync(join(repo.path, 'old.txt'), 'one\nanother\n')
  await repo.git('commit', '-qam', 'another')
  const misfit = await platform.corral(['task', 'apply', task.id], tree)
  expect(misfit.stderr).toMatch(/does not fit .*old\.txt/)
  expect(await repo.git('status', '--porcelain')).toBe('')
  const merged = await platform.corral(['task', 'apply', task.id, '--3way'], tree)
  expect(merged).toMatchObject({ code: 1 })
  expect(merged.stdout).toContain('with conflicts')
  expect(readFileSync(join(repo.path, 'old.txt'), 'utf8')).toContain('<<<<<<<')
  await repo.git('reset', '-q', '--hard')
})

it('checkout switches to the branch, and fetches it into another clone', async () => {
  const clone = join(scratch.path, 'clone')
  await repo.git('clone', '-q', repo.path, clone)
  const fetched = await platform.corral(['task', 'checkout', task.id, '--branch', 'theirs', '--json'], { cwd: clone })
  expect(JSON.parse(fetched.stdout)).toMatchObject({ branch: 'theirs', commit: task.commit, fetched: true })
  expect(await platform.corral(['task', 'checkout', task.id], { cwd: repo.path })).toMatchObject({ code: 0 })
  expect(await repo.git('rev-parse', 'HEAD')).toBe(task.commit)
  await repo.git('branch', 'taken', task.base_commit ?? '')
  const taken = await platform.corral(['task', 'checkout', task.id, '--branch', 'taken'], { cwd: repo.path })
  expect(taken.stderr).toContain('does not have the commit')
})

it('a task without a change says so instead of applying nothing', async () => {
  const none = await platform.api.run({ repo: repo.path, task: 'Look', agent: { name: 'command', command: 'true' } })
  const applied = await platform.corral(['task', 'apply', none.id], { cwd: repo.path })
  expect(applied.stderr).toContain('has no change to take (SUCCEEDED)')
  const out = await platform.corral(['task', 'checkout', none.id], { cwd: repo.path })
  expect(out.stderr).toContain('has no branch (SUCCEEDED)')
})

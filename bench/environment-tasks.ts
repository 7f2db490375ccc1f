import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type TaskEvent, TasksClient } from '@corral/protocol'
import { progress } from './common/bench-options.js'
import { startCorral } from './common/corral-process.js'
import type { Recorder } from './common/result-file.js'
import { median } from './common/samples.js'
import { sandboxStarts } from './environment-sandboxes.js'
import { commandTask, makeRepository, type PlatformAddress } from './task-requests.js'

const run = promisify(execFile)

/** What a project of a middling size depends on: some three hundred packages. */
const dependencies = { express: '4.18.2', mocha: '10.0.0', eslint: '8.24.0', webpack: '5.75.0', nyc: '15.1.0' }
const npmCi = 'npm ci --ignore-scripts --no-audit --no-fund'

/** Set-up that leaves this many files, as an installer would: one by one, with a little content. */
const setup = (files: number): string =>
  `node -e 'const fs=require("fs");for(let i=0;i<${files};i++){if(i%100===0)fs.mkdirSync("deps/"+i/100,{recursive:true});fs.writeFileSync("deps/"+Math.floor(i/100)+"/"+i%100,"x".repeat(2000))}'`

/** A test's own run: it reads some of what set-up left and says so. */
export const testCommand = 'cat deps/0/0 deps/0/1 | wc -c'

/**
 * The first task on a repository, which waits for its environment to be built, against later ones, on a platform as `corral up`
 * starts it; and the same test outside of any sandbox.
 */
export async function environmentTasks(
  recorder: Recorder,
  { directory, files, rounds }: { directory: string; files: number; rounds: number },
): Promise<{ taskMs: number; sandboxMs: number }> {
  const repository = makeRepository(join(directory, 'repository'))
  mkdirSync(join(repository, '.corral'))
  writeFileSync(join(repository, '.gitignore'), 'deps/\nnode_modules/\n')
  const npm = await lockDependencies(repository)
  if (!npm) recorder.note('set-up without npm ci: the registry could not be reached')
  const lines = [...(npm ? [npmCi] : []), setup(files)]
  writeFileSync(join(repository, '.corral/environment.yaml'), `version: 1\nsetup: ${JSON.stringify(lines)}\n`)
  const identity = ['-c', 'user.name=Bench', '-c', 'user.email=bench@example.com']
  await run('git', ['add', '-A'], { cwd: repository })
  await run('git', [...identity, 'commit', '-qm', 'environment'], { cwd: repository })
  const dataDir = join(directory, 'environment-data')
  mkdirSync(dataDir, { mode: 0o711 })
  const flags = ['--port', '0', '--api-port', '0', '--agent', 'command']
  const platform = await startCorral<PlatformAddress>(['up', '--data-dir', dataDir, ...flags], dataDir)
  const client = new TasksClient({ baseUrl: platform.ready.url, token: platform.ready.token })
  const eventsOfOne = async (): Promise<TaskEvent[]> => {
    const { id } = await client.create(commandTask(repository, testCommand))
    const events: TaskEvent[] = []
    for await (const event of client.events(id)) events.push(event)
    const { status, cause } = await client.get(id)
    if (status !== 'SUCCEEDED') throw new Error(`${status}: ${JSON.stringify(cause)}`)
    return events
  }
  progress(`environment of ${files} files`)
  const later = { setUp: [] as number[], toOutput: [] as number[] }
  let bare: number[]
  let firstMs: number
  try {
    firstMs = setUpMs(await eventsOfOne())
    for (let round = -1; round < rounds; round++) {
      const events = await eventsOfOne()
      if (round < 0) continue
      later.setUp.push(setUpMs(events))
      later.toOutput.push(claimToOutputMs(events))
    }
    const { environments } = await client.environments.list()
    const snapshot = environments[0]?.snapshots[0]?.name ?? ''
    bare = await sandboxStarts({ dataDir, snapshot, test: testCommand, rounds })
  } finally {
    await platform.stop()
  }
  const outside = await outsideMs(join(directory, 'outside'), rounds)
  const cold = npm ? await coldInstall(repository, directory) : undefined
  const size = files.toLocaleString('en-US')
  recorder.samples(`later set-up, ${size} files`, later.setUp)
  recorder.row({
    measure: `set-up of a later task, ${size} files, p50`,
    unit: 'ms',
    values: { later: median(later.setUp), first: firstMs, ...cold },
    ratio: median(later.setUp) / firstMs,
    required: '<= 1 % of the first',
    isMet: median(later.setUp) <= firstMs / 100,
  })
  recorder.row({
    measure: `claim → first output of the test, ${size} files, p50`,
    unit: 'ms',
    values: { task: median(later.toOutput), outside },
    ratio: median(later.toOutput) / outside,
    required: 'at most 300 ms later than outside',
    isMet: median(later.toOutput) - outside <= 300,
  })
  recorder.note(
    `set-up: from the start of the set-up stage to its end, of the first task with the build it waited for; a cold npm ci${npm ? '' : ' (left out)'} and ${size} files; outside: the same npm ci with an empty cache, and cp -a of what it left`,
  )
  recorder.samples(`claim → first output without a task, ${size} files`, bare)
  return { taskMs: median(later.toOutput), sandboxMs: median(bare) }
}

/** A lock file as `npm install` writes it; false where no registry answers. */
async function lockDependencies(repository: string): Promise<boolean> {
  writeFileSync(join(repository, 'package.json'), JSON.stringify({ name: 'bench', version: '1.0.0', dependencies }))
  const words = ['install', '--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund']
  return run('npm', words, { cwd: repository }).then(
    () => true,
    () => false,
  )
}

async function coldInstall(repository: string, directory: string): Promise<Record<string, number>> {
  const place = join(directory, 'installed')
  mkdirSync(place)
  await run('cp', [join(repository, 'package.json'), join(repository, 'package-lock.json'), place])
  const timed = async (program: string, words: string[]): Promise<number> => {
    const began = performance.now()
    await run(program, words, { cwd: place })
    return performance.now() - began
  }
  const [, ...words] = `${npmCi} --cache ${join(directory, 'npm-cache')}`.split(' ')
  const install = await timed('npm', words)
  return { 'npm ci outside': install, 'cp -a': await timed('cp', ['-a', 'node_modules', 'copy']) }
}

function setUpMs(events: readonly TaskEvent[]): number {
  const at = (is: (event: TaskEvent) => boolean): number => Date.parse(events.find(is)?.time ?? '')
  const stage = (state: string) => at((each) => each.type === 'stage' && each.stage === 'setup' && each.state === state)
  const own = stage('finished') - stage('started')
  const waited = at((each) => each.type === 'stage' && each.detail?.endsWith('is being built') === true)
  const checkedOut = at((each) => each.type === 'stage' && each.stage === 'repository' && each.state === 'finished')
  return Number.isNaN(waited) ? own : own + checkedOut - waited
}

function claimToOutputMs(events: readonly TaskEvent[]): number {
  const first = events.find((each) => each.type === 'output')
  return Date.parse(first?.time ?? '') - Date.parse(events[0]?.time ?? '')
}

async function outsideMs(directory: string, rounds: number): Promise<number> {
  mkdirSync(directory)
  await run('sh', ['-c', setup(100)], { cwd: directory })
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const began = performance.now()
    await run('sh', ['-c', testCommand], { cwd: directory })
    times.push(performance.now() - began)
  }
  return median(times)
}

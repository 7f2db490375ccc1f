import { execFileSync, spawn } from 'node:child_process'
import { existsSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { chmod, copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { silentLogger, systemClock } from '@corral/ports'
import type { StartProcessRequest } from '@corral/protocol'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ProcessHandle } from './process-handle.js'
import { ProcessRegistry } from './process-registry.js'
import { findSpawnHelper } from './spawn-lanes.js'

const helper = fileURLToPath(new URL('../../node/dist/native/corral-supervisor', import.meta.url))

let directory: string
let processes: ProcessRegistry
let count = 0

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'corral-child-'))
})
afterEach(async () => {
  await processes?.terminate(0)
  await processes?.detach()
  await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
})

async function run(argv: string[], more: Partial<StartProcessRequest> = {}): Promise<ProcessHandle> {
  return (await processes.startOrJoin(`p${count++}`, { argv, keep: 'memory', ...more })).handle
}

async function ended(handle: ProcessHandle): Promise<{ status: number; output: string; offsets: number[] }> {
  while (!handle.record().exit) await handle.changed.wait(1_000)
  const { output, offsets } = await said(handle)
  return { status: handle.record().exit?.exit_code ?? Number.NaN, output, offsets }
}

async function said(handle: ProcessHandle): Promise<{ output: string; offsets: number[] }> {
  const cursor = await handle.cursor(0)
  const offsets: number[] = []
  let output = ''
  for (let chunk = await cursor.next(); chunk; chunk = await cursor.next()) {
    offsets.push(chunk.offset)
    output += `${chunk.stream === 'stderr' ? '!' : ''}${Buffer.from(chunk.data).toString('utf8')}`
  }
  return { output, offsets }
}

async function parentOf(handle: ProcessHandle): Promise<string> {
  return execFileSync('ps', ['-o', 'ppid=', '-p', String(handle.record().pid)], { encoding: 'utf8' }).trim()
}

/** The first command starts the helper and does not wait for it; later ones go through it. */
async function untilHelped(): Promise<number> {
  for (;;) {
    const handle = await run(['sleep', '300'])
    const parent = Number(await parentOf(handle))
    handle.kill('SIGKILL', true)
    await ended(handle)
    if (parent !== process.pid) return parent
  }
}

const ways = [
  { name: 'as children of the daemon', spawnHelper: undefined },
  { name: 'by the helper', spawnHelper: helper },
]

describe.each(ways)('commands $name', ({ spawnHelper }) => {
  const isMissing = spawnHelper !== undefined && !existsSync(spawnHelper)
  beforeEach(async (context) => {
    if (isMissing) return context.skip()
    processes = await ProcessRegistry.open({
      directory: join(directory, 'processes'),
      clock: systemClock,
      log: silentLogger,
      env: { PATH: process.env.PATH, GREETING: 'hello' },
      defaultCwd: directory,
      spawnHelper,
    })
    if (spawnHelper) await untilHelped()
  })

  it.each([
    {
      row: 'both streams and the end',
      argv: ['sh', '-c', 'echo out; sleep 0.05; echo err >&2; exit 3'],
      output: 'out\n!err\n',
      status: 3,
    },
    {
      row: 'a variable of the sandbox and one of its own',
      argv: ['sh', '-c', 'echo $GREETING $MINE'],
      output: 'hello yes\n',
      status: 0,
    },
    { row: 'a signal that ended it', argv: ['sh', '-c', 'kill -9 $$'], output: '', status: 137 },
    { row: 'an empty standard input', argv: ['sh', '-c', 'cat; echo over'], output: 'over\n', status: 0 },
    {
      row: 'arguments with odd characters',
      argv: ['printf', '%s|', '', 'a b', 'ä\n', '$x'],
      output: '|a b|ä\n|$x|',
      status: 0,
    },
    {
      row: 'what a background child says within a second',
      argv: ['sh', '-c', '(sleep 0.2; echo late) & echo early'],
      output: 'early\nlate\n',
      status: 0,
    },
    {
      row: 'an end with a background child that stays',
      argv: ['sh', '-c', 'sleep 30 & echo done'],
      output: 'done\n',
      status: 0,
    },
    {
      row: 'no variables but those given',
      argv: ['env'],
      output: /^(?:PATH=.*\n|GREETING=hello\n|MINE=yes\n){3}$/,
      status: 0,
    },
  ])('tell $row', async ({ argv, output, status }) => {
    const found = await ended(await run(argv, { env: { MINE: 'yes' } }))
    expect(found).toMatchObject({ status })
    if (typeof output === 'string') expect(found.output).toBe(output)
    else expect(found.output).toMatch(output)
  })

  it('lead a session of their own in the directory that was asked for', async () => {
    const handle = await run(['sleep', '300'], { cwd: '/usr' })
    const { pid } = handle.record()
    expect(execFileSync('ps', ['-o', 'sid=', '-p', String(pid)], { encoding: 'utf8' }).trim()).toBe(String(pid))
    expect(readlinkSync(`/proc/${pid}/cwd`)).toBe('/usr')
  })

  it('end with all their children when they are killed', async () => {
    const handle = await run(['sh', '-c', 'sleep 300 & echo $!; wait'])
    while ((await said(handle)).output === '') await handle.changed.wait(1_000)
    const child = (await said(handle)).output.trim()
    handle.kill('SIGTERM', true)
    expect((await ended(handle)).status).toBe(143)
    await expect.poll(() => isRunning(child)).toBe(false)
    expect(() => handle.kill('SIGTERM', true)).toThrow(expect.objectContaining({ code: 'ProcessExited' }))
  })

  it('are told apart where the file is no program', async () => {
    await writeFile(join(directory, 'no-program'), '#!/no/such/interpreter\n', { mode: 0o755 })
    await expect(run([join(directory, 'no-program')])).rejects.toMatchObject({ code: 'CommandNotExecutable' })
    expect(await ended(await run(['echo', 'next']))).toMatchObject({ status: 0, output: 'next\n' })
  })

  it('wait for a reader that is behind and lose no byte', async () => {
    const total = 12 * 1024 * 1024
    const handle = await run(['head', '-c', String(total), '/dev/zero'])
    const cursor = await handle.cursor(0)
    let bytes = 0
    while (bytes < total) {
      const chunk = await cursor.next()
      expect(handle.record().output_bytes - bytes).toBeLessThan(4 * 1024 * 1024)
      bytes += chunk?.data.length ?? 0
      if (chunk) handle.confirm?.(bytes)
      else await handle.changed.wait(1_000)
    }
    while (!handle.record().exit) await handle.changed.wait(1_000)
    expect(handle.record()).toMatchObject({ output_bytes: total, exit: { exit_code: 0 } })
  })

  it('are started forty at once, each once', async () => {
    const all = await Promise.all(Array.from({ length: 40 }, (_, n) => run(['sh', '-c', `echo ${n} >>log; echo ${n}`])))
    expect((await Promise.all(all.map(ended))).map(({ output }) => output)).toEqual(all.map((_, n) => `${n}\n`))
    const log = readFileSync(join(directory, 'log'), 'utf8').trim().split('\n')
    expect(log.map(Number).sort((a, b) => a - b)).toEqual(all.map((_, n) => n))
  })
})

it.skipIf(!existsSync(helper))('the first command of a sandbox that has waited goes through the helper', async () => {
  processes = await ProcessRegistry.open({
    directory: join(directory, 'processes'),
    clock: systemClock,
    log: silentLogger,
    env: process.env,
    defaultCwd: directory,
    spawnHelper: helper,
  })
  processes.prepare()
  const handle = await run(['sleep', '300'])
  expect(Number(await parentOf(handle))).not.toBe(process.pid)
})

describe.skipIf(!existsSync(helper))('the helper', () => {
  let pid: number
  beforeEach(async () => {
    processes = await ProcessRegistry.open({
      directory: join(directory, 'processes'),
      clock: systemClock,
      log: silentLogger,
      env: process.env,
      defaultCwd: directory,
      spawnHelper: helper,
    })
    pid = await untilHelped()
  })

  it('leaves a command without an end when something in the sandbox kills it, and the next one runs', async () => {
    const handle = await run(['sleep', '300'])
    process.kill(pid, 'SIGKILL')
    while (!handle.record().exit) await handle.changed.wait(1_000)
    expect(handle.record().exit).toMatchObject({ exit_code: -1, message: 'the process that had started it was killed' })
    await expect.poll(() => isRunning(String(handle.record().pid))).toBe(false)
    expect(await ended(await run(['echo', 'next']))).toMatchObject({ status: 0, output: 'next\n' })
  })

  it('was killed and the daemon has not heard of it yet: commands that could not reach it run all the same', async () => {
    process.kill(pid, 'SIGKILL')
    // Without a turn of the event loop, in which the daemon would hear of it. A zombie has closed its lanes.
    while (!/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')));
    const all = await Promise.all(Array.from({ length: 12 }, (_, n) => run(['echo', String(n)])))
    expect((await Promise.all(all.map(ended))).map(({ status, output }) => [status, output])).toEqual(
      all.map((_, n) => [0, `${n}\n`]),
    )
  })

  it('rests while the reader of a command holds it up', async () => {
    const held = await run(['yes'])
    // A window's worth is held: nothing more is read, and what is on the way fills up.
    while (held.record().output_bytes < 2 * 1024 * 1024) await held.changed.wait(1_000)
    const before = ticksOf(pid)
    await ended(await run(['sleep', '0.5']))
    expect(ticksOf(pid) - before).toBeLessThan(5)
    held.kill('SIGKILL', true)
  })

  it('ends with its daemon, and what it runs too', async () => {
    const handle = await run(['sleep', '300'])
    await processes.detach()
    await expect.poll(() => isRunning(String(pid))).toBe(false)
    await expect.poll(() => isRunning(String(handle.record().pid))).toBe(false)
  })

  it('cannot be read by code of the same user, which would find the secrets of commands there', async () => {
    const path = join(directory, 'helper')
    await copyFile(helper, path)
    await chmod(directory, 0o755)
    const isRoot = process.getuid?.() === 0
    const user = isRoot ? { uid: 65_534, gid: 65_534 } : {}
    const child = spawn(path, ['spawn', '1'], { ...user, cwd: '/', stdio: ['ignore', 'ignore', 'ignore', 'pipe'] })
    try {
      // The kernel gives the files of a process that is not dumpable to root, whichever user runs it.
      await expect.poll(() => statSync(`/proc/${child.pid}/environ`).uid).toBe(0)
    } finally {
      child.kill('SIGKILL')
    }
  })
})

describe('the helper of a sandbox', () => {
  let path: string
  beforeAll(async () => {
    const parent = await mkdtemp(join(tmpdir(), 'corral-helper-'))
    path = join(parent, 'helper')
    await copyFile('/bin/true', path)
    await chmod(path, 0o755)
  })
  afterAll(() => rm(join(path, '..'), { recursive: true, force: true }))

  it('is not used where the user of the sandbox could have put it there', () => {
    expect(findSpawnHelper(path)).toBeUndefined()
    expect(findSpawnHelper(join(path, 'nothing'))).toBeUndefined()
  })
})

/** Processor time, in hundredths of a second. */
function ticksOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(fields[11]) + Number(fields[12])
}

function isRunning(pid: string): boolean {
  try {
    return !/^State:\t[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

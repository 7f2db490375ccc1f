import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger, systemClock } from '@corral/ports'
import { DaemonClient, type OutputEvent, type ReadOutputOptions } from '@corral/protocol'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createDaemon, type Daemon } from './create-daemon.js'
import { bundleDaemon, type DaemonBundle, type RunningDaemon, startDaemon } from './daemon-process.test-suite.js'

let bundle: DaemonBundle
let directory: string
let daemon: RunningDaemon
let client: DaemonClient

beforeAll(async () => {
  bundle = await bundleDaemon()
})
afterAll(() => bundle.remove())
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'corral-process-'))
})
afterEach(() => rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }))

/** The daemon without socket and process of its own, for what does not depend on them. */
function inThisProcess(): void {
  let own: Daemon
  beforeEach(async () => {
    own = await createDaemon({
      workDir: join(directory, 'work'),
      stateDir: join(directory, 'state'),
      clock: systemClock,
      log: silentLogger,
      env: process.env,
      defaultCwd: directory,
      onRunnerFinished: () => {},
    })
    client = new DaemonClient({ fetch: (url, init) => own.fetch(new Request(url, init)) })
  })
  afterEach(async () => {
    await own.terminate(0)
    await own.close()
  })
}

/** The bundle, as it ships. */
function inItsOwnProcess(nodeOptions: string[] = []): void {
  beforeEach(() => restart(nodeOptions))
  afterEach(async () => {
    // Its processes live in sessions of their own; the stop by SIGTERM ends them too.
    daemon.process.kill('SIGTERM')
    await daemon.exited
  })
}

async function restart(nodeOptions: string[] = []): Promise<void> {
  daemon = await startDaemon(bundle, directory, {}, nodeOptions)
  client = daemon.client
}
async function crash(): Promise<void> {
  daemon.process.kill('SIGKILL')
  await daemon.exited
}
const sh = (script: string) => ['/bin/sh', '-c', script]

async function collect(id: string, options: ReadOutputOptions = {}) {
  const text = { stdout: '', stderr: '' }
  let all = ''
  let exit: Extract<OutputEvent, { type: 'exit' }>['exit'] | undefined
  for await (const event of client.readOutput(id, options)) {
    if (event.type === 'exit') exit = event.exit
    else if (event.type === 'data') {
      const piece = Buffer.from(event.data).toString('latin1')
      text[event.stream] += piece
      all += piece
    }
  }
  return { ...text, all, exit }
}

describe('a process', () => {
  inThisProcess()

  it.each([
    { what: 'exit code 0', script: 'exit 0', exit: { exit_code: 0 } },
    { what: 'exit code 3', script: 'exit 3', exit: { exit_code: 3 } },
    { what: 'death by SIGKILL', script: 'kill -9 $$', exit: { exit_code: 137, signal: 9 } },
    { what: 'death by SIGTERM', script: 'kill $$', exit: { exit_code: 143, signal: 15 } },
  ])('reports $what', async ({ script, exit }) => {
    await client.startProcess('p', { argv: sh(script) })
    expect(await client.waitForExit('p')).toMatchObject(exit)
  })

  it('keeps the streams apart and tells all of the output, also what is written to /dev/stderr by name', async () => {
    await client.startProcess('p', {
      argv: sh('echo one; echo two > /dev/stderr; echo three >&2; printf four > /dev/stdout; printf five'),
    })
    expect(await collect('p')).toMatchObject({
      stdout: 'one\nfourfive',
      stderr: 'two\nthree\n',
      exit: { exit_code: 0 },
    })
  })

  it('gets arguments, environment and directory as they were sent', async () => {
    await client.startProcess('p', {
      argv: ['/bin/sh', '-c', 'printf "%s|" "$@" "$GREETING" "$PWD"', 'x', "it's", 'a b', '', '$HOME', '*'],
      env: { GREETING: 'good "day"\n' },
      cwd: '/usr',
    })
    expect((await collect('p')).stdout).toBe(`it's|a b||$HOME|*|good "day"\n|/usr|`)
  })

  it('is started once, however often and at once it is asked for', async () => {
    const request = { argv: sh(`echo run >>${directory}/runs; echo out`) }
    const records = await Promise.all(Array.from({ length: 8 }, () => client.startProcess('p', request)))
    await client.waitForExit('p')
    await client.startProcess('p', request)
    expect(new Set(records.map((record) => record.pid)).size).toBe(1)
    expect(await readFile(join(directory, 'runs'), 'utf8')).toBe('run\n')
  })

  it('reads its open stdin until it is closed', async () => {
    await client.startProcess('p', { argv: ['cat'], stdin: 'open' })
    await client.writeStdin('p', 'first ')
    await client.writeStdin('p', 'second', { eof: true })
    expect(await collect('p')).toMatchObject({ stdout: 'first second', exit: { exit_code: 0 } })
    await expect(client.writeStdin('p', 'late')).rejects.toMatchObject({ code: 'ProcessExited' })
  })

  it('reads end of file without an open stdin, and refuses to be written to', async () => {
    await client.startProcess('quick', { argv: ['cat'] })
    expect(await client.waitForExit('quick')).toMatchObject({ exit_code: 0 })
    await client.startProcess('slow', { argv: ['sleep', '60'] })
    await expect(client.writeStdin('slow', 'x')).rejects.toMatchObject({ code: 'StdinClosed' })
  })

  it('is signalled with its whole group, and alone when asked', async () => {
    await client.startProcess('p', {
      argv: sh(
        `trap 'echo got it' USR1; sh -c 'echo $$ >${directory}/child; sleep 60' & echo up; while :; do wait; done`,
      ),
    })
    await expect.poll(() => readFile(join(directory, 'child'), 'utf8').catch(() => '')).not.toBe('')
    await client.signal('p', 'SIGUSR1', { group: false })
    await expect.poll(async () => (await collect('p', { follow: false })).stdout).toContain('got it')
    const child = Number(await readFile(join(directory, 'child'), 'utf8'))
    await client.signal('p', 'SIGKILL')
    expect(await client.waitForExit('p')).toMatchObject({ exit_code: 137, signal: 9 })
    await expect.poll(() => isRunning(child)).toBe(false)
    await expect(client.signal('p', 'SIGTERM')).rejects.toMatchObject({ code: 'ProcessExited' })
  })

  it('has ended when it has ended, though a child in the background holds its output open', async () => {
    await client.startProcess('p', { argv: sh(`sleep 60 & echo $! >${directory}/child; echo done`) })
    expect(await collect('p')).toMatchObject({ stdout: 'done\n', exit: { exit_code: 0 } })
    process.kill(Number(await readFile(join(directory, 'child'), 'utf8')))
  })

  it('can be read from any offset, by several readers', async () => {
    await client.startProcess('p', { argv: sh('i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done') })
    await client.waitForExit('p')
    const { all } = await collect('p')
    const parts = await Promise.all([0, 1, 17, 1000, all.length].map((offset) => collect('p', { offset })))
    expect(parts.map((part) => part.all)).toEqual([0, 1, 17, 1000, all.length].map((offset) => all.slice(offset)))
    await expect(collect('p', { offset: all.length + 1 })).rejects.toMatchObject({ code: 'OffsetOutOfRange' })
  })

  it.each([
    { what: 'an unknown command', request: { argv: ['no-such-command'] }, code: 'CommandNotFound' },
    { what: 'a file that cannot run', request: { argv: ['/etc/passwd'] }, code: 'CommandNotExecutable' },
    { what: 'a missing directory', request: { argv: ['true'], cwd: '/nowhere' }, code: 'WorkingDirectoryMissing' },
    { what: 'no arguments', request: { argv: [] }, code: 'Invalid' },
    { what: 'NUL in an argument', request: { argv: ['echo', 'a\0b'] }, code: 'Invalid' },
    { what: 'an unknown field', request: { argv: ['true'], shell: true }, code: 'Invalid' },
  ])('refuses $what and remembers nothing', async ({ request, code }) => {
    await expect(client.startProcess('p', request)).rejects.toMatchObject({ code })
    expect(await client.findProcess('p')).toBeUndefined()
    expect(await client.listProcesses()).toEqual([])
  })

  it('S2-R3: runs in a terminal of the size that was asked for, and follows a resize', async () => {
    await client.startProcess('p', {
      argv: sh('stty size; read line; stty size; test -t 0 && test -t 1 && echo terminal; exit 4'),
      tty: { columns: 101, rows: 31 },
    })
    await client.resize('p', { columns: 90, rows: 20 })
    await client.writeStdin('p', 'go\r')
    const { stdout, exit } = await collect('p')
    expect(stdout).toContain('20 90\r\nterminal')
    expect(exit).toMatchObject({ exit_code: 4 })
  })
})

describe('a daemon that is killed and started again', () => {
  inItsOwnProcess()

  it('says so where there is no terminal library beside the bundle', async () => {
    const start = client.startProcess('p', { argv: ['true'], tty: { columns: 80, rows: 24 } })
    await expect(start).rejects.toMatchObject({ code: 'TerminalUnavailable' })
    expect(await client.findProcess('p')).toBeUndefined()
  })

  it('goes on: the process lives, its output continues, its end is recorded, a start joins it', async () => {
    const script = `echo run >>${directory}/runs; echo before; while [ ! -e ${directory}/go ]; do sleep 0.02; done; echo after; exit 7`
    const first = await client.startProcess('p', { argv: sh(script) })
    await expect.poll(async () => (await collect('p', { follow: false })).stdout).toBe('before\n')
    await crash()
    await restart()
    const second = await client.startProcess('p', { argv: sh(script) })
    expect(second.pid).toBe(first.pid)
    await client.writeFile(join(directory, 'go'), '')
    expect(await collect('p')).toMatchObject({ stdout: 'before\nafter\n', exit: { exit_code: 7 } })
    expect(await readFile(join(directory, 'runs'), 'utf8')).toBe('run\n')
  })

  it('knows an end that came while there was no daemon, and the open stdin of one that goes on', async () => {
    await client.startProcess('ends', { argv: sh(`echo $$ >${directory}/pid; echo out; sleep 0.3; exit 9`) })
    const { pid } = await client.startProcess('reads', { argv: ['cat'], stdin: 'open' })
    await client.writeStdin('reads', 'one ')
    await crash()
    await expect.poll(async () => isRunning(Number(await readFile(join(directory, 'pid'), 'utf8')))).toBe(false)
    expect(isRunning(pid!)).toBe(true)
    await restart()
    expect(await client.waitForExit('ends')).toMatchObject({ exit_code: 9 })
    await client.writeStdin('reads', 'two', { eof: true })
    expect(await collect('reads')).toMatchObject({ stdout: 'one two', exit: { exit_code: 0 } })
  })

  it('a reader of the client reads on across the restart, without gap or repeat', async () => {
    await client.startProcess('p', {
      argv: sh(`i=0; while [ $i -lt 300 ]; do echo $i; i=$((i+1)); sleep 0.005; done`),
    })
    // The address changes with the port, so the client finds the current one at every request.
    const roaming = new DaemonClient({ fetch: (url, init) => fetch(url.replace('http://sandbox', daemon.url), init) })
    let text = ''
    let crashed: Promise<void> | undefined
    for await (const event of roaming.readOutput('p')) {
      if (event.type !== 'data') break
      text += Buffer.from(event.data).toString()
      crashed ??= crash().then(() => restart())
    }
    await crashed
    expect(text).toBe(Array.from({ length: 300 }, (_, i) => `${i}\n`).join(''))
  })

  it('reports a process that was killed together with its wrapper as lost', async () => {
    const { pid } = await client.startProcess('p', { argv: ['sleep', '60'] })
    const wrapper = Number(await readFile(join(directory, 'state', 'processes', 'p', 'wrapper'), 'utf8'))
    await crash()
    process.kill(wrapper, 'SIGKILL')
    process.kill(pid!, 'SIGKILL')
    await restart()
    expect(await client.waitForExit('p')).toMatchObject({ exit_code: -1, message: expect.stringContaining('killed') })
  })
})

describe('memory', () => {
  inItsOwnProcess(['--max-old-space-size=48'])

  it('S0-C17: streams 200 MB of output and files of 100 MB within 128 Mi', async () => {
    const bytes = 200 * 1024 * 1024
    await client.startProcess('p', { argv: sh(`head -c ${bytes} /dev/zero`) })
    let received = 0
    for await (const event of client.readOutput('p')) if (event.type === 'data') received += event.data.length
    expect(received).toBe(bytes)

    const chunk = new Uint8Array(256 * 1024)
    async function* chunks() {
      for (let i = 0; i < 400; i += 1) yield chunk
    }
    await client.writeFile(join(directory, 'big'), chunks())
    let read = 0
    for await (const part of client.readFileStream(join(directory, 'big'))) read += part.length
    expect(read).toBe(400 * chunk.length)

    const status = await readFile(`/proc/${daemon.process.pid}/status`, 'utf8')
    const peakKib = Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1])
    expect(peakKib).toBeLessThan(128 * 1024)
  })
})

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDaemon, type Daemon } from '@corral/daemon'
import { silentLogger, systemClock } from '@corral/ports'
import { DaemonClient } from '@corral/protocol'
import { temporaryDirectory } from '@corral/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runCommand } from '../../packages/tasks/src/sandbox/run-command.js'

const timeoutMs = 5 * 60_000
const { signal } = new AbortController()
let directory: string
let inside: Daemon
let daemon: DaemonClient
/** Ends every connection to the daemon, as its death does. */
let cut: AbortController
const release: (() => PromiseLike<unknown>)[] = []

const start = (state = 'daemon'): Promise<Daemon> =>
  createDaemon({
    workDir: directory,
    stateDir: join(directory, state),
    clock: systemClock,
    log: silentLogger,
    env: { PATH: process.env.PATH, HOME: directory, CORRAL_WORKSPACE: directory },
    defaultCwd: directory,
    onRunnerFinished: () => undefined,
  })

const shell = (script: string) => ({ argv: ['/bin/sh', '-c', script], keep: 'memory' as const })

beforeEach(async () => {
  const scratch = temporaryDirectory()
  directory = join(scratch.path, 'sandbox')
  mkdirSync(directory)
  inside = await start()
  cut = new AbortController()
  daemon = new DaemonClient({
    fetch: async (url, init) => {
      const { body, status, headers } = await inside.fetch(new Request(url, init))
      return new Response(body?.pipeThrough(new TransformStream(), { signal: cut.signal }), { status, headers })
    },
  })
  release.push(
    () => scratch[Symbol.asyncDispose](),
    () => inside.close(),
  )
})

afterEach(async () => {
  for (const each of release.splice(0).reverse()) await each()
})

describe('a short command of a task, kept in the memory of the daemon', () => {
  it('ends although it says more than the daemon holds', async () => {
    const script = 'head -c 9000000 /dev/zero | tr "\\0" x; echo; echo the end'
    const { exit, stdout } = await runCommand(daemon, 'large', shell(script), { signal, timeoutMs })
    expect(exit.exit_code).toBe(0)
    expect(stdout.endsWith('the end')).toBe(true)
  })

  it('is joined by a platform that started anew, however much the one before it had read', async () => {
    const gate = join(directory, 'go-on')
    const script = `echo once >> "${directory}/runs"; head -c 9000000 /dev/zero | tr "\\0" x
      until [ -e "${gate}" ]; do sleep 0.01; done; echo; echo the end; exit 3`
    let seenBytes = 0
    const first = new AbortController()
    const running = runCommand(daemon, 'joined', shell(script), {
      signal: first.signal,
      timeoutMs,
      onOutput: async (_, data) => {
        seenBytes += data.length
        if (seenBytes === 9_000_000) first.abort(new Error('the platform was killed'))
      },
    })
    await expect(running).rejects.toThrow()
    const second = runCommand(daemon, 'joined', shell(script), { signal, timeoutMs, isRepeatable: true })
    writeFileSync(gate, '')
    const { exit, tail } = await second
    expect({ code: exit.exit_code, tail: tail.slice(-7) }).toEqual({ code: 3, tail: 'the end' })
    expect(readFileSync(join(directory, 'runs'), 'utf8')).toBe('once\n')
  })

  it('runs again where the daemon ended under it and it may be repeated', async () => {
    const gate = join(directory, 'go-on')
    const script = `echo run >> "${directory}/runs"; echo begun; [ -e "${gate}" ] || exec sleep 1000; echo the end`
    const running = runCommand(daemon, 'again', shell(script), {
      signal,
      timeoutMs,
      isRepeatable: true,
      onOutput: async () => {
        if (readFileSync(join(directory, 'runs'), 'utf8') !== 'run\n') return
        writeFileSync(gate, '')
        const killed = inside
        release.push(() => killed.close())
        inside = await start('daemon-2')
        cut.abort()
        cut = new AbortController()
      },
    })
    const { exit, stdout } = await running
    expect({ code: exit.exit_code, stdout }).toEqual({ code: 0, stdout: 'begun\nthe end' })
    expect(readFileSync(join(directory, 'runs'), 'utf8')).toBe('run\nrun\n')
  })
})

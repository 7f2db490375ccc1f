import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startProgram } from '../tools/oracle/program.js'

const oracle = join(dirname(fileURLToPath(import.meta.url)), '../tools/oracle')
const script = `
  import { startProgram } from ${JSON.stringify(join(oracle, 'program.ts'))}
  const program = startProgram({ name: 'sleep', path: 'sleep', args: ['1000'], logFile: process.argv[1] })
  process.stdout.write(String(program.pid) + '\\n')
  setInterval(() => {}, 1000)
`

describe('a program of the control plane', () => {
  let directory = ''
  let runner: ChildProcess | undefined
  let pid = 0
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'corral-program-'))
  })
  afterEach(() => {
    runner?.kill('SIGKILL')
    if (pid && isRunning(pid)) process.kill(pid, 'SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  })

  it.each(['SIGTERM', 'SIGINT', 'SIGKILL'] as const)('ends with a runner that is ended by %s', async (signal) => {
    const args = ['--import', 'tsx', '--input-type=module', '-e', script, join(directory, 'log')]
    runner = spawn(process.execPath, args, { cwd: oracle, stdio: ['ignore', 'pipe', 'inherit'] })
    pid = await new Promise<number>((resolve) => {
      runner?.stdout?.once('data', (chunk: Buffer) => resolve(Number(chunk.toString())))
    })
    expect(isRunning(pid)).toBe(true)
    runner.kill(signal)
    await expect.poll(() => isRunning(pid)).toBe(false)
  })

  it('is ended by stop, and says how', async () => {
    const program = startProgram({ name: 'sleep', path: 'sleep', args: ['1000'], logFile: join(directory, 'log') })
    pid = program.pid
    expect(program.ending()).toBeUndefined()
    await program.stop()
    expect(program.ending()).toBe('ended by SIGTERM')
  })
})

/** A process that its parent has not reaped is gone all the same. */
function isRunning(pid: number): boolean {
  const path = `/proc/${pid}/stat`
  return existsSync(path) && !/\) Z /.test(readFileSync(path, 'utf8'))
}

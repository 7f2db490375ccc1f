// Runs a command and tells what it left behind: processes, mounts below the directory for temporary files, control
// groups. Ends with the command's exit code, or with 1 when something is left: `tsx scripts/leftovers.ts npm test`.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { takeSnapshot, whatIsLeft } from './what-is-left.js'

/** What ends with its parent needs a moment for it. */
const PATIENCE_MS = 10_000

const [program, ...parameters] = process.argv.slice(2)
if (program === undefined) {
  process.stderr.write('leftovers: name the command to run\n')
  process.exit(2)
}
const mark = `CORRAL_RUN=${randomUUID()}`
const paths = { proc: '/proc', controlGroups: '/sys/fs/cgroup', temporary: realpathSync(tmpdir()) }
const isLinux = process.platform === 'linux'
const before = isLinux ? takeSnapshot(paths, '') : undefined
const code = await run(program, parameters)
const left = before ? await settled(before) : []
for (const line of left) process.stderr.write(`left behind: ${line}\n`)
process.exit(code === 0 && left.length > 0 ? 1 : code)

function run(command: string, words: readonly string[]): Promise<number> {
  const env = { ...process.env, CORRAL_RUN: mark.slice(mark.indexOf('=') + 1) }
  const child = spawn(command, words, { stdio: 'inherit', env })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (exitCode, signal) => resolve(exitCode ?? 128 + constants.signals[signal ?? 'SIGKILL']))
  })
}

async function settled(start: NonNullable<typeof before>): Promise<string[]> {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    const lines = whatIsLeft(start, takeSnapshot(paths, mark))
    if (lines.length === 0 || Date.now() > deadline) return lines
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

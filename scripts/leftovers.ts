// Runs a command and tells what it left behind: processes, mounts below the directory for temporary files, control
// groups. Ends with the command's exit code, or with 1 when something is left: `tsx scripts/leftovers.ts npm test`.
import { randomUUID } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { runInGroup } from './run-in-group.js'
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
const code = await runInGroup(program, parameters, { ...process.env, CORRAL_RUN: mark.slice(mark.indexOf('=') + 1) })
const left = before ? await settled(before) : []
for (const line of left) process.stderr.write(`left behind: ${line}\n`)
process.exit(code === 0 && left.length > 0 ? 1 : code)

async function settled(start: NonNullable<typeof before>): Promise<string[]> {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    const lines = whatIsLeft(start, takeSnapshot(paths, mark))
    if (lines.length === 0 || Date.now() > deadline) return lines
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

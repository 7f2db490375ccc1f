// Runs a command beside busy loops and ends with its exit code: `tsx scripts/beside-load.ts 8 node_modules/.bin/vitest run ...`.
// The loops end with it, whatever happens to it: they are ended by their process ids, and by themselves when this is killed.
import { startBusyLoops } from './busy-loops.js'
import { runInGroup } from './run-in-group.js'

const [count = '', program, ...parameters] = process.argv.slice(2)
if (!/^\d+$/.test(count) || program === undefined) {
  process.stderr.write('beside-load: give the number of loops and the command to run\n')
  process.exit(2)
}
process.exitCode = await besideLoad(Number(count), program, parameters)

async function besideLoad(loops: number, command: string, words: readonly string[]): Promise<number> {
  await using busy = await startBusyLoops(loops)
  process.stderr.write(`beside ${busy.pids.length} busy loops: ${[command, ...words].join(' ')}\n`)
  return await runInGroup(command, words)
}

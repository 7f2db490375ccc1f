#!/usr/bin/env node
// Runs `corral up` from the sources and starts it again when they change. Tasks and their sandboxes live on across a restart.
//   npm run dev -- --data-dir /tmp/corral-dev --port 8080
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, watch } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const program = join(root, 'packages/cli/dist/bundle/corral.js')
const settleMs = 150
const say = (text) => process.stderr.write(`dev: ${text}\n`)

let running
let timer
let isEnding = false
/** Restarts follow one another: a change during one leads to exactly one more. */
let turn = Promise.resolve()

for (const folder of readdirSync(join(root, 'packages')))
  for (const part of ['src', 'native'])
    if (existsSync(join(root, 'packages', folder, part)))
      watch(join(root, 'packages', folder, part), { recursive: true }, onChange)

for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => {
    isEnding = true
    turn = turn.then(stop).then(() => process.exit(0))
  })
turn = turn.then(restart)

function onChange() {
  clearTimeout(timer)
  timer = setTimeout(() => {
    turn = turn.then(restart)
  }, settleMs)
}

async function restart() {
  if (isEnding) return
  const built = spawnSync(process.execPath, [join(root, 'scripts/setup.mjs')], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (built.status !== 0) return say('the build failed; what ran before goes on, waiting for the next change')
  await stop()
  if (isEnding) return
  // In a group of its own: Ctrl-C would reach it from the terminal too, and a second signal ends it at once.
  const child = spawn(process.execPath, [program, 'up', ...process.argv.slice(2)], { stdio: 'inherit', detached: true })
  running = child
  child.once('exit', (code) => {
    if (running === child) {
      running = undefined
      if (!isEnding) say(`corral up ended with exit code ${code}; waiting for the next change`)
    }
  })
}

async function stop() {
  const child = running
  running = undefined
  if (!child || child.exitCode !== null) return
  await new Promise((resolve) => {
    child.once('exit', resolve)
    child.kill('SIGTERM')
  })
}

import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CradleConfig, cradleLines, cradleProtocolVersion, cradleSocketName } from '../protocol/messages.js'
import type { CellStrategy } from './cell-strategy.js'
import { Cgroup, detectCgroups } from './cgroups.js'
import { lockCradle } from './cradle-lock.js'
import { CradleServer } from './cradle-server.js'
import { findKeepApart } from './keep-apart.js'
import { PodHost } from './pod-host.js'
import { reapChildren } from './process-table.js'
import { StateFiles } from './state-files.js'
import { sweep } from './sweep.js'

const lookoutMs = 1_000
/** What the main that started it has at least to connect, however busy the machine is. */
const firstMainMs = 60_000
/** Node's timers hold no more than this. */
const longestTimerMs = 2 ** 31 - 1
const childrenEndMs = 1_000

/**
 * The cradle: a small process of its own that holds all cells of a data directory. It outlives the platform's main
 * process; the next main that connects adopts what runs here. Returns at once where the directory has a cradle already.
 */
export async function runCradle(config: CradleConfig, strategy: CellStrategy): Promise<void> {
  process.title = 'corral-cradle'
  const directory = join(config.dataDir, 'cradle')
  const socketDirectory = join(directory, 's')
  mkdirSync(socketDirectory, { recursive: true, mode: 0o700 })
  // Sockets are named relative to here, so that a long data directory does not exceed what a socket address holds.
  process.chdir(directory)
  // The main that waits for the line may be gone.
  process.stdout.on('error', () => {})
  if (!(await lockCradle(config.dataDir))) {
    process.stdout.write(cradleLines.locked)
    return
  }
  writeFileSync('cradle.pid', `${process.pid}\n`)

  const groupName = `corral-${createHash('sha256').update(config.dataDir).digest('hex').slice(0, 10)}`
  const cgroups = detectCgroups(groupName)
  const keepApart = findKeepApart(groupName, cgroups)
  const stateFiles = new StateFiles(directory)
  await sweep({ stateFiles, cgroups, now: () => new Date() })
  for (const name of readdirSync(socketDirectory)) rmSync(join(socketDirectory, name), { force: true })

  const pods = new PodHost({
    config,
    strategy,
    cgroups,
    keepApart,
    stateFiles,
    socketDirectory,
    onExit: (key, exit) => server.announceExit(key, exit),
    onNetwork: (report) => server.announceNetwork(report),
    onOom: (report) => server.announceOom(report),
    onBraked: (podUid, reason) => server.announceBraked(podUid, reason),
    now: () => new Date(),
  })
  let idleTimer: NodeJS.Timeout | undefined
  let lookout: NodeJS.Timeout | undefined
  let keepUntilMs = 0
  let endsWithMain = false
  let isEnding = false
  const end = async (): Promise<void> => {
    if (isEnding) return
    isEnding = true
    server.close()
    try {
      await pods.close()
      await reapChildren(childrenEndMs)
      new Cgroup(cgroups, '').remove()
      keepApart?.close()
      rmSync(join(directory, cradleSocketName), { force: true })
      rmSync(join(directory, 'cradle.pid'), { force: true })
    } finally {
      process.exit(0)
    }
  }
  const awaitMain = (leastMs = 0): void => {
    const idleMs = Math.max(config.idleShutdownMs, keepUntilMs - Date.now(), leastMs)
    idleTimer = setTimeout(() => void end(), Math.min(idleMs, longestTimerMs))
    // Without its socket, or the data directory, no main can reach this cradle again.
    lookout = setInterval(() => {
      if (!existsSync(join(directory, cradleSocketName))) void end()
    }, lookoutMs)
  }
  const server = new CradleServer({
    hello: { version: cradleProtocolVersion, tier: config.tier, pid: process.pid, limits: cgroups.limits },
    pods,
    onMainsChanged: (count) => {
      clearTimeout(idleTimer)
      clearInterval(lookout)
      if (count > 0) return
      if (endsWithMain) void end()
      else awaitMain()
    },
    onKeep: (untilMs) => {
      keepUntilMs = untilMs
    },
    onEndWithMain: () => {
      endsWithMain = true
    },
    onShutdown: () => void end(),
  })
  process.on('SIGTERM', () => void end())
  process.on('SIGINT', () => void end())
  process.on('SIGHUP', () => {})
  rmSync(cradleSocketName, { force: true })
  await server.listen(cradleSocketName)
  awaitMain(firstMainMs)
  process.stdout.write(cradleLines.ready)
}

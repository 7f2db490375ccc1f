import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Cgroup, detectCgroups } from './cgroups.js'
import { Journal } from './journal.js'
import { PodHost } from './pod-host.js'
import { type CradleConfig, cradleProtocolVersion, cradleSocketName } from './protocol.js'
import { CradleServer } from './server.js'
import { sweep } from './sweep.js'

const lookoutMs = 1_000

/**
 * The cradle: a small process of its own that holds all cells of a data directory. It outlives the platform's main
 * process; whoever connects next adopts what runs here.
 */
async function main(): Promise<void> {
  const config = JSON.parse(process.argv[2] ?? '') as CradleConfig
  process.title = 'corral-cradle'
  const directory = join(config.dataDir, 'cradle')
  const socketDirectory = join(directory, 's')
  mkdirSync(socketDirectory, { recursive: true, mode: 0o700 })
  // Sockets are named relative to here, so that a long data directory does not exceed what a socket address holds.
  process.chdir(directory)

  const cgroups = detectCgroups(`corral-${createHash('sha256').update(config.dataDir).digest('hex').slice(0, 10)}`)
  const journal = new Journal(directory)
  await sweep({ journal, cgroups, now: () => new Date() })
  for (const name of readdirSync(socketDirectory)) rmSync(join(socketDirectory, name), { force: true })

  const pods = new PodHost({
    config,
    cgroups,
    journal,
    socketDirectory,
    onExit: (key, exit) => server.announceExit(key, exit),
    now: () => new Date(),
  })
  let lonely: NodeJS.Timeout | undefined
  let lookout: NodeJS.Timeout | undefined
  let isEnding = false
  const end = async (): Promise<void> => {
    if (isEnding) return
    isEnding = true
    server.close()
    try {
      await pods.close()
      new Cgroup(cgroups, '').remove()
      rmSync(join(directory, cradleSocketName), { force: true })
      rmSync(join(directory, 'cradle.pid'), { force: true })
    } finally {
      process.exit(0)
    }
  }
  const awaitMain = (): void => {
    lonely = setTimeout(() => void end(), config.lonelyAfterMs)
    // Whoever removed our socket, or the whole data directory, has made it impossible to ever come back.
    lookout = setInterval(() => {
      if (!existsSync(join(directory, cradleSocketName))) void end()
    }, lookoutMs)
  }
  const server = new CradleServer({
    hello: { version: cradleProtocolVersion, tier: config.tier, pid: process.pid, limits: cgroups.limits },
    pods,
    onMainsChanged: (count) => {
      clearTimeout(lonely)
      clearInterval(lookout)
      if (count === 0) awaitMain()
    },
    onShutdown: () => void end(),
  })
  process.on('SIGTERM', () => void end())
  process.on('SIGINT', () => void end())
  process.on('SIGHUP', () => {})
  rmSync(cradleSocketName, { force: true })
  await server.listen(cradleSocketName)
  writeFileSync('cradle.pid', `${process.pid}\n`)
  awaitMain()
  // Whoever started us waits for this line.
  process.stdout.write('ready\n')
}

main().catch((error: unknown) => {
  process.stderr.write(`cradle: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  process.exit(1)
})

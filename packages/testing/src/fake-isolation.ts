import { type ChildProcess, spawn } from 'node:child_process'
import { appendFileSync, mkdirSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname } from 'node:path'
import { type Cell, type CellExit, type Isolation, IsolationError, type LaunchPlan, type PodPlan } from '@corral/node'
import type { ByteStream, DuplexProcess, ProcessExit } from '@corral/ports'

/** An isolation for tests of what lies above it: real processes with the plan's mounts, and nothing held back. */
export interface FakeIsolation extends Isolation {
  readonly pods: ReadonlyMap<string, PodPlan>
  readonly launched: readonly LaunchPlan[]
  /** Ends the cell as if its keeper had died: the exit says `lost`. */
  lose(podUid: string, container: string): void
  /** A second isolation on the same cells, as a restarted node sees them. */
  reopen(): FakeIsolation
}

interface FakeCell extends Cell {
  lose(): void
  readonly hasExited: boolean
}

interface World {
  pods: Map<string, PodPlan>
  cells: Map<string, FakeCell>
  launched: LaunchPlan[]
}

export function fakeIsolation(world: World = { pods: new Map(), cells: new Map(), launched: [] }): FakeIsolation {
  const cellsOf = (podUid: string): FakeCell[] => [...world.cells.values()].filter((cell) => cell.podUid === podUid)
  return {
    tier: 'process',
    pods: world.pods,
    launched: world.launched,
    probe: async () => ({ tier: 'process', usable: true, limits: 'none', checks: [] }),
    async preparePod(plan) {
      world.pods.set(plan.podUid, plan)
    },
    async setNetwork(podUid, reach) {
      const pod = world.pods.get(podUid)
      if (!pod) throw new Error(`pod ${podUid} is not prepared`)
      world.pods.set(podUid, { ...pod, ...reach })
      return { restricted: false }
    },
    async setLimits(podUid, { pod: limits }) {
      const pod = world.pods.get(podUid)
      if (!pod) throw new Error(`pod ${podUid} is not prepared`)
      world.pods.set(podUid, { ...pod, limits })
      return { enforced: false }
    },
    async attachSnapshot() {
      throw new IsolationError('Unsupported', 'pods of this isolation have no mounts of their own')
    },
    async launch(plan) {
      const pod = world.pods.get(plan.podUid)
      if (!pod) throw new Error(`pod ${plan.podUid} is not prepared`)
      world.launched.push(plan)
      const cell = startCell(plan, pod.hostUid)
      world.cells.set(`${plan.podUid}/${plan.container}`, cell)
      return cell
    },
    watchNetwork() {
      // Its pods have the network of this machine: nothing is refused to them.
    },
    adopt: async () => [...world.cells.values()].filter((cell) => !cell.hasExited),
    async releasePod(podUid) {
      for (const cell of cellsOf(podUid)) {
        await cell.kill()
        await cell.exited
        world.cells.delete(`${podUid}/${cell.container}`)
      }
      world.pods.delete(podUid)
    },
    async keepUntil() {},
    async close({ endPods }) {
      if (endPods) for (const podUid of [...world.pods.keys()]) await this.releasePod(podUid)
    },
    lose: (podUid, container) => world.cells.get(`${podUid}/${container}`)?.lose(),
    reopen: () => fakeIsolation(world),
  }
}

function startCell(plan: LaunchPlan, hostUid: number): FakeCell {
  const startedAt = new Date().toISOString()
  let isLost = false
  const main = spawnInside(plan, hostUid, plan.argv, { stdin: plan.stdin })
  mkdirSync(dirname(plan.logPath), { recursive: true })
  main.stdout?.on('data', (chunk: Buffer) => appendFileSync(plan.logPath, criLines('stdout', chunk)))
  main.stderr?.on('data', (chunk: Buffer) => appendFileSync(plan.logPath, criLines('stderr', chunk)))
  let hasExited = false
  const exited = exitOf(main).then((exit): CellExit => {
    hasExited = true
    return {
      exitCode: exit.exitCode,
      oomKilled: false,
      startedAt,
      finishedAt: new Date().toISOString(),
      ...(isLost ? { lost: true } : {}),
    }
  })
  return {
    podUid: plan.podUid,
    container: plan.container,
    attempt: plan.attempt,
    startedAt,
    exited,
    knownExit: undefined,
    get hasExited() {
      return hasExited
    },
    exec: async ({ command, stdin, signal }) =>
      processFrom(spawnInside(plan, hostUid, command, { stdin, ...(signal ? { signal } : {}) })),
    attach: async () => processFrom(main),
    dial: (port) => dialLoopback(port),
    async signal(name) {
      if (main.pid) killGroup(main.pid, name)
    },
    async halt() {},
    async kill() {
      if (main.pid && !hasExited) killGroup(main.pid, 'SIGKILL')
    },
    lose() {
      isLost = true
      if (main.pid) killGroup(main.pid, 'SIGKILL')
    },
  }
}

function spawnInside(
  plan: LaunchPlan,
  hostUid: number,
  command: readonly string[],
  options: { stdin: boolean; signal?: AbortSignal },
): ChildProcess {
  const mounts = plan.mounts.flatMap(({ source, target, readOnly }) => [
    readOnly ? '--ro-bind' : '--bind',
    source,
    target,
  ])
  const memory = plan.tmpfs.flatMap(({ target }) => ['--tmpfs', target])
  const links = ['bin', 'sbin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`])
  const flags = ['--tmpfs', '/', ...links, '--proc', '/proc', '--dev', '/dev', ...mounts, ...memory]
  const identity = ['--unshare-user', '--uid', String(plan.uid), '--gid', String(plan.gid), '--chdir', plan.workingDir]
  return spawn('bwrap', [...flags, ...identity, '--die-with-parent', '--', ...command], {
    env: plan.env,
    ...(process.getuid?.() === 0 ? { uid: hostUid, gid: hostUid } : {}),
    detached: true,
    stdio: [options.stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    ...(options.signal ? { signal: options.signal } : {}),
  }).on('error', () => {}) // reported as the exit
}

function exitOf(child: ChildProcess): Promise<ProcessExit> {
  return new Promise((resolve) => {
    child.on('close', (code, signal) => resolve({ exitCode: code ?? (signal === 'SIGTERM' ? 143 : 137) }))
    child.on('error', (error) => resolve({ exitCode: 128, message: error.message }))
  })
}

function processFrom(child: ChildProcess): DuplexProcess {
  return {
    stdout: child.stdout!,
    stderr: child.stderr!,
    writeStdin: (chunk) =>
      new Promise((resolve, reject) => child.stdin!.write(chunk, (error) => (error ? reject(error) : resolve()))),
    endStdin: () => void child.stdin?.end(),
    resize() {},
    kill: () => void (child.pid && killGroup(child.pid, 'SIGKILL')),
    exited: exitOf(child),
  }
}

function dialLoopback(port: number): Promise<ByteStream> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', reject)
    socket.once('connect', () => {
      resolve({
        [Symbol.asyncIterator]: () => socket[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>,
        write: (chunk) => new Promise((done, fail) => socket.write(chunk, (error) => (error ? fail(error) : done()))),
        end: () => void socket.end(),
        destroy: (error) => void socket.destroy(error),
      })
    })
  })
}

function criLines(stream: 'stdout' | 'stderr', chunk: Buffer): string {
  const time = new Date().toISOString().replace('Z', '000000Z')
  const lines = chunk.toString('utf8').split('\n')
  const last = lines.pop()
  const whole = lines.map((line) => `${time} ${stream} F ${line}\n`)
  return [...whole, ...(last ? [`${time} ${stream} P ${last}\n`] : [])].join('')
}

function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch {
    // Already gone.
  }
}

import { spawn } from 'node:child_process'
import { chmodSync, chownSync, closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cellEnvironment, etcContents } from '../packages/node/src/cradle/server/cell-files.js'
import type { LaunchPlan, PodPlan } from '../packages/node/src/isolation/isolation.js'
import { readHostLayout } from '../packages/node/src/tiers/bubblewrap/host-layout.js'
import { bwrapOptions, supervisorTarget } from '../packages/node/src/tiers/bubblewrap/profile.js'
import { seccompProgram } from '../packages/node/src/tiers/bubblewrap/seccomp.js'

/** Starts one process under the boundary of a cell; resolves to the time until its first byte of output. */
export type RawBwrap = () => Promise<number>

const hostUid = 199_998

/**
 * The limit for starting a sandbox: bwrap itself with the profile every cell gets (mounts, namespaces, filter, user),
 * running `echo`, without anything of ours around it.
 */
export function prepareRawBwrap(directory: string): RawBwrap {
  const isRoot = process.getuid?.() === 0
  const at = (name: string): string => join(directory, name)
  for (const name of ['etc', 'home', 'tmp']) mkdirSync(at(name), { recursive: true, mode: 0o755 })
  if (isRoot) for (const name of ['home', 'tmp']) chownSync(at(name), hostUid, hostUid)
  chmodSync(directory, 0o711)
  const { pod, plan } = plans(directory)
  for (const [name, text] of Object.entries(etcContents(pod, plan))) writeFileSync(join(at('etc'), name), text)
  const seccompPath = at('seccomp.bpf')
  writeFileSync(seccompPath, seccompProgram(process.arch === 'arm64' ? 'arm64' : 'x64'))
  const options = bwrapOptions({
    pod,
    plan,
    host: readHostLayout(),
    supervisor: { source: '/bin/echo', target: supervisorTarget },
    etcDirectory: at('etc'),
    homeSource: at('home'),
    tmpSource: at('tmp'),
    disableUserns: true,
    unshareNet: true,
  })
  const drop = isRoot ? ['setpriv', `--reuid=${hostUid}`, `--regid=${hostUid}`, '--clear-groups', '--'] : []
  const command = [...drop, 'bwrap', ...options, '--seccomp', '3', '--', '/bin/echo', 'ready']
  return () => firstOutputMs(command, seccompPath, cellEnvironment(plan, pod))
}

function firstOutputMs(command: readonly string[], seccompPath: string, env: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const seccomp = openSync(seccompPath, 'r')
    const startedAt = performance.now()
    const [program = '', ...args] = command
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe', seccomp], env })
    closeSync(seccomp)
    let tookMs: number | undefined
    let errors = ''
    child.stdout?.once('data', () => {
      tookMs = performance.now() - startedAt
    })
    child.stderr?.on('data', (chunk: Buffer) => {
      errors += chunk.toString()
    })
    child.once('error', reject)
    child.once('close', () => {
      if (tookMs === undefined) reject(new Error(`bwrap printed nothing: ${errors}`))
      else resolve(tookMs)
    })
  })
}

function plans(directory: string): { pod: PodPlan; plan: LaunchPlan } {
  const pod: PodPlan = {
    podUid: 'bench',
    namespace: 'default',
    name: 'bench',
    podIP: '100.127.255.253',
    hostname: 'bench',
    hostUid,
    egress: [],
    services: [],
    limits: {},
    directory,
  }
  const plan: LaunchPlan = {
    podUid: 'bench',
    container: 'main',
    attempt: 0,
    argv: ['/bin/echo', 'ready'],
    env: {},
    workingDir: '/',
    uid: 1000,
    gid: 1000,
    mounts: [],
    tmpfs: [],
    readOnlyRoot: false,
    limits: {},
    stdin: false,
    tty: false,
    logPath: join(directory, 'log'),
  }
  return { pod, plan }
}

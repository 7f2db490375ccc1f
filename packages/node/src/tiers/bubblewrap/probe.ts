import { createHash, randomInt } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { release } from 'node:os'
import { join } from 'node:path'
import type { Isolation, ProbeReport, Tier } from '../../isolation/isolation.js'
import { supervisorTarget } from './profile.js'

/** Long enough for a machine that is busy at this moment: too short a wait would say that it has no sandbox at all. */
const probeTimeoutMs = 20_000
const probeUid = 'corral-probe'
/** Beyond the range pods get theirs from. */
const probeUids = { first: 266_000, count: 4_000 }

type Check = ProbeReport['checks'][number]

/** Whether the kernel lets a cell of this tier exist, and whether everything holds that must hold in it. */
export interface ProbeInput {
  isolation: Isolation
  dataDir: string
  limits(): Promise<ProbeReport['limits']>
  /** Files whose change makes an earlier result worthless: bwrap, the supervisor. */
  programs: readonly string[]
}

/** Each line runs in the cell and must succeed there. */
const assertions: Readonly<Record<string, (marker: string) => string>> = {
  'runs as its own uid': () => '[ "$(id -u)" = 1000 ]',
  'cannot gain privileges': () => 'grep -q "^NoNewPrivs:.1" /proc/self/status',
  'has a system call filter': () => 'grep -q "^Seccomp:.2" /proc/self/status',
  'has no capabilities': () =>
    'grep -q "^CapEff:.0000000000000000" /proc/self/status && grep -q "^CapBnd:.0000000000000000" /proc/self/status',
  'cannot change the kernel': () => '[ ! -w /proc/sys/kernel/core_pattern ] && [ ! -w /proc/sys/vm/swappiness ]',
  'cannot make a user namespace': () => refused('userns', 'unshare -U true'),
  'cannot mount': () => refused('mount', 'mount -t tmpfs none /tmp'),
  'has no VSOCK': () => refused('vsock', 'false'),
  'sees only its own loopback': () => '[ "$(tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d " \\n")" = lo ]',
  'can write to its home': () => ': > "$HOME/.probe"',
  'cannot write to the toolchain': () => '! (: > /usr/.corral-probe) 2>/dev/null',
  'does not see files of the host': isHidden,
}

/** The path of a data directory may have any character in it. */
export function isHidden(path: string): string {
  return `[ ! -e '${path.replaceAll("'", "'\\''")}' ]`
}

/**
 * The compiled supervisor tries it itself. Beside the Node one a program of the system does, where there is one: the
 * filter and the namespaces are the same either way.
 */
function refused(what: string, program: string): string {
  const isCompiled = `[ "$(head -c 4 ${supervisorTarget} | tail -c 3)" = ELF ]`
  const compiled = `${supervisorTarget} attempt ${what} >/dev/null 2>&1; [ $? = 1 ]`
  return `{ if ${isCompiled}; then ${compiled}; else ! ${program} >/dev/null 2>&1; fi; }`
}

/** The script that runs in the probe's cell: one line of output per assertion, `ok` or `no` in front. */
export function probeScript(marker: string): string {
  return Object.entries(assertions)
    .map(([name, test]) => `if ${test(marker)}; then echo "ok ${name}"; else echo "no ${name}"; fi`)
    .join('\n')
}

export function readProbeOutput(output: string): Check[] {
  const lines = new Set(output.split('\n'))
  return Object.keys(assertions).map((name) => ({ name, passed: lines.has(`ok ${name}`) }))
}

/** What to do about a failure, from the text of the error. */
export function remedyFor(problem: string): string {
  if (/setting up uid map|RTM_NEWADDR|user namespace|No permissions to create new namespace/i.test(problem)) {
    return (
      'unprivileged user namespaces are restricted here. On Ubuntu 23.10 and later add an AppArmor profile for bwrap ' +
      '(/etc/apparmor.d/bwrap: "abi <abi/4.0>, profile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }", then ' +
      'apparmor_parser -r) or set kernel.apparmor_restrict_unprivileged_userns=0; elsewhere set ' +
      'kernel.unprivileged_userns_clone=1 and user.max_user_namespaces above 0. Inside a container start it with user ' +
      'namespaces allowed.'
    )
  }
  if (/bwrap.*(ENOENT|No such file)|no bubblewrap/i.test(problem)) {
    return 'install bubblewrap: "apt-get install bubblewrap", "dnf install bubblewrap" or "pacman -S bubblewrap".'
  }
  if (/spawn .*corral-supervisor EACCES/.test(problem)) {
    return 'programs in the data directory may not be run: its file system is mounted with "noexec"; choose another with --data-dir.'
  }
  if (/Can't find source path|Permission denied/i.test(problem)) {
    return 'the data directory must be reachable for other users (mode 0711 on each directory above it); choose another with --data-dir.'
  }
  return 'run "corral doctor" for details.'
}

/**
 * Runs the real profile with all assertions in it, at most twenty seconds. A result is kept in the data directory and
 * used again while kernel, user and programs stay the same; failures are tried anew each time.
 */
export async function probeTier(tier: Tier, input: ProbeInput): Promise<ProbeReport> {
  const cachePath = join(input.dataDir, 'cradle', 'probe.json')
  const key = cacheKey(tier, input.programs)
  const cached = readCache(cachePath, key)
  if (cached) return cached
  const report = await runProbe(tier, input)
  if (report.usable) writeFileSync(cachePath, JSON.stringify({ key, report }), { mode: 0o600 })
  return report
}

async function runProbe(tier: Tier, input: ProbeInput): Promise<ProbeReport> {
  const { isolation, dataDir } = input
  const directory = join(dataDir, 'pods', probeUid)
  const marker = join(dataDir, 'probe-marker')
  const signal = AbortSignal.timeout(probeTimeoutMs)
  const isRoot = process.getuid?.() === 0
  try {
    mkdirSync(directory, { recursive: true })
    chmodSync(join(dataDir, 'pods'), 0o711)
    writeFileSync(marker, '')
    const limits = await input.limits()
    const { checks, snapshots } = await orExpire(signal, async () => {
      await isolation.preparePod({
        podUid: probeUid,
        namespace: 'corral',
        name: 'probe',
        podIP: '100.127.255.254',
        hostname: 'probe',
        hostUid: isRoot ? ownHostUid() : (process.getuid?.() ?? 0),
        egress: [],
        services: [],
        limits: {},
        directory,
      })
      const cell = await isolation.launch({
        podUid: probeUid,
        container: 'probe',
        attempt: 0,
        argv: ['/bin/sh', '-c', 'exec sleep 10'],
        env: {},
        workingDir: '/tmp',
        uid: 1000,
        gid: 1000,
        mounts: [],
        tmpfs: [],
        readOnlyRoot: true,
        limits: {},
        stdin: false,
        tty: false,
        logPath: join(directory, 'probe.log'),
      })
      const command = ['/bin/sh', '-c', probeScript(marker)]
      const running = await cell.exec({ command, stdin: false, stdout: true, stderr: false, tty: false, signal })
      let output = ''
      for await (const chunk of running.stdout) output += Buffer.from(chunk).toString()
      const snapshots = await probeSnapshots(isolation, directory)
      return { snapshots, checks: [...readProbeOutput(output), ownerCheck(join(directory, 'home', '.probe'))] }
    })
    const failed = checks.filter(({ passed }) => !passed)
    if (failed.length === 0) return { tier, usable: true, limits, snapshots, checks }
    return { tier, usable: false, limits, checks, remedy: remedyFor(failed.map(({ name }) => name).join(', ')) }
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    const checks = [{ name: 'a cell starts', passed: false, detail }]
    return { tier, usable: false, limits: 'none', checks, remedy: remedyFor(detail) }
  } finally {
    await isolation.releasePod(probeUid).catch(() => undefined)
    rmSync(directory, { recursive: true, force: true })
    rmSync(marker, { force: true })
  }
}

/** Attaches a small tree to the cell: only the attempt tells what kernel and file system can. */
async function probeSnapshots(isolation: Isolation, directory: string): Promise<NonNullable<ProbeReport['snapshots']>> {
  const source = join(directory, 'tree')
  mkdirSync(source)
  const trees = [{ source, target: '/tmp/tree', directory: join(directory, 'snapshot') }]
  try {
    await isolation.attachSnapshot(probeUid, { name: 'probe', ownerUid: process.getuid?.() ?? 0, trees })
    return { copyOnWrite: true }
  } catch (error) {
    return { copyOnWrite: false, detail: error instanceof Error ? error.message : String(error) }
  }
}

/** One of its own: ending a pod ends every process of its user, and another platform may probe at the same moment. */
function ownHostUid(): number {
  return probeUids.first + randomInt(probeUids.count)
}

/** Seen from outside, because a nested namespace hides its outermost uid from those within. */
function ownerCheck(path: string): Check {
  const owner = statSync(path, { throwIfNoEntry: false })?.uid
  return { name: 'is not root outside', passed: owner !== undefined && owner !== 0, detail: `uid ${owner}` }
}

function orExpire<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error(`no answer within ${probeTimeoutMs} ms`)), { once: true })
    work().then(resolve, reject)
  })
}

function cacheKey(tier: Tier, programs: readonly string[]): string {
  const stamps = programs.map((path) => `${path}:${statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 'absent'}`)
  const facts = [
    tier,
    'with snapshots',
    release(),
    process.getuid?.() ?? '',
    ...stamps,
    JSON.stringify(Object.keys(assertions)),
  ]
  return createHash('sha256').update(facts.join('\n')).digest('hex')
}

function readCache(path: string, key: string): ProbeReport | undefined {
  try {
    const cached = JSON.parse(readFileSync(path, 'utf8')) as { key: string; report: ProbeReport }
    return cached.key === key ? cached.report : undefined
  } catch {
    // None yet, or cut short: the probe runs.
    return undefined
  }
}

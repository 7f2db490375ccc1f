import { execFile, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { homedir, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pidsOfUid } from '../../packages/node/src/cradle/server/process-table.js'
import type { Cell } from '../../packages/node/src/isolation/isolation.js'
import {
  compiledSupervisor,
  hasBubblewrap,
  openWorkbench,
  type Variant,
  type Workbench,
} from '../../packages/node/src/isolation/workbench.test-suite.js'

const supervisor = compiledSupervisor()
const isRoot = process.getuid?.() === 0
/** The compiled supervisor, brought along for what it can attempt, whichever supervisor the cell has. */
const probe = '/opt/probe'

const variants: { variant: Variant; supervises: 'compiled' | 'Node' }[] = [
  { variant: 'bubblewrap + compiled supervisor', supervises: 'compiled' },
  { variant: 'bubblewrap + Node supervisor', supervises: 'Node' },
]

/** Every attack fails inside; the same act outside is the control that shows the attack would be seen to succeed. */
describe.skipIf(!hasBubblewrap || !supervisor).each(variants)(
  'NFR-5: attacks on the sandbox (bubblewrap and a C compiler installed): $variant',
  ({ variant, supervises }) => {
    let bench: Workbench
    let attacker: Cell
    let victim: Cell
    let hostServer: Server
    let port: number
    const marker = join(homedir(), `.corral-attack-${process.pid}`)

    beforeAll(async () => {
      bench = openWorkbench(variant)
      const limits = { pids: 64, memoryBytes: 512 * 1024 * 1024 }
      const mounts = [{ source: supervisor ?? '', target: probe, readOnly: true }]
      attacker = await bench.start('exec sleep 600', { plan: { limits, mounts } })
      victim = await bench.start('echo private > $HOME/secret; exec sleep 600')
      writeFileSync(marker, 'host secret', { mode: 0o644 })
      writeFileSync(join(bench.dataDir, 'kubeconfig'), 'token: abc', { mode: 0o600 })
      hostServer = createServer((socket) => socket.end('reached'))
      await new Promise<void>((resolve) => hostServer.listen(0, '0.0.0.0', resolve))
      port = (hostServer.address() as { port: number }).port
    })
    afterAll(async () => {
      hostServer.close()
      rmSync(marker, { force: true })
      await bench[Symbol.asyncDispose]()
    })

    const inside = (script: string): Promise<{ stdout: string; exitCode: number }> => bench.run(attacker, script)
    const outsideShell = (script: string): string =>
      spawnSync('/bin/sh', ['-c', script], { encoding: 'utf8', timeout: 240_000 }).stdout

    const files = [
      { what: 'the password file', path: () => '/etc/shadow', needsRoot: true },
      { what: 'a file in the home directory', path: () => marker, needsRoot: false },
      { what: 'the kubeconfig', path: () => join(bench.dataDir, 'kubeconfig'), needsRoot: false },
      {
        what: 'another sandbox’s files',
        path: () => join(bench.dataDir, 'pods', victim.podUid, 'home', 'secret'),
        needsRoot: false,
      },
      {
        what: 'the cradle’s journal',
        path: () => {
          const journal = join(bench.dataDir, 'cradle', 'journal')
          return join(journal, readdirSync(journal)[0] ?? '')
        },
        needsRoot: false,
      },
    ]
    it.each(files)('reading $what', async ({ path, needsRoot }) => {
      for (const prefix of ['', '/proc/1/root', '/proc/self/root', '/proc/1/cwd']) {
        expect(await inside(`cat '${prefix}${path()}'`)).toMatchObject({ stdout: '' })
      }
      if (!needsRoot || isRoot) expect(outsideShell(`cat '${path()}'`)).not.toBe('')
    })

    it.each(['/proc/sys/vm/swappiness', '/proc/sys/kernel/core_pattern'])('writing to %s', async (path) => {
      const before = readFileSync(path, 'utf8')
      expect((await inside(`cat ${path} > /tmp/value; cat /tmp/value > ${path}`)).exitCode).not.toBe(0)
      if (isRoot) expect(() => writeFileSync(path, before)).not.toThrow()
      expect(readFileSync(path, 'utf8')).toBe(before)
    })

    it('connecting to the host, its API server’s port included, on any of its addresses', async () => {
      const own = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
      const addresses = [
        '127.0.0.1',
        '0.0.0.0',
        ...own.filter(({ family }) => family === 'IPv4').map((each) => each.address),
      ]
      const script = (address: string): string =>
        `require("net").connect(${port},"${address}").on("data",d=>process.stdout.write(d)).on("error",e=>process.exit(1))`
      for (const address of new Set(addresses)) {
        expect((await inside(`node -e '${script(address)}'`)).stdout, `inside, ${address}`).toBe('')
      }
      expect(await outside(script('127.0.0.1'))).toBe('reached')
    })

    it('connecting to an abstract unix socket of the host', async () => {
      const name = `corral-attack-${process.pid}`
      const server = createServer((socket) => socket.end('reached'))
      await new Promise<void>((resolve) => server.listen(`\0${name}`, resolve))
      const script = `require("net").connect("\\0${name}").on("data",d=>process.stdout.write(d)).on("error",()=>process.exit(1))`
      expect((await inside(`node -e '${script}'`)).stdout).toBe('')
      expect(await outside(script)).toBe('reached')
      server.close()
    })

    it.each([
      { what: 'a user namespace', attempt: 'userns', around: [] },
      { what: 'a mount namespace', attempt: 'mountns', around: [] },
      { what: 'a mount', attempt: 'mount', around: ['unshare', '--mount'] },
      { what: 'taking /proc away', attempt: 'umount', around: ['unshare', '--mount'] },
      { what: 'a VSOCK socket', attempt: 'vsock', around: [] },
      { what: 'listening to device events of the host', attempt: 'device-events', around: [] },
      { what: 'asynchronous requests, of which all share one number', attempt: 'asynchronous-requests', around: [] },
    ])('$what', async ({ attempt, around }) => {
      expect((await inside(`${probe} attempt ${attempt}`)).exitCode).toBe(1)
      if (!isRoot) return
      const [program = '', ...args] = [...around, supervisor ?? '', 'attempt', attempt]
      const control = spawnSync(program, args, { encoding: 'utf8' })
      // A kernel without VSOCK refuses it to every process.
      if (attempt !== 'vsock' || !control.stdout.includes('not supported')) expect(control.status).toBe(0)
    })

    it('asks for its own routes, which it may', async () => {
      expect((await inside(`${probe} attempt routes`)).exitCode).toBe(0)
    })

    it.skipIf(!isRoot)('a fork bomb stops at its limit and leaves the others alone', async () => {
      const pod = bench.pod()
      // A shell that cannot fork ends: the bomb is a shell of its own, so that what it started stays to be counted.
      const bombing = '(i=0; while [ $i -lt 300 ]; do sleep 60 & i=$((i+1)); done; echo all); exec sleep 60'
      const bomb = await bench.start(bombing, { pod, plan: { limits: { pids: 40 } } })
      const pids = (): number => pidsOfUid(pod.hostUid).length
      await expect.poll(pids).toBeGreaterThan(20)
      expect(pids()).toBeLessThanOrEqual(40)
      expect(await bench.run(victim, 'echo fine')).toMatchObject({ stdout: 'fine\n' })
      await bomb.kill()
      const log = readFileSync(join(bench.dataDir, 'pods', bomb.podUid, 'logs', 'main.log'), 'utf8')
      expect(log).not.toContain('stdout F all')
      const control = outsideShell('i=0; while [ $i -lt 100 ]; do sleep 0.01 & i=$((i+1)); done; wait; echo all')
      expect(control).toBe('all\n')
    })

    it('kill -9 of the supervisor', async () => {
      expect(await bench.run(victim, 'sleep 60 & kill -9 $!; wait $!; echo $?')).toMatchObject({ stdout: '137\n' })
      const { stdout } = await bench.run(victim, 'kill -9 1; echo still here')
      expect(stdout).toBe('still here\n')
      expect(await bench.run(victim, 'echo served')).toMatchObject({ stdout: 'served\n' })
    })

    it('kill -9 of a process of another sandbox', async () => {
      const fresh = await bench.start('exec sleep 600')
      const hostPids = outsideShell("ps -eo pid,cmd | awk '/sleep 600/ && !/awk/ {print $1}'").trim().split('\n')
      expect(hostPids.length).toBeGreaterThan(0)
      await bench.run(fresh, `kill -9 ${hostPids.join(' ')} 2>/dev/null; true`)
      expect(await bench.run(victim, 'echo alive')).toMatchObject({ stdout: 'alive\n' })
      await bench.isolation.releasePod(fresh.podUid)
    })

    it('replacing the control socket', async () => {
      const directory = join(bench.dataDir, 'cradle', 's')
      const sockets = readdirSync(directory)
      expect(sockets.length).toBeGreaterThan(0)
      const paths = sockets.map((name) => join(directory, name))
      const cell = await bench.start('exec sleep 600')
      const script = `${paths.map((path) => `rm -f '${path}'; test -e '${path}' && echo there;`).join(' ')} find / /tmp /run /home "$HOME" -xdev -type s 2>/dev/null; true`
      expect(await bench.run(cell, script)).toMatchObject({ stdout: '' })
      expect(paths.every((path) => existsSync(path))).toBe(true)
      expect(await bench.run(victim, 'echo served')).toMatchObject({ stdout: 'served\n' })
      await bench.isolation.releasePod(cell.podUid)
    })

    it.runIf(supervises === 'Node')(
      'kill -9 of the Node supervisor, which its code can do, ends that sandbox and no other',
      async () => {
        const cell = await bench.start('exec sleep 600')
        await bench.run(cell, `kill -9 $(pgrep -o corral-cell)`).catch(() => undefined)
        expect(await cell.exited).toMatchObject({ exitCode: 137 })
        expect(await bench.run(victim, 'echo served')).toMatchObject({ stdout: 'served\n' })
      },
    )

    it.runIf(supervises === 'compiled')('tracing the supervisor or reading its memory', async () => {
      const cell = await bench.start('exec sleep 600')
      expect(await bench.run(cell, 'ls /proc/1/fd 2>/dev/null; true')).toMatchObject({ stdout: '' })
      const open = (path: string): string => `(exec 3<>${path}) 2>/dev/null && echo opened; true`
      expect(await bench.run(cell, open('/proc/1/mem'))).toMatchObject({ stdout: '' })
      expect(await bench.run(cell, 'cat /proc/1/environ 2>/dev/null; true')).toMatchObject({ stdout: '' })
      expect(await bench.run(cell, open('/proc/self/mem'))).toMatchObject({ stdout: 'opened\n' })
      await bench.isolation.releasePod(cell.podUid)
    })

    it('a descriptor of the host left open', async () => {
      const cell = await bench.start('ls -l /proc/self/fd 2>/dev/null | sed -n "s/.* -> //p"')
      await cell.exited
      const log = readFileSync(join(bench.dataDir, 'pods', cell.podUid, 'logs', 'main.log'), 'utf8')
      const targets = log
        .trim()
        .split('\n')
        .map((line) => line.split(' stdout F ')[1] ?? '')
      expect(targets.filter((target) => !/^(pipe:|\/dev\/null|\/proc\/\d+\/fd)/.test(target))).toEqual([])
    })

    it('seeing the platform’s environment or processes', async () => {
      const cell = await bench.start('exec sleep 600', { plan: { env: { ONLY: 'this' } } })
      const { stdout } = await bench.run(
        cell,
        'tr "\\0" "\\n" < /proc/self/environ | cut -d= -f1 | sort | tr "\\n" " "; ls /proc | grep -c "^[0-9]"',
      )
      const [names, count] = [stdout.split(' ').slice(0, -1), Number(stdout.split(' ').at(-1))]
      expect(names.filter((name) => !['HOME', 'HOSTNAME', 'ONLY', 'PATH', 'PWD'].includes(name))).toEqual([])
      expect(count).toBeLessThan(10)
      await bench.isolation.releasePod(cell.podUid)
    })
  },
)

/** Beside this process, not blocking it: the server that answers lives here. */
async function outside(script: string): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', script], { timeout: 240_000 })
  return stdout
}

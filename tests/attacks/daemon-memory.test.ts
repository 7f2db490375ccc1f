import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TemporaryDirectory, temporaryDirectory } from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  bundleDaemon,
  type DaemonBundle,
  type RunningDaemon,
  startDaemon,
} from '../../packages/daemon/src/daemon-process.test-suite.js'
import { compiledSupervisor } from '../../packages/node/src/isolation/workbench.test-suite.js'

/** Root may read every process, so the daemon and the code beside it run as a plain user of their own. */
const user = process.getuid?.() === 0 ? { uid: 54_321, gid: 54_321 } : {}
const secret = 'set-up-secret-7391'
const supervisor = compiledSupervisor()
const library = supervisor && join(supervisor, '..', 'undumpable.node')
/** With Yama a process may open the memory of its own children alone, dumpable or not. */
const yama = (): boolean => {
  try {
    return readFileSync('/proc/sys/kernel/yama/ptrace_scope', 'utf8').trim() !== '0'
  } catch {
    return false // The kernel is built without it.
  }
}

/** What code of the same user gets from a process: which of its files open, and whether a value is found in its memory. */
const probe = `
const fs = require('fs'); const [pid, secret] = process.argv.slice(1); const got = []
const attempt = (name, act) => { try { if (act() !== false) got.push(name) } catch {} }
attempt('environment', () => fs.readFileSync('/proc/' + pid + '/environ', 'utf8'))
attempt('descriptors', () => fs.readdirSync('/proc/' + pid + '/fd').map((fd) => fs.readlinkSync('/proc/' + pid + '/fd/' + fd)))
attempt('program', () => fs.readlinkSync('/proc/' + pid + '/exe'))
attempt('memory', () => {
  const mem = fs.openSync('/proc/' + pid + '/mem', 'r')
  for (const line of fs.readFileSync('/proc/' + pid + '/maps', 'utf8').split('\\n')) {
    const [, from, to] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? []
    if (!from) continue
    const piece = Buffer.alloc(Math.min(parseInt(to, 16) - parseInt(from, 16), 1 << 26))
    try { fs.readSync(mem, piece, 0, piece.length, parseInt(from, 16)) } catch { continue }
    if (piece.includes(secret)) return true
  }
  return false
})
console.log(JSON.stringify(got))
`
const reach = (pid: number | undefined): unknown =>
  JSON.parse(execFileSync(process.execPath, ['-e', probe, String(pid), secret], { ...user, encoding: 'utf8' }))

let bundle: DaemonBundle
let scratch: TemporaryDirectory
beforeAll(async () => {
  scratch = temporaryDirectory()
  chmodSync(scratch.path, 0o755)
  if (user.uid !== undefined) chownSync(scratch.path, user.uid, user.gid)
  bundle = await bundleDaemon()
  chmodSync(bundle.directory, 0o755)
})
afterAll(async () => {
  await bundle.remove()
  await scratch[Symbol.asyncDispose]()
})

/** Starts something with a secret in its environment, as set-up is, and answers the number of a process it goes on with. */
async function setUp({ client }: RunningDaemon): Promise<number> {
  const argv = ['/bin/sh', '-c', 'exec env -u TOKEN sleep 600']
  const { pid } = await client.startProcess('setup', { argv, env: { TOKEN: secret } })
  return pid ?? 0
}

describe.skipIf(!library || process.platform !== 'linux')('a daemon, and code of its own user', () => {
  it('gives neither memory nor environment nor descriptors away, and goes on working', async () => {
    copyFileSync(library!, join(bundle.directory, 'undumpable.node'))
    chmodSync(join(bundle.directory, 'undumpable.node'), 0o755)
    const daemon = await startDaemon(bundle, scratch.path, {}, [], user)
    const child = await setUp(daemon)
    expect(reach(daemon.process.pid)).toEqual([])
    // What the daemon starts belongs to its user as before: debuggers work.
    expect(reach(child)).toEqual(expect.arrayContaining(['environment', 'descriptors', 'program']))
    // Upstream's routes reach files through the daemon's own descriptors in /proc.
    await daemon.client.writeFile(join(scratch.path, 'a.txt'), 'text')
    expect(await (await fetch(`${daemon.url}/download/a.txt`)).text()).toBe('text')
    daemon.process.kill('SIGTERM')
    await daemon.exited
  })
})

describe.skipIf(process.platform !== 'linux')('a daemon without the library', () => {
  it('gives all of them away', async () => {
    const plain = await bundleDaemon()
    chmodSync(plain.directory, 0o755)
    const daemon = await startDaemon(plain, scratch.path, {}, [], user)
    await setUp(daemon)
    expect(reach(daemon.process.pid)).toEqual(['environment', 'descriptors', 'program', ...(yama() ? [] : ['memory'])])
    daemon.process.kill('SIGTERM')
    await daemon.exited
    await plain.remove()
  })
})

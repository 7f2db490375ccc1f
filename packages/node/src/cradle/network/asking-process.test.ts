import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { closeSync, fstatSync, mkdirSync, mkdtempSync, openSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { findAskingProcess, processWords, socketOf } from './asking-process.js'

it.each([
  { argv: ['/usr/bin/node', '/repo/scripts/install.mjs', '--token=x'], words: 'node install.mjs' },
  { argv: ['node', '-e', 'fetch(secret)'], words: 'node' },
  { argv: ['python3', '/usr/bin/pip', 'install'], words: 'python3 pip' },
  { argv: ['curl', 'hunter2'], words: 'curl' },
  { argv: ['sh', 'a b'], words: 'sh' },
  { argv: ['evil\u001b[2J'], words: undefined },
  { argv: [''], words: undefined },
])('a process started as $argv is told as $words', ({ argv, words }) => {
  expect(processWords(Buffer.from(argv.join('\0')))).toBe(words)
})

it('the socket of a port is found in the table of the kernel', () => {
  const table = [
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops',
    '  1: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 11 2 0 0',
    '  2: 0100007F:D431 0100007F:0035 01 00000000:00000000 00:00000000 00000000  1000        0 4711 2 0 0',
  ].join('\n')
  expect(socketOf(table, 0xd431)).toBe('4711')
  expect(socketOf(table, 0xd432)).toBeUndefined()
})

it('the process that has a port is found, and nothing is said of a port nobody has', async () => {
  const netFd = openSync('/proc/self/ns/net', 'r')
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  try {
    await once(socket, 'listening')
    const { port } = socket.address()
    expect(await findAskingProcess(netFd, port)).toMatch(/^node/)
    expect(await findAskingProcess(netFd, 1)).toBeUndefined()
  } finally {
    socket.close()
    closeSync(netFd)
  }
})

it('a process of the namespace that has just ended does not hide the one that has the port', async () => {
  const netFd = openSync('/proc/self/ns/net', 'r')
  const proc = mkdtempSync(join(tmpdir(), 'corral-proc-'))
  try {
    const table = '  1: 0100007F:0035 0100007F:0000 07 00000000:00000000 00:00000000 00000000 1000 0 4711 2 0 0\n'
    for (const pid of ['1', '2']) {
      mkdirSync(join(proc, pid, 'ns'), { recursive: true })
      symlinkSync(`net:[${fstatSync(netFd).ino}]`, join(proc, pid, 'ns/net'))
    }
    for (const directory of ['net', 'fd']) mkdirSync(join(proc, '2', directory))
    writeFileSync(join(proc, '2/net/udp'), table)
    symlinkSync('socket:[4711]', join(proc, '2/fd/3'))
    writeFileSync(join(proc, '2/cmdline'), 'curl\0x\0')
    expect(await findAskingProcess(netFd, 0x35, proc)).toBe('curl')
  } finally {
    closeSync(netFd)
    rmSync(proc, { recursive: true, force: true })
  }
})

import { describe, expect, it } from 'vitest'
import { seccompProgram } from './seccomp.js'
import { type Architecture, syscallTables } from './syscall-numbers.js'

/** Runs a filter the way the kernel does, on the few instructions ours uses. */
function run(program: Buffer, call: { audit: number; number: number; args?: number[] }): number {
  const data = new Map<number, number>([
    [0, call.number],
    [4, call.audit],
    ...(call.args ?? []).map((value, index): [number, number] => [16 + index * 8, value]),
  ])
  let accumulator = 0
  for (let at = 0; ; at++) {
    const code = program.readUInt16LE(at * 8)
    const value = program.readUInt32LE(at * 8 + 4)
    const [jumpTrue, jumpFalse] = [program.readUInt8(at * 8 + 2), program.readUInt8(at * 8 + 3)]
    const jump = (holds: boolean): void => {
      at += holds ? jumpTrue : jumpFalse
    }
    if (code === 0x20) accumulator = (data.get(value) ?? 0) >>> 0
    else if (code === 0x15) jump(accumulator === value)
    else if (code === 0x35) jump(accumulator >= value)
    else if (code === 0x45) jump((accumulator & value) !== 0)
    else if (code === 0x06) return value
    else throw new Error(`instruction ${code}`)
  }
}

const allow = 0x7fff0000
const eperm = 0x50001

describe.each<Architecture>(['x64', 'arm64'])('the seccomp filter on %s', (architecture) => {
  const table = syscallTables[architecture]
  const program = seccompProgram(architecture)
  const judge = (number: number, ...args: number[]): number => run(program, { audit: table.audit, number, args })

  it.each(Object.entries(table.denied))('refuses %s', (_name, number) => {
    expect(judge(number)).toBe(eperm)
  })

  it.each([
    { what: 'a thread', number: table.clone, args: [0x3d0f00], answer: allow },
    { what: 'a plain fork', number: table.clone, args: [17], answer: allow },
    { what: 'a clone with a new user namespace', number: table.clone, args: [0x10000011], answer: eperm },
    { what: 'a clone with a new network', number: table.clone, args: [0x40000000], answer: eperm },
    { what: 'a clone with a new time namespace', number: table.clone, args: [0x80], answer: eperm },
    { what: 'clone3', number: table.clone3, args: [], answer: 0x50000 | 38 },
    { what: 'a unix socket', number: table.socket, args: [1], answer: allow },
    { what: 'an IPv4 socket', number: table.socket, args: [2], answer: allow },
    { what: 'an IPv6 socket', number: table.socket, args: [10], answer: allow },
    { what: 'a netlink socket for routes', number: table.socket, args: [16, 3, 0], answer: allow },
    { what: 'a netlink socket for the list of sockets', number: table.socket, args: [16, 3, 4], answer: allow },
    { what: 'a netlink socket for device events', number: table.socket, args: [16, 3, 15], answer: 0x50000 | 93 },
    { what: 'a netlink socket for audit', number: table.socket, args: [16, 3, 9], answer: 0x50000 | 93 },
    { what: 'asynchronous requests', number: table.ioSetup, args: [1000], answer: 0x50000 | 38 },
    { what: 'a packet socket', number: table.socket, args: [17], answer: 0x50000 | 97 },
    { what: 'a VSOCK socket', number: table.socket, args: [40], answer: 0x50000 | 97 },
    { what: 'asking a terminal for its size', number: table.ioctl, args: [0, 0x5413], answer: allow },
    { what: 'typing into a terminal', number: table.ioctl, args: [0, 0x5412], answer: eperm },
    { what: 'the console’s own requests', number: table.ioctl, args: [0, 0x541c], answer: eperm },
  ])('answers $what', ({ number, args, answer }) => {
    expect(judge(number, ...args)).toBe(answer)
  })

  it('ends a process that speaks another architecture', () => {
    expect(run(program, { audit: 0x40000003, number: 1 })).toBe(0x80000000)
  })
})

it('does not know the second ABI of x86-64', () => {
  const call = { audit: syscallTables.x64.audit, number: 0x40000000 + 165 }
  expect(run(seccompProgram('x64'), call)).toBe(0x50000 | 38)
})

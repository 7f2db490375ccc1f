import { type Architecture, syscallTables } from './syscall-numbers.js'

const load = 0x20
const jumpEqual = 0x15
const jumpAtLeast = 0x35
const jumpAnyBit = 0x45
const answer = 0x06

const allow = 0x7fff0000
const killProcess = 0x80000000
const refuse = (errno: number): number => 0x00050000 | errno
const EPERM = 1
const ENOSYS = 38
const EPROTONOSUPPORT = 93
const EAFNOSUPPORT = 97

/** Where the kernel puts what a filter may look at. */
const at = { number: 0, architecture: 4, argument0: 16, argument1: 24, argument2: 32 }

/** Every namespace a clone could ask for: time, mount, cgroup, uts, ipc, user, pid, net. */
const namespaceFlags = 0x7e020080
/** Unix, IPv4 and IPv6, and netlink below. Anything else, VSOCK before all, is not confined by a network namespace. */
const socketFamilies = [1, 2, 10]
const netlinkFamily = 16
/** Links, addresses and routes, and the list of sockets: of the own network namespace. Device events are the host's. */
const netlinkProtocols = [0, 4]
/** Pushing input into a terminal, and its console twin. */
const deniedIoctls = [0x5412, 0x541c]

type Instruction = readonly [code: number, jumpTrue: number, jumpFalse: number, value: number]

/**
 * The filter every process of a cell runs under, as classic BPF: a deny list over the kernel's own checks. It refuses
 * new namespaces, the mount family, tracing of the kernel, keys, modules, io_uring and foreign socket families.
 * `clone3` answers ENOSYS because its flags lie in memory a filter cannot read; libc then falls back to `clone`. So does
 * `io_setup`: the machine has one number of asynchronous requests for all, and one sandbox could take them from the others;
 * databases then do without, as on a kernel that was built without it.
 */
export function seccompProgram(architecture: Architecture): Buffer {
  const table = syscallTables[architecture]
  const program: Instruction[] = [
    [load, 0, 0, at.architecture],
    [jumpEqual, 1, 0, table.audit],
    [answer, 0, 0, killProcess],
    [load, 0, 0, at.number],
  ]
  if (table.foreignFrom !== undefined) {
    program.push([jumpAtLeast, 0, 1, table.foreignFrom], [answer, 0, 0, refuse(ENOSYS)])
  }
  for (const number of Object.values(table.denied)) {
    program.push([jumpEqual, 0, 1, number], [answer, 0, 0, refuse(EPERM)])
  }
  for (const number of [table.clone3, table.ioSetup]) {
    program.push([jumpEqual, 0, 1, number], [answer, 0, 0, refuse(ENOSYS)])
  }
  program.push(
    ...whenCall(table.clone, [
      [load, 0, 0, at.argument0],
      [jumpAnyBit, 0, 1, namespaceFlags],
      [answer, 0, 0, refuse(EPERM)],
      [answer, 0, 0, allow],
    ]),
    ...whenCall(table.socket, [
      [load, 0, 0, at.argument0],
      [jumpEqual, socketFamilies.length + 2, 0, netlinkFamily],
      ...oneOf(socketFamilies, 1),
      [answer, 0, 0, refuse(EAFNOSUPPORT)],
      [answer, 0, 0, allow],
      [load, 0, 0, at.argument2],
      ...oneOf(netlinkProtocols, 1),
      [answer, 0, 0, refuse(EPROTONOSUPPORT)],
      [answer, 0, 0, allow],
    ]),
    ...whenCall(table.ioctl, [
      [load, 0, 0, at.argument1],
      ...oneOf(deniedIoctls, 1),
      [answer, 0, 0, allow],
      [answer, 0, 0, refuse(EPERM)],
    ]),
    [answer, 0, 0, allow],
  )
  return assemble(program)
}

function whenCall(number: number, body: readonly Instruction[]): Instruction[] {
  return [[jumpEqual, 0, body.length, number], ...body]
}

/** Jumps over `skipped` further instructions when the loaded value is one of `values`. */
function oneOf(values: readonly number[], skipped: number): Instruction[] {
  return values.map((value, index): Instruction => [jumpEqual, values.length - 1 - index + skipped, 0, value])
}

function assemble(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * 8)
  program.forEach(([code, jumpTrue, jumpFalse, value], index) => {
    bytes.writeUInt16LE(code, index * 8)
    bytes[index * 8 + 2] = jumpTrue
    bytes[index * 8 + 3] = jumpFalse
    bytes.writeUInt32LE(value >>> 0, index * 8 + 4)
  })
  return bytes
}

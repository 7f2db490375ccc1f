import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { connect, createServer, Socket } from 'node:net'
import { constants as osConstants, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Duplex } from 'node:stream'
import {
  decodeSpec,
  encodeExit,
  encodeFrame,
  Frame,
  FrameReader,
  headerBytes,
  maxSpecBytes,
  type ProcessSpec,
} from '../protocol/frames.js'
import { prepareNamespace } from './node-netns.js'
import { presentEnd } from './present-end.js'

/**
 * The supervisor for machines without a compiler: the protocol of `native/protocol.h`, spoken by Node. bwrap's own
 * reaper is pid 1 here, so a payload can end this process, and with it its own cell. Terminals come from `script`.
 */

/** How long the clients of ended processes get to take what was said before the cell goes. */
const lastWordsMs = 2_000
/** The cradle always reads, but it may be starved of its turn: its log must not miss how the container ended. */
const controlWordsMs = 60_000
const highWaterBytes = 256 * 1024

let main: { spec: ProcessSpec; child: ChildProcess | undefined } | undefined
let isEnding = false
const server = createServer({ allowHalfOpen: true })
const groups = new Set<number>()

function fail(socket: Duplex, code: string, message: string): void {
  socket.end(encodeFrame(Frame.error, `${code} ${message}`))
}

/** The file a command means, looked up like a shell does; an error code otherwise. */
function resolveCommand(name: string, env: Record<string, string>): { path: string } | { code: string } {
  const candidates = name.includes('/')
    ? [name]
    : (env.PATH ?? '/usr/bin:/bin').split(delimiter).map((directory) => join(directory, name))
  for (const path of candidates) {
    if (!statSync(path, { throwIfNoEntry: false })?.isFile()) continue
    try {
      accessSync(path, constants.X_OK)
      return { path }
    } catch {
      return { code: 'NotExecutable' }
    }
  }
  return { code: 'NotFound' }
}

const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

/** A terminal is made by script(1), which tells its name so that it can be resized. */
function startOnTerminal(spec: ProcessSpec, env: Record<string, string>, cwd: string) {
  const directory = mkdtempSync(join(tmpdir(), '.terminal-'))
  const nameFile = join(directory, 'name')
  // The name comes last: with it a size may be set, which must not be set back.
  const line = `stty cols 80 rows 24; tty > ${quote(nameFile)}; exec ${spec.argv.map(quote).join(' ')}`
  const child = spawn('script', ['-qefc', line, '/dev/null'], {
    cwd,
    env: { ...env, SHELL: '/bin/sh' },
    detached: true,
  })
  child.once('close', () => rmSync(directory, { recursive: true, force: true }))
  const resize = (columns: number, rows: number, attempts = 3_000): void => {
    if (child.exitCode !== null) return
    const name = existsSync(nameFile) ? readFileSync(nameFile, 'utf8').trim() : ''
    if (name) spawnSync('stty', ['-F', name, 'cols', String(columns), 'rows', String(rows)])
    else if (attempts > 0) setTimeout(() => resize(columns, rows, attempts - 1), 10)
  }
  return { child, resize }
}

function start(
  socket: Duplex,
  spec: ProcessSpec,
  isMain: boolean,
): ((type: number, payload: Buffer) => boolean) | undefined {
  const env = { ...(isMain ? {} : main?.spec.env), ...spec.env }
  const cwd = spec.workingDir || main?.spec.workingDir || '/'
  if (isMain) main = { spec, child: undefined }
  const refuse = (code: string, message: string): undefined => {
    fail(socket, code, message)
    if (isMain) end()
  }
  try {
    mkdirSync(cwd, { recursive: true })
  } catch {
    return refuse('NotFound', `enter working directory "${cwd}"`)
  }
  const command = resolveCommand(spec.argv[0] ?? '', env)
  if ('code' in command) return refuse(command.code, `execute "${spec.argv[0]}"`)
  const stdin = spec.stdin ? 'pipe' : 'ignore'
  const { child, resize } = spec.tty
    ? startOnTerminal(spec, env, cwd)
    : {
        child: spawn(command.path, spec.argv.slice(1), {
          cwd,
          env,
          detached: true,
          argv0: spec.argv[0] ?? '',
          stdio: [stdin, 'pipe', 'pipe'],
        }),
        resize: () => {},
      }
  if (isMain && main) main.child = child
  follow(socket, child, isMain)
  return (type, payload) => {
    if (type === Frame.stdin) return child.stdin?.write(payload) ?? true
    if (type === Frame.eof) child.stdin?.end(spec.tty ? '\x04' : '')
    if (type === Frame.resize) resize(payload.readUInt16LE(0), payload.readUInt16LE(2))
    if (type === Frame.signal) child.kill(Number(payload.toString()))
    if (type === Frame.kill && isMain) end()
    return true
  }
}

function follow(socket: Duplex, child: ChildProcess, isMain: boolean): void {
  const { pid } = child
  child.stdin?.on('error', () => {
    // The process does not want to hear more.
  })
  child.once('error', (error) => fail(socket, 'StartFailed', error.message))
  child.once('spawn', () => {
    const payload = Buffer.alloc(4)
    payload.writeUInt32LE(pid ?? 0)
    socket.write(encodeFrame(Frame.started, payload))
    if (pid !== undefined) groups.add(pid)
  })
  for (const [stream, type] of [
    [child.stdout, Frame.stdout],
    [child.stderr, Frame.stderr],
  ] as const) {
    stream?.on('data', (chunk: Buffer) => {
      socket.write(encodeFrame(type, chunk))
      if (socket.writableLength < highWaterBytes) return
      stream.pause()
      socket.once('drain', () => stream.resume())
    })
  }
  const hungUp = new AbortController()
  child.once('exit', (code, signal) => {
    if (isMain) end()
    // Not the end of the streams: a child left behind that holds them must not hold back the exit.
    const outputs = [child.stdout, child.stderr].flatMap((stream) => stream ?? [])
    void Promise.all(outputs.map((stream) => presentEnd(stream, hungUp.signal))).then(() => {
      if (pid !== undefined) groups.delete(pid)
      const number = signal ? osConstants.signals[signal] : 0
      socket.end(encodeExit(code ?? 128 + number, number))
      for (const stream of outputs) stream.destroy()
    })
  })
  socket.once('close', () => {
    hungUp.abort()
    if (pid !== undefined && child.exitCode === null && child.signalCode === null) killGroup(pid)
  })
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // No process is left in it.
  }
}

/** Ends every process, passes their last output on, then exits; bwrap's reaper takes the rest along. */
function end(): void {
  if (isEnding) return
  isEnding = true
  for (const pid of groups) killGroup(pid)
  server.close()
  const endedMs = Date.now()
  const leave = (): void => {
    const waitedMs = Date.now() - endedMs
    const isQuiet = groups.size === 0 && [...connections].every((socket) => socket.writableLength === 0)
    const isTold = !groups.has(main?.child?.pid ?? 0) && (control?.writableLength ?? 0) === 0
    if (isQuiet || waitedMs > (isTold ? lastWordsMs : controlWordsMs)) process.exit(0)
    setTimeout(leave, 5)
  }
  setTimeout(leave, 5)
}

function dial(socket: Socket, payload: Buffer, takeRest: () => Buffer): void {
  const [portText, host] = payload.toString().split('\0')
  const port = Number(portText)
  const hosts = host ? [host] : ['127.0.0.1', '::1', main?.spec.podIP ?? ''].filter(Boolean)
  const attempt = (index: number): void => {
    const peer = connect({ host: hosts[index] ?? '', port, allowHalfOpen: true, noDelay: true })
    peer.once('error', (error: NodeJS.ErrnoException) => {
      if (index + 1 < hosts.length) return attempt(index + 1)
      fail(socket, error.code === 'ECONNREFUSED' ? 'ConnectionRefused' : 'DialFailed', `port ${port}: ${error.message}`)
    })
    peer.once('connect', () => {
      peer.removeAllListeners('error')
      const drop = (): void => {
        peer.destroy()
        socket.destroy()
      }
      peer.on('error', drop)
      socket.on('error', drop)
      socket.write(encodeFrame(Frame.started, Buffer.alloc(4)))
      socket.unshift(takeRest())
      socket.pipe(peer)
      peer.pipe(socket)
    })
  }
  if (Number.isInteger(port) && port > 0 && port < 65_536) attempt(0)
  else fail(socket, 'Invalid', 'dial needs a port between 1 and 65535')
}

const connections = new Set<Duplex>()
let control: Duplex | undefined

function serve(socket: Socket, isControl: boolean): void {
  connections.add(socket)
  if (isControl) control = socket
  const reader = new FrameReader(maxSpecBytes + headerBytes)
  let handle: ((type: number, payload: Buffer) => boolean) | undefined
  const hangUp = (): void => {
    socket.destroy()
  }
  const read = (chunk: Buffer): void => {
    try {
      for (const { type, payload } of reader.take(chunk)) {
        if (handle) {
          if (handle(type, payload) || !main) continue
          socket.pause()
          setTimeout(() => socket.resume(), 1)
        } else if (type === Frame.dial) {
          const rest = reader.stop()
          socket.off('data', read).off('end', hangUp)
          socket.pause()
          dial(socket, payload, () => rest)
          return
        } else handle = request(socket, type, payload, isControl)
      }
    } catch {
      socket.destroy()
    }
  }
  socket.on('data', read)
  socket.on('error', () => socket.destroy())
  socket.on('close', () => {
    connections.delete(socket)
    if (!isControl) return
    for (const pid of groups) killGroup(pid)
    process.exit(70)
  })
  socket.on('end', hangUp)
}

function request(
  socket: Socket,
  type: number,
  payload: Buffer,
  isControl: boolean,
): ((type: number, payload: Buffer) => boolean) | undefined {
  if (type === Frame.exec || (type === Frame.main && isControl && !main)) {
    const spec = decodeSpec(payload)
    if (spec) return start(socket, spec, type === Frame.main)
    fail(socket, 'Invalid', 'malformed process description')
  } else if (type === Frame.signal) {
    const number = Number(payload.toString())
    if (main?.child?.kill(number)) socket.end(encodeFrame(Frame.done))
    else fail(socket, 'NotRunning', 'the main process has ended')
  } else if (type === Frame.kill) {
    socket.end(encodeFrame(Frame.done))
    end()
  } else if (type === Frame.stat) {
    const text = `pid=${main?.child?.pid ?? 0} exited=${isEnding ? 1 : 0} connections=${connections.size}`
    socket.end(encodeFrame(Frame.state, text))
  } else fail(socket, 'Invalid', `frame ${type} cannot start a connection`)
  return undefined
}

/** Pairs of `device:inode` and path; see `BindMount.identity`. */
function refuseExchangedMounts(identities: readonly string[]): void {
  for (let index = 0; index + 1 < identities.length; index += 2) {
    const [identity, path = ''] = identities.slice(index, index + 2)
    const found = statSync(path, { bigint: true, throwIfNoEntry: false })
    if (found && `${found.dev}:${found.ino}` === identity) continue
    process.stderr.write(`supervise: ${path} was exchanged while it was mounted\n`)
    process.exit(69)
  }
}

/** Serves until the main process ends or the control connection closes; both descriptors are inherited. */
function supervise(listenFd: number, controlFd: number, identities: readonly string[]): void {
  refuseExchangedMounts(identities)
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
  process.title = 'corral-cell'
  server.on('connection', (socket) => serve(socket, false))
  server.listen({ fd: listenFd })
  serve(new Socket({ fd: controlFd, allowHalfOpen: true }), true)
}

if (process.argv[2] === 'netns') void prepareNamespace(process.argv.slice(3))
else supervise(Number(process.argv[3]), Number(process.argv[4]), process.argv.slice(5))

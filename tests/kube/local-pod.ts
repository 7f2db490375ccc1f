import { type ChildProcess, spawn } from 'node:child_process'
import { connect } from 'node:net'
import type { Writable } from 'node:stream'
import { ByteQueue, type ByteStream, type DuplexProcess, type ProcessExit } from '@corral/ports'
import type { ProcessStreams } from '@corral/streams'

/** Runs a command on this machine as if it were a pod. */
export function spawnProcess(
  command: string[],
  streams: ProcessStreams,
  signal: AbortSignal,
  resizes: string[],
): { child: ChildProcess; process: DuplexProcess } {
  const [file = 'cat', ...args] = command
  if (file === 'unstartable') throw new Error('no such program: unstartable')
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'] })
  const { stdin } = child
  stdin.on('error', () => {})
  const stdout = new ByteQueue(64 * 1024, () => child.stdout.resume())
  const stderr = new ByteQueue(64 * 1024, () => child.stderr.resume())
  for (const [source, queue] of [
    [child.stdout, stdout],
    [child.stderr, stderr],
  ] as const) {
    source.on('data', (chunk: Buffer) => {
      queue.push(chunk)
      if (queue.isFull) source.pause()
    })
  }
  const exited = new Promise<ProcessExit>((resolve) => {
    child.once('error', (error) => resolve({ exitCode: 127, message: error.message }))
    child.once('close', (code, name) => resolve({ exitCode: code ?? (name === 'SIGKILL' ? 137 : 143) }))
  })
  void exited.then(() => {
    stdout.end()
    stderr.end()
  })
  if (signal.aborted) child.kill('SIGKILL')
  if (!streams.stdin) stdin.end()
  return {
    child,
    process: {
      stdout,
      stderr,
      exited,
      async writeStdin(chunk) {
        if (!stdin.write(chunk)) await drained(stdin)
      },
      endStdin: () => void stdin.end(),
      resize: (columns, rows) => void resizes.push(`${columns}x${rows}`),
      kill: () => void child.kill('SIGKILL'),
    },
  }
}

/** Dials this machine: the stub's pod shares our network. */
export async function dialLocal(port: number): Promise<ByteStream> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.on('error', () => {})
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  return {
    [Symbol.asyncIterator]: () => socket.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array>,
    async write(chunk) {
      if (!socket.writable) throw new Error('closed')
      if (!socket.write(chunk)) await drained(socket)
    },
    end: () => void socket.end(),
    destroy: (error) => void socket.destroy(error),
  }
}

function drained(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stream.off('drain', done).off('close', done)
      resolve()
    }
    stream.on('drain', done).on('close', done)
  })
}

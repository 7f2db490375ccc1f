import { once } from 'node:events'
import { Writable } from 'node:stream'
import type { ExecProcess } from '@corral/agent-sandbox-sdk'

export interface AttachOptions {
  readonly tty: boolean
  readonly stdin: boolean
  /** Where the output goes instead of this program's own. */
  readonly stdout?: Writable
  readonly stderr?: Writable
}

/** As shells number the end by a signal. */
const exitCodes = { SIGINT: 130, SIGTERM: 143 } as const

/**
 * Connects this terminal (or plain pipes) to a process and resolves to its exit code. Without a terminal, which sends Ctrl-C
 * as a key, a signal to this program ends the process inside as well.
 */
export async function attachTerminal(process_: ExecProcess, options: AttachOptions): Promise<number> {
  const { stdin, stdout, stderr } = process
  const resize = (): void => process_.resize(stdout.columns ?? 80, stdout.rows ?? 24)
  const restore: (() => void)[] = []
  if (options.tty && stdin.isTTY) {
    stdin.setRawMode(true)
    restore.push(() => stdin.setRawMode(false))
    stdout.on('resize', resize)
    restore.push(() => void stdout.off('resize', resize))
    resize()
  }
  if (options.stdin) {
    const onData = (chunk: Buffer): void => {
      stdin.pause()
      process_.writeStdin(chunk).then(
        () => void stdin.resume(),
        () => process_.endStdin(),
      )
    }
    const onEnd = (): void => process_.endStdin()
    // A directory, or a terminal that was closed: there is nothing more to read.
    const onError = ({ message }: Error): void => {
      stderr.write(`corral: standard input cannot be read: ${message}\n`)
      process_.endStdin()
    }
    takeUp(stdin)
    stdin.on('data', onData).once('end', onEnd).once('error', onError)
    restore.push(() => {
      stdin.off('data', onData).off('end', onEnd).off('error', onError)
      letGo(stdin)
    })
  }
  let stoppedBy: keyof typeof exitCodes | undefined
  if (!options.tty) {
    for (const name of ['SIGINT', 'SIGTERM'] as const) {
      const onSignal = (): void => {
        stoppedBy = name
        process_.kill().catch(() => {})
      }
      // A second one ends this program at once, as without us.
      process.once(name, onSignal)
      restore.push(() => void process.off(name, onSignal))
    }
  }
  try {
    const [exit] = await Promise.all([
      process_.wait(),
      pump(process_.stdout, options.stdout ?? stdout),
      pump(process_.stderr, options.stderr ?? stderr),
    ])
    if (stoppedBy) return exitCodes[stoppedBy]
    if (exit.message && exit.exitCode !== 0 && exit.signal === undefined && exit.exitCode > 125)
      stderr.write(`${exit.message}\n`)
    return exit.exitCode
  } finally {
    for (const undo of restore) undo()
  }
}

/** No faster than the reader: what a slow one has not taken yet waits in the sandbox, not in our memory. */
async function pump(from: AsyncIterable<Uint8Array>, to: Writable): Promise<void> {
  for await (const chunk of from) {
    if (to.write(chunk) || to.destroyed) continue
    const taken = new AbortController()
    const events = ['drain', 'close', 'error'].map((event) => once(to, event, { signal: taken.signal }))
    await Promise.race(events.map((event) => event.catch(() => {})))
    taken.abort()
  }
}

/** Keeps what is written to it. */
export class TextSink extends Writable {
  readonly #chunks: Uint8Array[] = []

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk)
    done()
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString('utf8')
  }
}

/** Before standard input is read again after `letGo`: without it the process ends while it waits for an answer. */
export function takeUp(input: NodeJS.ReadableStream & { ref?: () => unknown }): void {
  input.ref?.()
}

/**
 * Stops reading, so that an open terminal or pipe does not keep this process from ending. Standard input is a socket
 * only for those; a file and /dev/null are plain streams, which have nothing to let go of.
 */
export function letGo(input: NodeJS.ReadableStream & { unref?: () => unknown }): void {
  input.pause()
  input.unref?.()
}

import type { ExecProcess } from '@corral/agent-sandbox-sdk'

/** Connects this terminal (or plain pipes) to a process and resolves to its exit code. */
export async function attachTerminal(
  process_: ExecProcess,
  options: { tty: boolean; stdin: boolean },
): Promise<number> {
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
    stdin.on('data', onData).once('end', onEnd).once('error', onError)
    restore.push(() => {
      stdin.off('data', onData).off('end', onEnd).off('error', onError)
      letGo(stdin)
    })
  }
  const pump = async (from: AsyncIterable<Uint8Array>, to: NodeJS.WriteStream): Promise<void> => {
    for await (const chunk of from) to.write(chunk)
  }
  try {
    const [exit] = await Promise.all([process_.wait(), pump(process_.stdout, stdout), pump(process_.stderr, stderr)])
    if (exit.message && exit.exitCode !== 0 && exit.signal === undefined && exit.exitCode > 125)
      stderr.write(`${exit.message}\n`)
    return exit.exitCode
  } finally {
    for (const undo of restore) undo()
  }
}

/**
 * Stops reading, so that an open terminal or pipe does not keep this process from ending. Standard input is a socket
 * only for those; a file and /dev/null are plain streams, which have nothing to let go of.
 */
export function letGo(input: NodeJS.ReadableStream & { unref?: () => unknown }): void {
  input.pause()
  input.unref?.()
}

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
    stdin.on('data', onData)
    stdin.once('end', () => process_.endStdin())
    restore.push(() => {
      stdin.off('data', onData)
      stdin.pause()
      stdin.unref()
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

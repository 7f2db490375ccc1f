import { CorralError } from '@corral/protocol'
import { CommanderError } from 'commander'
import { CliError, cliErrorOf } from './cli-error.js'
import { clusterHint } from './output/cluster-hint.js'
import { pc } from './output/colors.js'
import { buildProgram } from './program.js'

async function main(): Promise<void> {
  try {
    await buildProgram().parseAsync(process.argv)
  } catch (error) {
    process.exitCode = report(error)
  }
}

/** One line and the next move; a stack only for what should not happen. */
function report(thrown: unknown): number {
  if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2
  const error = thrown instanceof CorralError ? cliErrorOf(thrown) : thrown
  const { message, code, ...known } = error as { message?: string; hint?: string; code?: string }
  const ofCluster = clusterHint(thrown)
  // Before the hint of the error table, which does not know this command line.
  const hint = ofCluster ?? known.hint
  if (error instanceof CliError || code !== undefined) {
    process.stderr.write(`${pc.red('corral:')} ${message}\n${hint ? `${pc.yellow('hint:')} ${hint}\n` : ''}`)
    return ofCluster ? 3 : error instanceof CliError ? error.exitCode : 1
  }
  process.stderr.write(`${pc.red('corral:')} ${error instanceof Error ? error.stack : String(error)}\n`)
  return 1
}

// A reader such as `head` that has seen enough is no failure. A full disk is one.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(process.exitCode ?? 0)
    // A platform goes on without what it prints: reading has to work on a full disk.
    if (process.argv[2] === 'up') return
    if (stream === process.stdout) process.stderr.write(`${pc.red('corral:')} standard output: ${error.message}\n`)
    process.exit(1)
  })

void main()

import { parseArgs } from 'node:util'

/** What every benchmark understands. */
export interface BenchOptions {
  /** Longer rounds and more of them. */
  isFull: boolean
  /** Parts to run, by name; all of them without any. */
  only: ReadonlySet<string>
  /** Leave the peers that have to be built from Go modules out. */
  withoutPeers: boolean
}

export function readBenchOptions(argv: readonly string[] = process.argv.slice(2)): BenchOptions {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      full: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      'without-peers': { type: 'boolean', default: false },
    },
  })
  const only = new Set(values.only.split(',').filter((name) => name !== ''))
  return { isFull: values.full, only, withoutPeers: values['without-peers'] }
}

/** Whether the figures of such a run are incomplete. */
export function isPartial(options: BenchOptions): boolean {
  return options.withoutPeers || options.only.size > 0
}

/** Runs a part unless the command line leaves it out, and says that it does. */
export async function part(options: BenchOptions, name: string, run: () => Promise<void>): Promise<void> {
  if (options.only.size > 0 && !options.only.has(name)) return
  progress(name)
  await run()
}

/** Progress, on standard error; the table goes to standard output. */
export function progress(text: string): void {
  process.stderr.write(`bench: ${text}\n`)
}

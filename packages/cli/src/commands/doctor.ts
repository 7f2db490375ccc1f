import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import type { FindOptions } from '../client/find-platform.js'
import type { Check, Finding } from '../doctor-checks.js'
import { pc } from '../output/colors.js'
import { examples } from './common.js'

interface DoctorOptions extends FindOptions {
  json?: boolean
}

/** `corral doctor`: what this machine can do, and what would make it do more. Exits 1 when something is broken. */
export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .summary('check what this machine can do')
    .description(
      'Runs checks side by side, each with a time limit, and names a remedy for every finding. Looks only: the data\ndirectory stays as it is. Exit code 1 when something is broken.',
    )
    .option('--data-dir <dir>', 'data directory to check (default: ~/.corral, for root /var/lib/corral)')
    .option('--json', 'print JSON')
    .addHelpText('after', examples('corral doctor', 'corral doctor --json'))
    .action(async (options: DoctorOptions) => {
      const { checks, checkTimeoutMs } = await import('../doctor-checks.js')
      const findings = await Promise.all(
        Object.entries(checks).map(([name, check]) => bounded(name, check, options, checkTimeoutMs)),
      )
      if (options.json) process.stdout.write(`${JSON.stringify({ findings }, null, 2)}\n`)
      else for (const finding of findings) process.stdout.write(line(finding))
      if (findings.some(({ state }) => state === 'fail')) process.exitCode = 1
    })
}

async function bounded(name: string, check: Check, options: DoctorOptions, checkTimeoutMs: number): Promise<Finding> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<Finding>((resolve) => {
    timer = setTimeout(
      () => resolve({ check: name, state: 'fail', detail: `no answer within ${checkTimeoutMs / 1000} s` }),
      checkTimeoutMs,
    )
  })
  try {
    return await Promise.race([Promise.resolve().then(() => check(options)), late])
  } catch (error) {
    return {
      check: name,
      state: name === 'cluster' ? 'warn' : 'fail',
      detail: error instanceof Error ? error.message : String(error),
      ...(error instanceof CliError && error.hint ? { remedy: error.hint } : {}),
    }
  } finally {
    clearTimeout(timer)
  }
}

function line({ check, state, detail, remedy }: Finding): string {
  const mark = state === 'ok' ? pc.green('✓') : state === 'warn' ? pc.yellow('!') : pc.red('✗')
  return `${mark} ${check.padEnd(11)} ${detail}\n${remedy ? `              ${pc.dim(remedy)}\n` : ''}`
}

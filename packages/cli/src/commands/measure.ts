import { type Command, Option } from 'commander'
import { findPlatform } from '../client/find-platform.js'
import type { KubeOptions } from '../client/kube-access.js'
import { parseCount, parseDurationSeconds } from '../output/parse-duration.js'

interface MeasureCommandOptions extends KubeOptions {
  template: string
  namespace: string
  rounds: number
  timeout: number
  json?: boolean
}

/** `corral measure`: the ten questions of the proof of concept, answered by running it. */
export function addMeasureCommand(program: Command): void {
  program
    .command('measure')
    .summary('answer the ten questions of the proof of concept')
    .description(
      'Runs the proof of concept a few times against a template whose image is the runner (see examples/poc) and\nanswers S0-Q1 to S0-Q10 with value, samples and how it was measured.',
    )
    .option('--template <name>', 'SandboxTemplate', 'poc-runner')
    .option('--namespace <name>', 'namespace', 'default')
    .option('--rounds <n>', 'runs', parseCount, 3)
    .addOption(
      new Option('--timeout <duration>', 'deadline for everything').default(300, '5m').argParser(parseDurationSeconds),
    )
    .option('--kubeconfig <file>', 'cluster (default: the running platform, else what kubectl would use)')
    .option('--context <name>', 'context of that kubeconfig')
    .option('--data-dir <dir>', 'data directory of the platform')
    .option('--json', 'print JSON')
    .action(async (options: MeasureCommandOptions) => {
      const { AgentSandboxClient } = await import('@corral/agent-sandbox-sdk')
      const { kubeClientFromConfig, loadKubeConfig } = await import('@corral/kube')
      const { measure } = await import('../poc/measure.js')
      const platform = options.kubeconfig ? undefined : await findPlatform({ dataDir: options.dataDir })
      const path = options.kubeconfig ?? platform?.kubeconfig
      const kube = kubeClientFromConfig(
        await loadKubeConfig({ ...(path ? { path } : {}), ...(options.context ? { context: options.context } : {}) }),
      )
      try {
        const client = new AgentSandboxClient({ client: kube, namespace: options.namespace })
        const answers = await measure(client, kube, { ...options, signal: AbortSignal.timeout(options.timeout * 1000) })
        if (options.json) process.stdout.write(`${JSON.stringify(answers, null, 2)}\n`)
        else
          for (const { id, value, how } of answers) process.stdout.write(`${id.padEnd(7)} ${value}\n        ${how}\n`)
      } finally {
        await kube.close()
      }
    })
}

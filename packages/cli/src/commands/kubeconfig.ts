import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { dataDirWords } from '../output/next-commands.js'
import { dataDirectoryOf } from '../platform/data-directory.js'
import { dataDirOption, examples, print } from './common.js'

interface KubeconfigOptions {
  dataDir?: string
  merge?: boolean
  name: string
  json?: boolean
}

/** `corral kubeconfig`: where kubectl finds the platform. */
export function addKubeconfigCommand(program: Command): void {
  dataDirOption(program.command('kubeconfig'))
    .summary('the path of the platform’s kubeconfig, or --merge it into yours')
    .description(
      'Prints the path of the kubeconfig of the platform. With --merge its cluster, user and context go into the first\nfile of $KUBECONFIG, else into ~/.kube/config; everything else in there stays as it is.',
    )
    .option('--merge', 'add a context for kubectl to your own kubeconfig')
    .option('--name <name>', 'name of that context', 'corral')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      examples('export KUBECONFIG="$(corral kubeconfig)"', 'kubectl get sandboxes', 'corral kubeconfig --merge'),
    )
    .action(async (options: KubeconfigOptions) => {
      const { kubeconfig } = dataDirectoryOf(options)
      if (!existsSync(kubeconfig))
        throw new CliError(`there is no kubeconfig at ${kubeconfig} yet`, {
          exitCode: 3,
          hint: `The platform writes it: start one with \`corral up -d${dataDirWords(options.dataDir)}\`, or name its --data-dir.`,
        })
      if (!options.merge) return print({ kubeconfig }, options, () => kubeconfig)
      const { mergeKubeconfigFile, mergeTarget } = await import('../client/merge-kubeconfig.js')
      const target = mergeTarget(process.env, kubeconfig)
      mergeKubeconfigFile(target, kubeconfig, options.name)
      print({ kubeconfig: target, context: options.name }, options, () =>
        [
          `context ${options.name} is in ${target}; use it with`,
          `  kubectl --context ${options.name} get sandboxes`,
          `  kubectl config use-context ${options.name}`,
        ].join('\n'),
      )
    })
}

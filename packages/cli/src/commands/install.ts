import { kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import type { Command } from 'commander'
import { dump } from 'js-yaml'
import { CliError } from '../cli-error.js'
import { ask } from '../client/ask-follow-up.js'
import {
  applyObjects,
  newServerSecret,
  type PlannedObject,
  planInstall,
  untilAvailable,
} from '../install/install-objects.js'
import { defaultValues, type InstallValues } from '../install/install-values.js'
import { installManifests } from '../install/manifests.js'
import { parseAtOnce, parseTimeSeconds } from '../output/parse-duration.js'
import { examples, say } from './common.js'

interface InstallOptions {
  kubeconfig?: string
  context?: string
  namespace: string
  image: string
  sandboxImage: string
  warm: number
  maxTasks: number
  runtimeClass?: string
  controllers: boolean
  dryRun?: boolean
  yes?: boolean
  wait: boolean
  timeout: number
  json?: boolean
}

/** `corral install`: the Helm chart's objects for people without Helm. */
export function addInstallCommand(program: Command): void {
  program
    .command('install')
    .summary('put Corral into a Kubernetes cluster, without Helm')
    .description(
      'Says what it will do, asks, and applies the same objects as the Helm chart: CRDs, controllers, server, default\ntemplate and pool, network policies. Safe to repeat; a second run applies what changed.',
    )
    .option('--context <name>', 'context of the kubeconfig (default: the current one)')
    .option('--kubeconfig <file>', 'kubeconfig (default: $KUBECONFIG or ~/.kube/config)')
    .option('--namespace <name>', 'namespace of everything that is not cluster-wide', defaultValues.namespace)
    .option('--image <ref>', 'image of server and controllers', String(defaultValues.image))
    .option('--sandbox-image <ref>', 'image of sandboxes', String(defaultValues.sandbox.image))
    .option('--warm <n>', 'sandboxes kept ready', parseAtOnce, 2)
    .option('--max-tasks <n>', 'tasks that run at once', parseAtOnce, 10)
    .option('--runtime-class <name>', 'RuntimeClass of sandboxes, such as gvisor')
    .option('--no-controllers', 'the cluster runs upstream’s agent-sandbox controllers')
    .option('--dry-run', 'print the objects as YAML and what would become of them; change nothing')
    .option('-y, --yes', 'do not ask')
    .option('--no-wait', 'do not wait until everything runs')
    .option('--timeout <duration>', 'how long to wait', parseTimeSeconds, 300)
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      examples(
        'corral install --context staging --dry-run',
        'corral install --context staging --image registry.example.com/corral:0.1.0 --yes',
        'corral install --runtime-class gvisor --warm 4',
      ),
    )
    .action(install)
}

async function install(options: InstallOptions): Promise<void> {
  const { kubeconfig, context, namespace } = options
  const access = await loadKubeConfig({
    ...(kubeconfig ? { path: kubeconfig } : {}),
    ...(context ? { context } : {}),
  })
  const client = kubeClientFromConfig(access)
  try {
    const manifests = installManifests(valuesOf(options), { controllers: options.controllers })
    const planned = await planInstall(client, manifests)
    const secret = await newServerSecret(client, namespace)
    const where = `${context ? `context ${context}, ` : ''}${access.server.origin}, namespace ${namespace}`
    if (options.dryRun) return tellPlan(planned, secret !== undefined, where, options)
    process.stderr.write(`${planText(planned, secret !== undefined, where)}\n`)
    if (!options.yes) await confirm()
    const waiting = { say, timeoutMs: options.timeout * 1000 }
    await applyObjects(client, withSecret(planned, secret), waiting)
    if (options.wait) await untilAvailable(client, planned, waiting)
    const next = [
      `kubectl -n ${namespace} port-forward service/corral 8090:80`,
      `kubectl -n ${namespace} get secret corral-server -o go-template='{{.data.token | base64decode}}'`,
    ]
    process.stdout.write(
      options.json
        ? `${JSON.stringify({ namespace, objects: planned.map(({ kind, name }) => ({ kind, name })) }, null, 2)}\n`
        : `Corral is in namespace ${namespace}. Reach it, and read its token:\n  ${next.join('\n  ')}\n`,
    )
  } finally {
    await client.close()
  }
}

function valuesOf(options: InstallOptions): InstallValues {
  const { server, sandbox } = defaultValues
  return {
    ...defaultValues,
    namespace: options.namespace,
    image: options.image,
    server: { ...server, maxTasks: options.maxTasks },
    sandbox: {
      ...sandbox,
      image: options.sandboxImage,
      replicas: options.warm,
      pod: options.runtimeClass ? { runtimeClassName: options.runtimeClass } : {},
    },
  }
}

/** The Secret goes right after the namespace: pods that start without it wait for it a minute. */
function withSecret(planned: readonly PlannedObject[], secret: object | undefined): PlannedObject[] {
  if (!secret) return [...planned]
  const object = secret as PlannedObject['object']
  const entry: PlannedObject = { action: 'create', kind: 'Secret', name: 'corral-server', object }
  return planned.flatMap((each) => (each.kind === 'Namespace' ? [each, entry] : [each]))
}

function planText(planned: readonly PlannedObject[], makesSecret: boolean, where: string): string {
  const named = (action: PlannedObject['action']): string[] =>
    planned.filter((each) => each.action === action).map(({ kind, name }) => `${kind} ${name}`)
  const lines = [`Corral goes to ${where}.`]
  const created = [...named('create'), ...(makesSecret ? ['Secret corral-server (token and broker secret)'] : [])]
  if (created.length > 0) lines.push('It will create:', ...created.map((text) => `  ${text}`))
  const applied = named('apply')
  if (applied.length > 0) lines.push('It will apply changes to:', ...applied.map((text) => `  ${text}`))
  return lines.join('\n')
}

function tellPlan(
  planned: readonly PlannedObject[],
  makesSecret: boolean,
  where: string,
  options: InstallOptions,
): void {
  if (options.json) {
    const objects = planned.map(({ action, object }) => ({ action, object }))
    return void process.stdout.write(`${JSON.stringify({ makesSecret, objects }, null, 2)}\n`)
  }
  process.stderr.write(`${planText(planned, makesSecret, where)}\nNothing was changed.\n`)
  for (const { object } of planned) process.stdout.write(`---\n${dump(object, { lineWidth: -1, noRefs: true })}`)
}

async function confirm(): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new CliError('there is no terminal to ask on', { exitCode: 2, hint: 'Look with --dry-run, then give --yes.' })
  const answer = (await ask('Go on? [y/N] ', process.stderr))?.trim().toLowerCase() ?? ''
  if (!answer.startsWith('y')) throw new CliError('nothing was changed', { exitCode: 1 })
}

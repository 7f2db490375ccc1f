import { readFileSync } from 'node:fs'
import type { AgentSandboxClient } from '@corral/agent-sandbox-sdk'
import { type Command, Option } from 'commander'
import { CliError } from '../cli-error.js'
import type { KubeOptions } from '../client/kube-access.js'
import { parseTimeSeconds } from '../output/parse-duration.js'
import { table } from '../output/table.js'
import { age, dataDirOption, examples, print, readStdin, takenName } from './common.js'

type Options = KubeOptions & { json?: boolean }

async function open(options: KubeOptions): Promise<AgentSandboxClient> {
  return (await import('../client/kube-access.js')).sandboxClient(options)
}

function withCluster(command: Command): Command {
  return dataDirOption(command)
    .option('--kubeconfig <file>', 'another cluster (default: the running platform, else what kubectl would use)')
    .option('--context <name>', 'context of that kubeconfig')
    .option('-n, --namespace <name>', 'namespace')
    .option('--json', 'print JSON')
}

/** `corral pool`: warm sandboxes kept ready. */
export function addPoolCommand(program: Command): void {
  const pool = program
    .command('pool')
    .summary('pools of warm sandboxes')
    .addHelpText(
      'after',
      examples(
        'corral pool list',
        'corral pool create web --template default --replicas 3',
        'corral pool advise --since 7d',
        'corral pool scale web 0',
      ),
    )

  withCluster(pool.command('list'))
    .summary('pools')
    .action(async (options: Options) => {
      await using client = await open(options)
      const rows = []
      for await (const { metadata, spec, status } of client.warmPools.list()) {
        const { replicas = 1, sandboxTemplateRef } = spec
        const ready = status?.readyReplicas ?? 0
        rows.push({
          name: metadata.name,
          template: sandboxTemplateRef.name,
          replicas,
          ready,
          created: metadata.creationTimestamp,
        })
      }
      const cells = rows.map((row) => [row.name, row.template, `${row.ready}/${row.replicas}`, age(row.created)])
      print({ pools: rows }, options, () =>
        rows.length === 0 ? 'no pools' : table(['NAME', 'TEMPLATE', 'READY', 'AGE'], cells),
      )
    })

  withCluster(pool.command('create').argument('<name>'))
    .summary('keep sandboxes of a template ready')
    .requiredOption('--template <name>', 'what they are made from')
    .option('--replicas <count>', 'how many', count, 1)
    .action(async (name: string, options: Options & { template: string; replicas: number }) => {
      await using client = await open(options)
      if (!(await client.templates.find(options.template))) throw noSuch('template', [options.template])
      const spec = { replicas: options.replicas, sandboxTemplateRef: { name: options.template } }
      await client.warmPools
        .create({ metadata: { name }, spec })
        .catch(takenName('pool', name, `Change how many it keeps with \`corral pool scale ${name} N\``))
      print({ name, ...spec }, options, () => `created pool ${name}`)
    })

  withCluster(pool.command('scale').argument('<name>').argument('<replicas>', 'how many', count))
    .summary('keep another number ready')
    .action(async (name: string, replicas: number, options: Options) => {
      await using client = await open(options)
      if (!(await client.warmPools.find(name))) throw noSuch('pool', [name])
      await client.warmPools.patch(name, { spec: { replicas } })
      print({ name, replicas }, options, () => `pool ${name} keeps ${replicas}`)
    })

  withCluster(pool.command('advise'))
    .summary('how many to keep ready, from the tasks that ran')
    .description(
      'Looks at when tasks asked for a sandbox and how long they waited, and says how many each pool should keep ready so\nthat nineteen of twenty tasks find one. More starts within the time a cold sandbox takes to come, more replicas.',
    )
    .addOption(
      new Option('--since <duration>', 'tasks of this time').argParser(parseTimeSeconds).default(24 * 60 * 60, '24h'),
    )
    .action(async (options: Options & { since: number }) => {
      const { poolAdvice } = await import('../client/pool-advice.js')
      const rows = await poolAdvice(options)
      const cells = rows.map((row) => [
        row.pool,
        String(row.tasks),
        `${Math.round(row.hitRatio * 100)} %`,
        `${row.waitP95Seconds.toFixed(1)} s`,
        String(row.kept ?? '-'),
        String(row.replicas),
      ])
      print({ pools: rows }, options, () =>
        rows.length === 0
          ? 'no task had a sandbox in that time'
          : table(['POOL', 'TASKS', 'READY AT ONCE', 'WAIT P95', 'KEEPS', 'ADVISED'], cells),
      )
    })

  withCluster(pool.command('rm').argument('<name...>'))
    .summary('remove pools; sandboxes that were claimed stay')
    .action(async (names: string[], options: Options) => {
      await using client = await open(options)
      await removeAll('pool', names, client.warmPools, options)
    })
}

/** `corral template`: what sandboxes are made from. */
export function addTemplateCommand(program: Command): void {
  const template = program
    .command('template')
    .summary('templates of sandboxes')
    .addHelpText(
      'after',
      examples('corral template list', 'corral template apply template.json', 'corral template show default --json'),
    )

  withCluster(template.command('list'))
    .summary('templates')
    .action(async (options: Options) => {
      await using client = await open(options)
      const rows = []
      for await (const { metadata, spec } of client.templates.list()) {
        const images = spec.podTemplate.spec.containers.map(({ image = '' }) => image)
        rows.push({ name: metadata.name, images, created: metadata.creationTimestamp })
      }
      const cells = rows.map((row) => [row.name, row.images.join(','), age(row.created)])
      print({ templates: rows }, options, () =>
        rows.length === 0 ? 'no templates' : table(['NAME', 'IMAGES', 'AGE'], cells),
      )
    })

  withCluster(template.command('show').argument('<name>'))
    .summary('one template as JSON')
    .action(async (name: string, options: Options) => {
      await using client = await open(options)
      const found = await client.templates.find(name)
      if (!found) throw noSuch('template', [name])
      const { metadata, ...rest } = found
      // As kubectl shows it: with its managed fields no server would take it back from `template apply`.
      const { managedFields: _, ...shown } = metadata
      print({ ...rest, metadata: shown }, { json: true }, () => '')
    })

  withCluster(template.command('apply').argument('<file>'))
    .summary('create or change a template from a JSON file; - is standard input')
    .action(async (file: string, options: Options) => {
      const { sandboxTemplateSchema } = await import('@corral/agent-sandbox-sdk')
      const parsed = sandboxTemplateSchema.safeParse(await readJson(file))
      if (!parsed.success || !parsed.data.metadata?.name) {
        const issue = parsed.success ? undefined : parsed.error.issues[0]
        const why = issue ? `${issue.path.join('.')}: ${issue.message}` : 'metadata.name is missing'
        throw new CliError(`${file} is not a SandboxTemplate: ${why}`, { exitCode: 2 })
      }
      await using client = await open(options)
      const { name, namespace, labels = {}, annotations = {}, uid } = parsed.data.metadata
      // What `template show` prints names the object it was: under another name, or after that was removed, it is a copy.
      const isCopy = uid !== undefined && (await client.templates.find(name))?.metadata.uid !== uid
      const wanted = isCopy
        ? { ...parsed.data, metadata: { name, ...(namespace ? { namespace } : {}), labels, annotations } }
        : parsed.data
      const { metadata } = await client.templates.apply(wanted, { fieldManager: 'corral', force: true })
      print({ name: metadata.name }, options, () => `applied template ${metadata.name}`)
    })

  withCluster(template.command('rm').argument('<name...>'))
    .summary('remove templates')
    .action(async (names: string[], options: Options) => {
      await using client = await open(options)
      await removeAll('template', names, client.templates, options)
    })
}

/** Those that are there; one that is not keeps none of the others, and what was removed is told all the same. */
async function removeAll(
  kind: 'pool' | 'template',
  names: readonly string[],
  objects: AgentSandboxClient['warmPools'] | AgentSandboxClient['templates'],
  options: Options,
): Promise<void> {
  const removed: string[] = []
  const missing: string[] = []
  for (const name of new Set(names)) {
    const found = await objects.find(name)
    if (found) await objects.delete(name)
    const list = found ? removed : missing
    list.push(name)
  }
  if (removed.length > 0) print({ removed }, options, () => removed.map((name) => `removed ${name}`).join('\n'))
  if (missing.length > 0) throw noSuch(kind, missing)
}

function noSuch(kind: 'pool' | 'template', names: readonly string[]): CliError {
  return new CliError(`there is no ${kind} "${names.join('", "')}"`, {
    hint: kind === 'pool' ? 'List them with `corral pool list`.' : 'List them with `corral template list`.',
  })
}

async function readJson(file: string): Promise<unknown> {
  const text = file === '-' ? await readStdin() : undefined
  try {
    return JSON.parse(text ?? readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new CliError(
      `${file === '-' ? 'standard input' : file} cannot be read as JSON: ${cause instanceof Error ? cause.message : String(cause)}`,
      {
        exitCode: 2,
      },
    )
  }
}

function count(text: string): number {
  if (!/^\d{1,5}$/.test(text)) throw new CliError(`"${text}" is not a number of sandboxes: 0 to 99999`, { exitCode: 2 })
  return Number(text)
}

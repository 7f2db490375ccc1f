import type { TasksClient } from '@corral/protocol'
import type { Command } from 'commander'
import { requirePlatform } from '../client/find-platform.js'
import { tasksClient } from '../client/tasks.js'
import { encoded, namesOf, statOf } from '../output/diff-text.js'
import { describeLogEvent, isJsonLines } from '../output/log-text.js'
import { terminalText } from '../output/terminal-text.js'
import { type CommonOptions, examples, print, withPlatform } from './common.js'

/** `corral task logs` and `corral task diff`: what the agent wrote and what it changed. */
export function addTaskOutput(task: Command): void {
  withPlatform(task.command('logs').argument('<id>'))
    .summary('what the agent wrote')
    .description(
      'Shows what the agent wrote so far. An agent that writes JSON is shown in words; --raw gives its output byte for byte.',
    )
    .option('--raw', 'as the agent wrote it')
    .addHelpText('after', examples('corral task logs ID', 'corral task logs --raw ID > agent.log'))
    .action(async (id: string, options: CommonOptions & { raw?: boolean }) => {
      const client = tasksClient(await requirePlatform(options))
      if (options.json) return print({ id, logs: await textOf(client.logs(id)) }, options, () => '')
      await (options.raw ? copyRaw(client.logs(id)) : showLogs(client, id))
    })

  withPlatform(task.command('diff').argument('<id>'))
    .summary('the change as a patch')
    .description(
      `Prints the accepted change as a patch that \`git apply\` takes; nothing where there is none. With --json the patch is a
string, in base64 where it is not UTF-8 ("encoding" says which), beside the list of files.`,
    )
    .option('--stat', 'the files and how many lines changed in each')
    .option('--name-only', 'the paths of the files')
    .option('--path <file>', 'the patch of this file alone')
    .addHelpText(
      'after',
      examples('corral task diff ID', 'corral task diff ID --stat', 'corral task diff ID --name-only | wc -l'),
    )
    .action(async (id: string, options: CommonOptions & DiffOptions) => {
      const client = tasksClient(await requirePlatform(options))
      if (options.stat || options.nameOnly) {
        const changed = await client.files(id)
        return print({ id, ...changed }, options, () => (options.nameOnly ? namesOf(changed) : statOf(changed)))
      }
      const wanted = options.path === undefined ? {} : { path: options.path }
      if (options.json) {
        const { files } = await client.files(id)
        return print({ id, ...encoded(await bytesOf(client.diff(id, wanted))), files }, options, () => '')
      }
      await (process.stdout.isTTY ? showText(client.diff(id, wanted)) : copyRaw(client.diff(id, wanted)))
    })
}

async function showLogs(client: TasksClient, id: string): Promise<void> {
  const chunks = client.logs(id)[Symbol.asyncIterator]()
  const first = await chunks.next()
  if (first.done) return
  if (!isJsonLines(Buffer.from(first.value).toString('utf8')))
    return showText(
      (async function* () {
        yield first.value
        for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield next.value
      })(),
    )
  await chunks.return?.()
  for await (const event of client.eventsSoFar(id)) {
    const line = describeLogEvent(event)
    if (line !== undefined) process.stdout.write(`${line}\n`)
  }
}

async function showText(chunks: AsyncIterable<Uint8Array>): Promise<void> {
  const decoder = new TextDecoder()
  for await (const chunk of chunks) process.stdout.write(terminalText(decoder.decode(chunk, { stream: true })))
}

async function copyRaw(chunks: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const chunk of chunks) process.stdout.write(chunk)
}

interface DiffOptions {
  stat?: boolean
  nameOnly?: boolean
  path?: string
}

async function bytesOf(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all)
}

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  return (await bytesOf(chunks)).toString('utf8')
}

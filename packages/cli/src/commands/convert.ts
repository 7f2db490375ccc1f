import { readFileSync } from 'node:fs'
import { convertManifest } from '@corral/resources'
import type { Command } from 'commander'
import { dump, loadAll } from 'js-yaml'
import { CliError } from '../cli-error.js'
import { readStdin } from './common.js'

/** `corral convert`: manifests of the old API version into the current one. */
export function addConvertCommand(program: Command): void {
  program
    .command('convert')
    .summary('turn v1alpha1 manifests into v1beta1')
    .description('Reads manifests, prints them in v1beta1 and says on standard error what changed and what to look at.')
    .requiredOption('-f, --filename <file>', 'manifest to read; - is standard input')
    .option('--json', 'print {"objects", "changes"} as JSON')
    .action(async (options: { filename: string; json?: boolean }) => {
      const text = options.filename === '-' ? await readStdin() : readManifest(options.filename)
      const documents = parseDocuments(text, options.filename)
      const converted = documents.map((document) => convertManifest(document))
      const objects = converted.map(({ object }) => object)
      const changes = converted.flatMap((result) => result.changes)
      if (options.json) return void process.stdout.write(`${JSON.stringify({ objects, changes }, null, 2)}\n`)
      process.stdout.write(objects.map((object) => dump(object)).join('---\n'))
      for (const change of changes) process.stderr.write(`changed: ${change}\n`)
      if (changes.length === 0) process.stderr.write('nothing to change\n')
    })
}

function readManifest(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new CliError(`${path} cannot be read: ${(error as Error).message}`, { exitCode: 2, cause: error })
  }
}

function parseDocuments(text: string, name: string): Record<string, unknown>[] {
  try {
    return loadAll(text).filter(
      (document): document is Record<string, unknown> => typeof document === 'object' && document !== null,
    )
  } catch (error) {
    throw new CliError(`${name} is not YAML: ${(error as Error).message}`, { exitCode: 2, cause: error })
  }
}

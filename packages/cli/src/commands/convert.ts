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
      const documents = parseDocuments(text, options.filename === '-' ? 'standard input' : options.filename)
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

/** The objects of a manifest. Text that is no object is refused by its place, as are manifests without any. */
export function parseDocuments(text: string, name: string): Record<string, unknown>[] {
  const documents = loadedDocuments(text, name)
  const wrong = documents.findIndex((document) => !isObject(document))
  if (wrong >= 0 || documents.length === 0) {
    const what = wrong < 0 ? 'holds no Kubernetes object' : `document ${wrong + 1} is no Kubernetes object`
    throw new CliError(`${name}: ${what}`, { exitCode: 2, hint: 'A manifest has apiVersion, kind and metadata.' })
  }
  return documents as Record<string, unknown>[]
}

/** An empty document, as between two `---`, is left out. */
function loadedDocuments(text: string, name: string): unknown[] {
  try {
    return loadAll(text).filter((document) => document !== null && document !== undefined)
  } catch (error) {
    throw new CliError(`${name} is not YAML: ${(error as Error).message}`, { exitCode: 2, cause: error })
  }
}

const isObject = (document: unknown): boolean =>
  typeof document === 'object' && document !== null && !Array.isArray(document) && 'kind' in document

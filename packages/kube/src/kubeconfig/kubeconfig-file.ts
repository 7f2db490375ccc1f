import { readFile } from 'node:fs/promises'
import { dirname, isAbsolute, join } from 'node:path'
import { errorCode, KubeError } from '@corral/resources'
import { loadAll } from 'js-yaml'

type Fields = Readonly<Record<string, unknown>>

/** A named entry of a kubeconfig and the file it came from, which relative paths in it start at. */
export interface Entry {
  readonly name: string
  readonly fields: Fields
  readonly file: string
}

export interface MergedKubeConfig {
  readonly currentContext: string | undefined
  readonly clusters: ReadonlyMap<string, Entry>
  readonly users: ReadonlyMap<string, Entry>
  readonly contexts: ReadonlyMap<string, Entry>
  /** Files that were read, in order. */
  readonly files: readonly string[]
}

/** Parses one kubeconfig. Throws `KubeConfigInvalid` naming the file. */
export function parseKubeConfig(text: string, file: string): MergedKubeConfig {
  let document: unknown
  try {
    document = loadAll(text)[0]
  } catch (cause) {
    throw invalid(file, `not YAML: ${cause instanceof Error ? cause.message : String(cause)}`, cause)
  }
  if (document === undefined || document === null) document = {}
  if (!isFields(document)) throw invalid(file, 'the document is not a mapping')
  const current = document['current-context']
  return {
    currentContext: typeof current === 'string' && current !== '' ? current : undefined,
    clusters: entries(document.clusters, 'clusters', 'cluster', file),
    users: entries(document.users, 'users', 'user', file),
    contexts: entries(document.contexts, 'contexts', 'context', file),
    files: [file],
  }
}

/** Merges in order as kubectl does: whichever file sets a name or the current context first wins. */
export function mergeKubeConfigs(configs: readonly MergedKubeConfig[]): MergedKubeConfig {
  return {
    currentContext: configs.find((config) => config.currentContext !== undefined)?.currentContext,
    clusters: firstWins(configs.map((config) => config.clusters)),
    users: firstWins(configs.map((config) => config.users)),
    contexts: firstWins(configs.map((config) => config.contexts)),
    files: configs.flatMap((config) => config.files),
  }
}

/** Reads one kubeconfig; undefined when there is none and `optional` allows that. */
export async function readKubeConfig(file: string, optional: boolean): Promise<MergedKubeConfig | undefined> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (cause) {
    if (optional && errorCode(cause) === 'ENOENT') return undefined
    const code = errorCode(cause) === 'ENOENT' ? 'KubeConfigNotFound' : 'KubeConfigInvalid'
    throw new KubeError(code, `kubeconfig ${file} cannot be read (${errorCode(cause)})`, { cause })
  }
  return parseKubeConfig(text, file)
}

/** A string field; an empty one counts as absent. Throws when it is something else. */
export function text(entry: Entry, name: string): string | undefined {
  const value = entry.fields[name]
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string') throw invalid(entry.file, `${name} of "${entry.name}" is not a string`)
  return value
}

/** Content of `<name>-data` (base64), else of the file `<name>` points at. */
export async function inlineOrFile(entry: Entry, name: string): Promise<string | undefined> {
  const data = text(entry, `${name}-data`)
  if (data !== undefined) return Buffer.from(data, 'base64').toString('utf8')
  const path = text(entry, name)
  if (path === undefined) return undefined
  const file = resolveFrom(entry, path)
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    throw invalid(entry.file, `${name} of "${entry.name}" cannot be read from ${file} (${errorCode(cause)})`, cause)
  }
}

export function resolveFrom(entry: Entry, path: string): string {
  return isAbsolute(path) ? path : join(dirname(entry.file), path)
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function invalid(file: string, problem: string, cause?: unknown): KubeError {
  return new KubeError('KubeConfigInvalid', `kubeconfig ${file}: ${problem}`, { cause })
}

function entries(list: unknown, plural: string, field: string, file: string): Map<string, Entry> {
  if (list === undefined || list === null) return new Map()
  if (!Array.isArray(list)) throw invalid(file, `${plural} is not a list`)
  const found = new Map<string, Entry>()
  for (const item of list) {
    if (!isFields(item) || typeof item.name !== 'string') throw invalid(file, `an entry of ${plural} has no name`)
    const fields = item[field] ?? {}
    if (!isFields(fields)) throw invalid(file, `${field} "${item.name}" is not a mapping`)
    if (!found.has(item.name)) found.set(item.name, { name: item.name, fields, file })
  }
  return found
}

function firstWins(maps: readonly ReadonlyMap<string, Entry>[]): Map<string, Entry> {
  const merged = new Map<string, Entry>()
  for (const map of maps) {
    for (const [name, entry] of map) if (!merged.has(name)) merged.set(name, entry)
  }
  return merged
}

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** One field of a Go struct as its declaration and tags state it. */
export interface GoField {
  goName: string
  /** The Go type as written, e.g. `[]v1.Container`. */
  goType: string
  embedded: boolean
  json: { name: string; inline: boolean; omitEmpty: boolean; ignored: boolean }
  protoNumber?: number
  patchStrategy?: string
  patchMergeKey?: string
  /** Comment markers, `+listType=map` as `listType → ['map']`; a marker without value maps to `['']`. */
  markers: Map<string, string[]>
}

export interface GoStruct {
  name: string
  fields: GoField[]
  markers: Map<string, string[]>
}

/** A named type that is not a struct, e.g. `type PodPhase string`. */
export interface GoAlias {
  name: string
  goType: string
  markers: Map<string, string[]>
}

export interface GoPackage {
  path: string
  structs: Map<string, GoStruct>
  aliases: Map<string, GoAlias>
  /** Import alias → package path, merged over the package's files. */
  imports: Map<string, string>
  /** String constants: name → declared type (may be empty) and value. */
  constants: Map<string, { type: string; value: string }>
}

/** Reads the declarations of one Go package directory. Tests and generated Go files are left out. */
export function readGoPackage(path: string, directory: string): GoPackage {
  const result: GoPackage = { path, structs: new Map(), aliases: new Map(), imports: new Map(), constants: new Map() }
  for (const file of readdirSync(directory).sort()) {
    if (!file.endsWith('.go') || /_test\.go$|^zz_|\.pb\.go$|swagger_doc/.test(file)) continue
    readFile(readFileSync(join(directory, file), 'utf8'), result)
  }
  return result
}

function readFile(source: string, into: GoPackage): void {
  const lines = source.split('\n')
  let comments: string[] = []
  let inConstants = false
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? ''
    const trimmed = line.trim()
    if (trimmed.startsWith('//')) {
      comments.push(trimmed.slice(2).trim())
      continue
    }
    const imported = /^(?:import )?\s*(\w+)?\s*"([\w./-]+)"$/.exec(line)
    if (imported?.[2]?.includes('/')) into.imports.set(imported[1] ?? lastSegment(imported[2]), imported[2])
    if (/^const \(/.test(line)) inConstants = true
    if (/^\)/.test(line)) inConstants = false
    const constant = (
      inConstants ? /^\s+(\w+)(?:\s+([\w.]+))?\s*=\s*"([^"]*)"/ : /^const (\w+)(?:\s+([\w.]+))?\s*=\s*"([^"]*)"/
    ).exec(line)
    if (constant) into.constants.set(constant[1] ?? '', { type: constant[2] ?? '', value: constant[3] ?? '' })
    const struct = /^type (\w+) struct ?\{(\})?/.exec(line)
    if (struct) {
      const name = struct[1] ?? ''
      const end = struct[2] ? i : lines.indexOf('}', i)
      into.structs.set(name, { name, fields: readFields(lines.slice(i + 1, end)), markers: markersOf(comments) })
      i = Math.max(i, end)
    } else {
      const alias = /^type (\w+) =? ?([\w.[\]*]+)\s*(?:\/\/.*)?$/.exec(line)
      if (alias && alias[2] !== 'interface') {
        into.aliases.set(alias[1] ?? '', { name: alias[1] ?? '', goType: alias[2] ?? '', markers: markersOf(comments) })
      }
    }
    // A blank line between a comment block and its declaration keeps the markers of the block above, as Go's tools do.
    if (trimmed !== '') comments = []
  }
}

function readFields(lines: string[]): GoField[] {
  const fields: GoField[] = []
  let comments: string[] = []
  for (const line of lines) {
    const trimmed = line.trim()
    if (trimmed.startsWith('//')) {
      comments.push(trimmed.slice(2).trim())
      continue
    }
    const match = /^(?:(\w+)\s+)?([\w.[\]*]+)(?:\s+`([^`]*)`)?\s*(?:\/\/.*)?$/.exec(trimmed)
    if (match?.[2]) fields.push(fieldOf(match[1], match[2], match[3] ?? '', markersOf(comments)))
    if (trimmed !== '') comments = []
  }
  return fields
}

function fieldOf(goName: string | undefined, goType: string, tags: string, markers: Map<string, string[]>): GoField {
  const tag = (key: string): string | undefined => new RegExp(`(?:^|\\s)${key}:"([^"]*)"`).exec(tags)?.[1]
  const protoName = /(?:^|,)name=(\w+)/.exec(tag('protobuf') ?? '')?.[1]
  // Either-or wrappers write their own JSON and carry protobuf tags only.
  const [jsonName = '', ...options] = (tag('json') ?? (goName === undefined ? '' : (protoName ?? ''))).split(',')
  const protoNumber = Number(tag('protobuf')?.split(',')[1] ?? Number.NaN)
  const patchStrategy = tag('patchStrategy')
  const patchMergeKey = tag('patchMergeKey')
  const embedded = goName === undefined
  return {
    goName: goName ?? lastSegment(goType.replaceAll('*', '')).split('.').pop() ?? goType,
    goType,
    embedded,
    json: {
      name: jsonName,
      inline: embedded && (jsonName === '' || options.includes('inline')),
      omitEmpty: options.includes('omitempty') || options.includes('omitzero'),
      ignored: jsonName === '-' || (!embedded && jsonName === ''),
    },
    ...(Number.isNaN(protoNumber) ? {} : { protoNumber }),
    ...(patchStrategy === undefined ? {} : { patchStrategy }),
    ...(patchMergeKey === undefined ? {} : { patchMergeKey }),
    markers,
  }
}

function markersOf(comments: string[]): Map<string, string[]> {
  const markers = new Map<string, string[]>()
  for (const comment of comments) {
    const match = /^\+([\w:]+)(?:=(.*))?$/.exec(comment)
    if (!match?.[1]) continue
    markers.set(match[1], [...(markers.get(match[1]) ?? []), (match[2] ?? '').trim()])
  }
  return markers
}

function lastSegment(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

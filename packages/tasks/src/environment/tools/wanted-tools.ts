import type { ToolName } from '@corral/protocol'

/** A toolchain that a repository asks for. */
export interface WantedTool {
  name: ToolName
  /** The front of a version (`22`, `3.11`), or a channel (`stable`, `nightly`); empty for any. */
  version: string
  /** The file that asks for it. */
  wantedBy: string
  /** Newer ones do as well, as `go.mod` means it. */
  isMinimum: boolean
  /** An environment file means what it says; a version file is a wish. */
  isRequired: boolean
}

type Reader = (text: string) => [name: ToolName, version: string, isMinimum?: boolean][]

/** Longer lines and versions are none: patterns would look for a version in them for seconds, and it would be kept. */
const longestLine = 1_000
const longestVersion = 64

const lines = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .filter((line) => line !== '' && line.length <= longestLine)

const single =
  (name: ToolName, read: (line: string) => string | undefined): Reader =>
  (text) => {
    const [line] = lines(text)
    const version = line === undefined ? undefined : read(line)
    return version === undefined ? [] : [[name, version]]
  }

/** Names that releases of Node with long support have. */
const nodeLines: Readonly<Record<string, string>> = {
  hydrogen: '18',
  iron: '20',
  jod: '22',
  krypton: '24',
}

function nodeVersion(text: string): string | undefined {
  const word = text.toLowerCase()
  if (word === 'system') return undefined
  if (word === 'node' || word === 'stable' || word === 'current' || word === 'lts/*' || word === 'latest') return ''
  if (word.startsWith('lts/')) return nodeLines[word.slice(4)] ?? ''
  return plain(word.replace(/^v/, '').replace(/(\.x|\.\*)+$/, ''))
}

/** `temurin-17.0.9+9`, `17.0.9-tem` and `17` are all 17.0.9 or 17; `1.8` is 8. */
function javaVersion(text: string): string | undefined {
  return text === 'system' ? undefined : withoutOne(/(?:^|-)(\d+(?:\.\d+)*)/.exec(text)?.[1])
}

/** Java called its versions 1.5 to 1.8 before it dropped the front. */
const withoutOne = (version: string | undefined): string | undefined => version?.replace(/^1\.(?=[5-8]\b)/, '')

function rustVersion(text: string): string | undefined {
  const [, channel] = /^(\d+(?:\.\d+)*|stable|beta|nightly)/.exec(text) ?? []
  return channel === 'beta' ? undefined : channel
}

const plain = (text: string): string | undefined => /^\d+(\.\d+)*/.exec(text)?.[0]

const toolVersionNames: Readonly<Record<string, [ToolName, (text: string) => string | undefined]>> = {
  node: ['node', nodeVersion],
  nodejs: ['node', nodeVersion],
  go: ['go', plain],
  golang: ['go', plain],
  python: ['python', plain],
  rust: ['rust', rustVersion],
  java: ['java', javaVersion],
  uv: ['uv', plain],
}

function toolVersion(tool: string, version: string): ReturnType<Reader> {
  const [name, read] = Object.hasOwn(toolVersionNames, tool) ? (toolVersionNames[tool] ?? []) : []
  const found = read?.(version)
  return name && found !== undefined ? [[name, found]] : []
}

/** The tables of mise: `node = "22"`, `python = ["3.12", "3.11"]`, `go = { version = "1.25" }` and `[tools.rust]`. */
const miseTools: Reader = (text) => {
  let table = ''
  return lines(text).flatMap((line) => {
    const header = /^\[([^[\]]*)\]$/.exec(line)?.[1]
    if (header !== undefined) table = header.replace(/[\s"']/g, '')
    const [, key = '', version = ''] =
      /^["']?([\w-]+)["']?\s*=\s*(?:\[\s*|\{(?:[^}]*[\s,])?version\s*=\s*)?["']([^"']+)["']/.exec(line) ?? []
    if (table === 'tools') return toolVersion(key, version)
    return table.startsWith('tools.') && key === 'version' ? toolVersion(table.slice('tools.'.length), version) : []
  })
}

/** What each file means, the more exact file of a tool first. */
const readers: Readonly<Record<string, Reader>> = {
  '.tool-versions': (text) =>
    lines(text).flatMap((line) => {
      const [tool = '', version = ''] = line.split(/\s+/)
      return toolVersion(tool, version)
    }),
  'mise.toml': miseTools,
  '.mise.toml': miseTools,
  '.nvmrc': single('node', nodeVersion),
  '.node-version': single('node', nodeVersion),
  '.python-version': single('python', (line) => plain(line.replace(/^(cpython|python)-?/, ''))),
  'rust-toolchain.toml': (text) => {
    const version = /^[ \t]*channel[ \t]*=[ \t]*["']([^"']+)["']/m.exec(text)?.[1]
    const read = version === undefined ? undefined : rustVersion(version)
    return read === undefined ? [] : [['rust', read]]
  },
  'rust-toolchain': (text) => {
    if (text.includes('[toolchain]')) return readers['rust-toolchain.toml']?.(text) ?? []
    return single('rust', rustVersion)(text)
  },
  'go.mod': (text) => {
    const [, go] = /^go\s+(\d+(?:\.\d+)*)/m.exec(text) ?? []
    const [, toolchain] = /^toolchain\s+go(\d+(?:\.\d+)*)/m.exec(text) ?? []
    const version = go
    return version === undefined ? (toolchain ? [['go', toolchain, true]] : []) : [['go', version, true]]
  },
  '.java-version': single('java', javaVersion),
  '.sdkmanrc': (text) => {
    const version = /^[ \t]*java[ \t]*=[ \t]*(\S+)/m.exec(text)?.[1]
    const read = version === undefined ? undefined : javaVersion(version)
    return read === undefined ? [] : [['java', read]]
  },
}

function declaredVersion(name: ToolName, version: string): string {
  return name === 'java' ? (withoutOne(version) ?? version) : version.replace(/^v/, '')
}

/** Files that name versions of tools, looked for at the root of a repository and of the part of it that is worked on. */
export const versionFiles: readonly string[] = Object.keys(readers)

/**
 * What the environment file asks for, and for other tools what version files do; the first file that names a tool counts.
 * `files` are contents by name, in the order they shall count. Pure.
 */
export function wantedTools(
  declared: Readonly<Partial<Record<ToolName, string>>>,
  source: string,
  files: readonly { path: string; text: string }[],
): WantedTool[] {
  const wanted = new Map<ToolName, WantedTool>()
  const own = { wantedBy: source, isMinimum: false, isRequired: true }
  for (const [name, version] of Object.entries(declared) as [ToolName, string][])
    wanted.set(name, { name, version: declaredVersion(name, version), ...own })
  for (const { path, text } of files) {
    const read = readers[path.slice(path.lastIndexOf('/') + 1)]
    // Editors on Windows put a byte order mark in front.
    for (const [name, version, isMinimum = false] of read?.(text.replace(/^\uFEFF/, '')) ?? [])
      if (!wanted.has(name) && version.length <= longestVersion)
        wanted.set(name, { name, version, wantedBy: path, isMinimum, isRequired: false })
  }
  return [...wanted.values()]
}

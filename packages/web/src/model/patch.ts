/** A git patch as data: what `git diff --full-index --binary` writes, quoted names and binary files included. */

export interface PatchLine {
  readonly kind: 'context' | 'added' | 'removed' | 'note'
  readonly text: string
  /** Line numbers, where the line exists on that side. */
  readonly before?: number
  readonly after?: number
}

export interface PatchHunk {
  readonly header: string
  readonly beforeStart: number
  readonly afterStart: number
  readonly lines: readonly PatchLine[]
}

export type FileChange = 'added' | 'deleted' | 'modified' | 'renamed' | 'copied' | 'mode'

export interface PatchFile {
  /** The path after the change, or before it for a deleted file. */
  readonly path: string
  readonly from?: string
  readonly change: FileChange
  readonly isBinary: boolean
  readonly modes?: { readonly before?: string; readonly after?: string }
  readonly insertions: number
  readonly deletions: number
  readonly hunks: readonly PatchHunk[]
}

/** Splits a patch into its files. Text before the first file is passed over; lines that fit nowhere end a hunk. */
export function parsePatch(patch: string): PatchFile[] {
  const files: PatchFile[] = []
  for (const section of patch.split(/^(?=diff --git )/m)) {
    if (section.startsWith('diff --git ')) files.push(parseFile(section.split('\n')))
  }
  return files
}

function parseFile(lines: readonly string[]): PatchFile {
  const at = lines.findIndex((line) => line.startsWith('@@ '))
  const head = at === -1 ? lines : lines.slice(0, at)
  const value = (start: string): string | undefined => head.find((line) => line.startsWith(start))?.slice(start.length)
  const isBinary = head.some((line) => line === 'GIT binary patch' || /^Binary files .* differ$/.test(line))
  const created = value('new file mode ')
  const deleted = value('deleted file mode ')
  const renamed = value('rename from ')
  const copied = value('copy from ')
  const [beforeMode, afterMode] = [value('old mode '), value('new mode ')]
  const names = headerNames(lines[0] ?? '')
  const before = unquoted(renamed ?? copied) ?? sideName(value('--- ')) ?? names.before
  const after = unquoted(value('rename to ') ?? value('copy to ')) ?? sideName(value('+++ ')) ?? names.after
  const hunks = at === -1 ? [] : parseHunks(lines.slice(at))
  const count = (kind: PatchLine['kind']): number =>
    hunks.reduce((sum, hunk) => sum + hunk.lines.filter((line) => line.kind === kind).length, 0)
  const change: FileChange = created
    ? 'added'
    : deleted
      ? 'deleted'
      : renamed
        ? 'renamed'
        : copied
          ? 'copied'
          : hunks.length === 0 && !isBinary && afterMode
            ? 'mode'
            : 'modified'
  const modes = {
    ...((beforeMode ?? deleted) && { before: beforeMode ?? deleted }),
    ...((afterMode ?? created) && { after: afterMode ?? created }),
  }
  return {
    path: change === 'deleted' ? before : after,
    ...((renamed ?? copied) !== undefined && { from: before }),
    change,
    isBinary,
    ...(Object.keys(modes).length > 0 && { modes: modes as { before?: string; after?: string } }),
    insertions: count('added'),
    deletions: count('removed'),
    hunks,
  }
}

function parseHunks(lines: readonly string[]): PatchHunk[] {
  const hunks: { header: string; beforeStart: number; afterStart: number; lines: PatchLine[] }[] = []
  let before = 0
  let after = 0
  let left = { before: 0, after: 0 }
  for (const line of lines) {
    const start = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/.exec(line)
    const current = hunks.at(-1)
    if (start && left.before <= 0 && left.after <= 0) {
      const [, beforeStart = '0', beforeCount = '1', afterStart = '0', afterCount = '1', header = ''] = start
      before = Number(beforeStart)
      after = Number(afterStart)
      left = { before: Number(beforeCount), after: Number(afterCount) }
      hunks.push({ header, beforeStart: before, afterStart: after, lines: [] })
    } else if (current && line.startsWith('\\')) {
      current.lines.push({ kind: 'note', text: line.slice(2) })
    } else if (current && left.after > 0 && line.startsWith('+')) {
      current.lines.push({ kind: 'added', text: line.slice(1), after: after++ })
      left.after -= 1
    } else if (current && left.before > 0 && line.startsWith('-')) {
      current.lines.push({ kind: 'removed', text: line.slice(1), before: before++ })
      left.before -= 1
    } else if (current && left.before > 0 && left.after > 0 && (line.startsWith(' ') || line === '')) {
      current.lines.push({ kind: 'context', text: line.slice(1), before: before++, after: after++ })
      left = { before: left.before - 1, after: left.after - 1 }
    }
  }
  return hunks
}

/** `diff --git a/x b/x`: both names are the same unless the file is renamed, which other lines tell. */
function headerNames(line: string): { before: string; after: string } {
  const rest = line.slice('diff --git '.length)
  const quoted = /^("(?:[^"\\]|\\.)*"|\S+) ("(?:[^"\\]|\\.)*"|.+)$/.exec(rest)
  const half = (rest.length - 1) / 2
  const [one, other] =
    rest.startsWith('"') || rest.endsWith('"')
      ? [quoted?.[1] ?? rest, quoted?.[2] ?? rest]
      : [rest.slice(0, half), rest.slice(half + 1)]
  return { before: withoutSide(unquoted(one) ?? ''), after: withoutSide(unquoted(other) ?? '') }
}

function sideName(text: string | undefined): string | undefined {
  const name = unquoted(text?.replace(/\t$/, ''))
  return name === undefined || name === '/dev/null' ? undefined : withoutSide(name)
}

const withoutSide = (name: string): string => name.replace(/^[ab]\//, '')

const escapes: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, '\\': 92 }

/** Git quotes names with special characters as C does; bytes beyond ASCII are octal and together UTF-8. */
function unquoted(text: string | undefined): string | undefined {
  if (text === undefined || !/^".*"$/.test(text)) return text
  const bytes: number[] = []
  for (const [, octal, letter, plain] of text.slice(1, -1).matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/g)) {
    if (octal) bytes.push(Number.parseInt(octal, 8))
    else if (letter) bytes.push(escapes[letter] ?? letter.charCodeAt(0))
    else bytes.push(...new TextEncoder().encode(plain))
  }
  return new TextDecoder().decode(new Uint8Array(bytes))
}

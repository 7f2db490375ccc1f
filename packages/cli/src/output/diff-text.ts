import type { ChangedFile, ChangedFiles } from '@corral/protocol'
import { terminalText } from './terminal-text.js'

/** Widest bar of `+` and `-`. */
const barWidth = 40

/** One path a line, for people and for `xargs`. */
export function namesOf({ files }: ChangedFiles): string {
  return files.map(({ path }) => terminalText(path)).join('\n')
}

/** Like `git diff --stat`: a line per file and a sum. */
export function statOf({ files, additions, deletions, truncated }: ChangedFiles): string {
  if (files.length === 0) return truncated ? 'the change is too large to be kept as a patch' : 'no changes'
  const names = files.map(({ path, previous_path }) =>
    terminalText(previous_path === undefined ? path : `${previous_path} => ${path}`),
  )
  const width = Math.max(...names.map((name) => name.length))
  const most = Math.max(...files.map((file) => file.additions + file.deletions))
  const lines = files.map((file, index) => ` ${names[index]!.padEnd(width)} | ${changeOf(file, most)}`)
  const more = truncated ? ', and more files' : ''
  return [
    ...lines,
    ` ${files.length} file${files.length === 1 ? '' : 's'} changed${more}, ${additions} insertion${additions === 1 ? '' : 's'}(+), ${deletions} deletion${deletions === 1 ? '' : 's'}(-)`,
  ].join('\n')
}

function changeOf({ additions, deletions, binary, status }: ChangedFile, most: number): string {
  if (binary) return 'Bin'
  const total = additions + deletions
  if (total === 0) return status
  const scale = most > barWidth ? barWidth / most : 1
  const bar = (count: number, sign: string): string =>
    sign.repeat(count === 0 ? 0 : Math.max(1, Math.floor(count * scale)))
  return `${total} ${bar(additions, '+')}${bar(deletions, '-')}`
}

/** A patch as JSON can hold it: the bytes of files in any encoding are not always text. */
export function encoded(patch: Buffer): { diff: string; encoding: 'utf8' | 'base64' } {
  const text = patch.toString('utf8')
  if (Buffer.from(text, 'utf8').equals(patch)) return { diff: text, encoding: 'utf8' }
  return { diff: patch.toString('base64'), encoding: 'base64' }
}

import type { TaskMessageRequest } from '@corral/protocol'
import type { PatchLine } from './patch.js'

/** A remark on a line of a change, not sent yet. */
export interface DraftComment {
  readonly path: string
  /** Absent: about the file as a whole. */
  readonly line?: number
  /** First line of a range that ends at `line`. */
  readonly startLine?: number
  readonly side: 'old' | 'new'
  readonly code: string
  readonly text: string
}

/** Where a line of a patch can be remarked on: on the side it exists on. */
export function placeOf(line: PatchLine): { side: 'old' | 'new'; line: number } | undefined {
  if (line.after !== undefined) return { side: 'new', line: line.after }
  return line.before === undefined ? undefined : { side: 'old', line: line.before }
}

/** Of a comment and of the line it stands under. */
export const placeKey = ({ side, line }: { side: string; line?: number | undefined }): string => `${side} ${line ?? ''}`

export function isComments(value: unknown): value is Record<string, DraftComment[]> {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every(
      (list) =>
        Array.isArray(list) &&
        list.every((one: Partial<DraftComment>) => typeof one?.path === 'string' && typeof one.text === 'string'),
    )
  )
}

/** One message with every remark and the code it is about. */
export function reviewMessage(text: string, comments: readonly DraftComment[]): TaskMessageRequest {
  const task = text.trim() || `Please address ${comments.length === 1 ? 'this remark' : 'these remarks'} on the change.`
  return {
    task,
    comments: comments.map(({ path, line, startLine, side, code, text: remark }) => ({
      path,
      text: remark,
      ...(line === undefined ? {} : { line, side }),
      ...(line === undefined || startLine === undefined || startLine >= line ? {} : { start_line: startLine }),
      ...(code === '' ? {} : { code }),
    })),
  }
}

/** The lines of one side of a hunk from `start` to `end`, as the agent shall see them. */
export function codeOf(lines: readonly PatchLine[], side: 'old' | 'new', start: number, end: number): string {
  const numberOf = (line: PatchLine): number | undefined => (side === 'new' ? line.after : line.before)
  return lines
    .filter((line) => {
      const number = numberOf(line)
      return number !== undefined && number >= start && number <= end
    })
    .map(({ text }) => text)
    .join('\n')
}

/** The first line of that side in a hunk, where a range can begin. */
export function firstLineOf(lines: readonly PatchLine[], side: 'old' | 'new'): number | undefined {
  for (const line of lines) {
    const number = side === 'new' ? line.after : line.before
    if (number !== undefined) return number
  }
  return undefined
}

export const placeWords = ({ line, startLine }: Pick<DraftComment, 'line' | 'startLine'>): string =>
  startLine !== undefined && line !== undefined && startLine < line ? `lines ${startLine} to ${line}` : `line ${line}`

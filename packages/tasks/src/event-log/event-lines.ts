import { type FileHandle, open } from 'node:fs/promises'
import type { TaskEvent } from '@corral/protocol'

/** An event as it stands in the file: with who it came from. */
export type StoredEvent = TaskEvent & { source?: 'agent' }

export interface EventLines {
  events: StoredEvent[]
  /** Where the next line begins. Equal to the offset asked for when there is no further whole line. */
  nextOffset: number
}

const chunkBytes = 256 * 1024
const newline = 10

/**
 * Reads whole lines from a byte offset on, at most about 256 KiB of them and nothing at or past `endOffset`. The file is
 * open only for this call, so a reader that takes its time holds nothing. A line without its end is left for the next
 * call, a missing file has no lines.
 */
export async function readEventLines(
  path: string,
  offset: number,
  endOffset: number = Number.POSITIVE_INFINITY,
  after = 0,
): Promise<EventLines> {
  const nothing = { events: [], nextOffset: offset }
  if (offset >= endOffset) return nothing
  let handle: FileHandle
  try {
    handle = await open(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return nothing
    throw error
  }
  try {
    for (let size = chunkBytes; ; size *= 2) {
      const wanted = Math.min(size, endOffset - offset)
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(wanted), 0, wanted, offset)
      const end = buffer.subarray(0, bytesRead).lastIndexOf(newline) + 1
      if (end > 0) return { events: parseLines(buffer.subarray(0, end), after), nextOffset: offset + end }
      if (bytesRead < wanted || wanted < size) return nothing
    }
  } finally {
    await handle.close()
  }
}

function parseLines(lines: Buffer, after: number): StoredEvent[] {
  const events: StoredEvent[] = []
  for (const line of lines.toString('utf8').split('\n')) {
    if (line === '' || sequenceOf(line) <= after) continue
    const event = parseLine(line)
    if (event && event.sequence > after) events.push(event)
  }
  return events
}

/** The sequence is the first member of a line: what a reader does not want need not be parsed. */
function sequenceOf(line: string): number {
  const match = /^\{"sequence":(\d+)/.exec(line)
  return match ? Number(match[1]) : Number.POSITIVE_INFINITY
}

/** A line that the disk damaged is left out. */
function parseLine(line: string): StoredEvent | undefined {
  try {
    return JSON.parse(line) as StoredEvent
  } catch {
    return undefined
  }
}

import type { ChangedFile } from '@corral/protocol'
import { unquoted } from '../sandbox/collected-work.js'

/** One file of a patch, and where its part lies. */
export interface PatchFile extends ChangedFile {
  offset: number
}

/** Longest beginning of a line that is looked at: a header holds two paths, whatever else is longer is content. */
const headBytes = 20 * 1024

/** The files of a patch as git writes it, in its order. Bytes may be cut anywhere; content is counted, never kept. */
export async function* patchFiles(patch: AsyncIterable<Uint8Array>): AsyncGenerator<PatchFile> {
  let last: PatchFile | undefined
  for await (const file of parts(patch)) {
    if (last && isOtherKind(last, file)) {
      last = replaced(last, file)
      continue
    }
    if (last) yield last
    last = file
  }
  if (last) yield last
}

/** git writes a file that became a link, or the other way round, as one that went and one that came. */
const isOtherKind = (last: PatchFile, file: PatchFile): boolean =>
  last.path === file.path && last.status === 'deleted' && file.status === 'added'

function replaced(last: PatchFile, file: PatchFile): PatchFile {
  return {
    ...last,
    status: 'type_changed',
    additions: file.additions,
    binary: last.binary || file.binary,
    patch_bytes: last.patch_bytes + file.patch_bytes,
  }
}

async function* parts(patch: AsyncIterable<Uint8Array>): AsyncGenerator<PatchFile> {
  let current: OpenFile | undefined
  let offset = 0
  for await (const line of lines(patch)) {
    if (line.head.startsWith('diff --git ')) {
      if (current) yield current.closed(offset)
      current = new OpenFile(line.head, offset)
    } else current?.push(line.head)
    offset += line.bytes
  }
  if (current) yield current.closed(offset)
}

class OpenFile {
  #isContent = false
  #isBinary = false
  #status: ChangedFile['status'] = 'modified'
  #path: string
  #previous: string | undefined
  #additions = 0
  #deletions = 0

  constructor(
    header: string,
    readonly offset: number,
  ) {
    this.#path = pathOfHeader(header)
  }

  push(line: string): void {
    if (this.#isContent) {
      if (line.startsWith('+')) this.#additions += 1
      else if (line.startsWith('-')) this.#deletions += 1
      return
    }
    // What follows is base85 without a space: no header can be taken for one of its lines.
    if (this.#isBinary) return
    if (line.startsWith('@@ ')) this.#isContent = true
    else if (line.startsWith('GIT binary patch') || line.startsWith('Binary files ')) this.#isBinary = true
    else if (line.startsWith('new file mode ')) this.#status = 'added'
    else if (line.startsWith('deleted file mode ')) this.#status = 'deleted'
    else if (line.startsWith('rename from ')) {
      this.#status = 'renamed'
      this.#previous = unquoted(line.slice('rename from '.length))
    } else if (line.startsWith('rename to ')) this.#path = unquoted(line.slice('rename to '.length))
  }

  closed(end: number): PatchFile {
    return {
      path: this.#path,
      ...(this.#previous === undefined ? {} : { previous_path: this.#previous }),
      status: this.#status,
      additions: this.#additions,
      deletions: this.#deletions,
      binary: this.#isBinary,
      patch_bytes: end - this.offset,
      offset: this.offset,
    }
  }
}

/** `diff --git a/X b/X`: both names are the same where nothing else says so, so the half of it is one. */
function pathOfHeader(header: string): string {
  const names = header.slice('diff --git '.length)
  const quoted = /^"(?:[^"\\]|\\.)*" ("(?:[^"\\]|\\.)*")$/s.exec(names)?.[1]
  return (quoted ? unquoted(quoted) : names.slice((names.length - 1) / 2 + 1)).slice(2)
}

/** Lines with their length in bytes; of a long one only the beginning. */
async function* lines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<{ head: string; bytes: number }> {
  let kept: Buffer[] = []
  let keptBytes = 0
  let bytes = 0
  const keep = (part: Buffer): void => {
    bytes += part.length
    const room = headBytes - keptBytes
    if (room <= 0 || part.length === 0) return
    kept.push(Buffer.from(part.subarray(0, room)))
    keptBytes += Math.min(room, part.length)
  }
  const take = (newline: number): { head: string; bytes: number } => {
    const line = { head: Buffer.concat(kept).toString('utf8'), bytes: bytes + newline }
    kept = []
    keptBytes = 0
    bytes = 0
    return line
  }
  for await (const chunk of chunks) {
    const data = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    let start = 0
    for (let end = data.indexOf(10); end >= 0; end = data.indexOf(10, start)) {
      keep(data.subarray(start, end))
      yield take(1)
      start = end + 1
    }
    keep(data.subarray(start))
  }
  if (bytes > 0) yield take(0)
}

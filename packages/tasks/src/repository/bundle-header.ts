import type { FileHandle } from 'node:fs/promises'

export interface BundleHeader {
  /** Commits the receiver must have. */
  prerequisites: string[]
  refs: { name: string; commit: string }[]
  /** Where the pack begins. */
  packOffset: number
}

/** A header holds refs and prerequisites of one task's work: a few lines, but each prerequisite with the subject of its commit. */
const maxHeaderBytes = 16 * 1024 * 1024
const firstHeaderBytes = 64 * 1024
const prerequisiteLine = /^-([0-9a-f]{40}|[0-9a-f]{64})( |$)/
const refLine = /^([0-9a-f]{40}|[0-9a-f]{64}) (refs\/\S+)$/

/**
 * Reads what a bundle says about itself, without git: signature, capabilities (version 3), prerequisites, refs, an
 * empty line, then the pack. Answers a sentence on what is wrong with anything else.
 */
export async function readBundleHeader(file: FileHandle): Promise<BundleHeader | string> {
  let bytes = await readStart(file, firstHeaderBytes)
  if (!/^# v[23] git bundle\n/.test(bytes.toString('latin1', 0, 17))) return 'it is not a git bundle'
  let end = bytes.indexOf('\n\n')
  if (end < 0 && bytes.length === firstHeaderBytes) {
    bytes = await readStart(file, maxHeaderBytes)
    end = bytes.indexOf('\n\n')
  }
  if (end < 0) return `its header is longer than ${maxHeaderBytes} bytes or cut off`
  const header: BundleHeader = { prerequisites: [], refs: [], packOffset: end + 2 }
  for (const line of bytes.toString('utf8', 0, end).split('\n').slice(1)) {
    if (/^@object-format=(sha1|sha256)$/.test(line)) continue
    const prerequisite = prerequisiteLine.exec(line)
    const ref = refLine.exec(line)
    if (prerequisite) header.prerequisites.push(prerequisite[1]!)
    else if (ref) header.refs.push({ commit: ref[1]!, name: ref[2]! })
    else return `its header has a line Corral does not know: ${JSON.stringify(line.slice(0, 80))}`
  }
  return header
}

async function readStart(file: FileHandle, maxBytes: number): Promise<Buffer> {
  const bytes = Buffer.alloc(maxBytes)
  let length = 0
  while (length < bytes.length) {
    const { bytesRead } = await file.read(bytes, length, bytes.length - length, length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return bytes.subarray(0, length)
}

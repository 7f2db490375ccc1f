import { inflateRawSync } from 'node:zlib'

export interface ZipEntry {
  name: string
  read(): Buffer
}

const endSignature = 0x06054b50
const entrySignature = 0x02014b50

/** The files of a zip archive, without ZIP64, as Go modules and wheels are. Throws where it is damaged. */
export function readZip(archive: Buffer): ZipEntry[] {
  const end = archive.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]))
  if (end < 0 || archive.readUInt32LE(end) !== endSignature) throw new Error('this is no zip archive')
  const entries: ZipEntry[] = []
  let at = archive.readUInt32LE(end + 16)
  for (let left = archive.readUInt16LE(end + 10); left > 0 || isEntry(archive, at); left--) {
    if (!isEntry(archive, at)) throw new Error('the list of the zip archive is damaged')
    const [method, compressed, size] = [
      archive.readUInt16LE(at + 10),
      archive.readUInt32LE(at + 20),
      archive.readUInt32LE(at + 24),
    ]
    const [nameLength, extra, comment] = [28, 30, 32].map((offset) => archive.readUInt16LE(at + offset)) as [
      number,
      number,
      number,
    ]
    const local = archive.readUInt32LE(at + 42)
    const name = archive.subarray(at + 46, at + 46 + nameLength).toString('utf8')
    at += 46 + nameLength + extra + comment
    if (name.endsWith('/')) continue
    entries.push({
      name,
      read() {
        const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28)
        const data = archive.subarray(start, start + compressed)
        const content = method === 0 ? data : inflateRawSync(data, { maxOutputLength: Math.max(size, 1) })
        if (content.length !== size) throw new Error(`${name} of the zip archive is damaged`)
        return content
      },
    })
  }
  return entries
}

function isEntry(archive: Buffer, at: number): boolean {
  return at + 46 <= archive.length && archive.readUInt32LE(at) === entrySignature
}

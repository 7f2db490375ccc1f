import type { Stats } from 'node:fs'
import { lstat, open, opendir, rename, rm, rmdir, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { CorralError, type DirectoryListing, daemonLimits, type FileInfo, fileHeaders } from '@corral/protocol'
import { makeDirectory } from './make-directory.js'
import { pullStream } from './pull-stream.js'
import { bodyChunks, queryFlag } from './request-input.js'
import { temporaryName } from './temporary-name.js'
import { writeAll } from './write-all.js'

const chunkBytes = 64 * 1024

/** The file's bytes, or the listing of a directory as JSON. Links are followed. */
export async function getFile(path: string): Promise<Response> {
  const info = await stat(path)
  if (info.isDirectory()) return Response.json(await listDirectory(path), { headers: infoHeaders(path, info) })
  if (!info.isFile()) throw new CorralError('Invalid', `"${path}" is not a regular file`)
  const file = await open(path, 'r')
  let position = 0
  const next = async (): Promise<Uint8Array | undefined> => {
    const bytes = Buffer.allocUnsafe(chunkBytes)
    const { bytesRead } = await file.read(bytes, 0, chunkBytes, position)
    position += bytesRead
    return bytesRead > 0 ? bytes.subarray(0, bytesRead) : undefined
  }
  // Without a content length: a file may shrink or grow while it is read.
  const headers = { ...infoHeaders(path, info), 'content-type': 'application/octet-stream' }
  return new Response(
    pullStream(next, () => file.close()),
    { headers },
  )
}

/** Type, size, mode and time as headers. Links are not followed. */
export async function headFile(path: string): Promise<Response> {
  return new Response(null, { headers: infoHeaders(path, await lstat(path)) })
}

/** Replaces the file as a whole: the content goes to a new file beside it, which then takes its name. */
export async function putFile(path: string, url: URL, request: Request): Promise<Response> {
  const mode = readMode(url.searchParams.get('mode'))
  if (queryFlag(url.searchParams.get('mkdirs'), 'mkdirs')) await makeDirectory(dirname(path))
  const existing = await lstat(path).catch(() => undefined)
  if (existing?.isDirectory()) throw new CorralError('IsADirectory', `"${path}" is a directory`)
  const keptMode = existing?.isFile() ? existing.mode & 0o7777 : 0o644
  const temporary = join(dirname(path), temporaryName())
  try {
    const file = await open(temporary, 'wx', 0o600)
    try {
      await writeAll(file, bodyChunks(request))
      await file.chmod(mode ?? keptMode)
    } finally {
      await file.close()
    }
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  return new Response(null, { status: existing ? 200 : 201 })
}

/** Deletes a file, a link, an empty directory, or with `recursive` a directory with all in it. */
export async function deleteFile(path: string, url: URL): Promise<Response> {
  if (path === '/') throw new CorralError('Invalid', 'the root directory cannot be deleted')
  const info = await lstat(path)
  if (!info.isDirectory()) await unlink(path)
  else if (queryFlag(url.searchParams.get('recursive'), 'recursive')) await rm(path, { recursive: true })
  else await rmdir(path)
  return new Response(null, { status: 204 })
}

async function listDirectory(path: string): Promise<DirectoryListing> {
  const entries: FileInfo[] = []
  for await (const { name, place } of entriesOf(path)) {
    if (entries.length >= daemonLimits.listingEntries) return { entries: sorted(entries), truncated: true }
    // An entry deleted meanwhile is no entry.
    const info = await lstat(place).catch(() => undefined)
    if (info) entries.push(fileInfo(name, info))
  }
  return { entries: sorted(entries) }
}

/**
 * Entries of a directory with the bytes of their path: a name that is no UTF-8 is shown with replacement characters, and is
 * found only by its bytes.
 */
export async function* entriesOf(directory: string | Buffer): AsyncGenerator<{ name: string; place: Buffer }> {
  // Node types the entries of a directory as text, whatever encoding they are asked for in.
  const opened = (await opendir(directory as string, { encoding: 'buffer' as BufferEncoding })) as unknown
  for await (const entry of opened as AsyncIterable<{ name: Buffer }>) {
    yield { name: entry.name.toString(), place: Buffer.concat([Buffer.from(directory), slash, entry.name]) }
  }
}

const slash = Buffer.from('/')

function sorted(entries: FileInfo[]): FileInfo[] {
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1))
}

export function fileInfo(name: string, info: Stats): FileInfo {
  return {
    name,
    type: fileType(info),
    size: info.size,
    mode: (info.mode & 0o7777).toString(8).padStart(4, '0'),
    modified_at: info.mtime.toISOString(),
  }
}

function infoHeaders(path: string, stats: Stats): Record<string, string> {
  const info = fileInfo(basename(path), stats)
  return {
    [fileHeaders.type]: info.type,
    [fileHeaders.size]: String(info.size),
    [fileHeaders.mode]: info.mode,
    [fileHeaders.modifiedAt]: info.modified_at,
  }
}

function fileType(info: Stats): FileInfo['type'] {
  if (info.isFile()) return 'file'
  if (info.isDirectory()) return 'directory'
  return info.isSymbolicLink() ? 'symlink' : 'other'
}

function readMode(text: string | null): number | undefined {
  if (text === null || text === '') return undefined
  if (!/^0?[0-7]{3}$/.test(text)) throw new CorralError('Invalid', '"mode" must be an octal mode such as 0644')
  return Number.parseInt(text, 8)
}

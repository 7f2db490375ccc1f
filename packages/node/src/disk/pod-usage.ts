import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  type Dir,
  type Dirent,
  lstatSync,
  opendirSync,
  readdirSync,
  readFileSync,
  type Stats,
  statSync,
} from 'node:fs'

/** Space on a disk: allocated bytes, and the names of files, directories and links. */
export interface Usage {
  bytes: number
  inodes: number
}

/** What a pod takes. `parts` are `home`, `tmp`, `volumes/NAME` and `logs/CONTAINER`; `total` has what is in none of them too. */
export interface PodUsage {
  total: Usage
  parts: Record<string, Usage>
  tookMs: number
}

export interface MeasureRequest {
  /** `<data>/pods/<uid>`. */
  directory: string
  /** Counting stops past either: the rest would change nothing. */
  enough: Usage
  /** The user all processes of the pod, and no others, run as; absent where pods share one. */
  hostUid?: number
}

/**
 * Counts allocated blocks (a sparse file takes what it holds, one with several names what it holds once) and every name: a
 * few files may have millions, each of which costs room in its directory and time to walk, to copy and to remove. Files that
 * were deleted but are still open count as well. What vanishes while counting counts nothing; names that are no text, and directories deeper than a
 * path can say, count like any other. Blocks its thread: large trees belong into `usage-thread`.
 */
export function measurePod({ directory, enough, hostUid }: MeasureRequest): PodUsage {
  const began = performance.now()
  const usage: PodUsage = { total: { bytes: 0, inodes: 0 }, parts: {}, tookMs: 0 }
  const seen = new Set<string>()
  const add = (part: string | undefined, status: Stats): void => {
    const identity = `${status.dev}:${status.ino}`
    const hasMoreNames = !status.isDirectory() && status.nlink !== 1
    const isCounted = hasMoreNames && seen.has(identity)
    if (hasMoreNames) seen.add(identity)
    addAll(part, { bytes: isCounted ? 0 : status.blocks * 512, inodes: 1 })
  }
  const addAll = (part: string | undefined, more: Usage): void => {
    addUsage(usage.total, more)
    if (part === undefined) return
    usage.parts[part] ??= { bytes: 0, inodes: 0 }
    addUsage(usage.parts[part], more)
  }
  let deepPlaces = 0
  const waiting: Place[] = [{ path: Buffer.from(directory), names: [] }]
  const isEnough = (): boolean => usage.total.bytes > enough.bytes || usage.total.inodes > enough.inodes
  for (let current = waiting.pop(); current !== undefined && !isEnough(); current = waiting.pop()) {
    for (const entry of entriesOf(current.path)) {
      const child = placeOf(current, entry.name)
      if (child.path.length > longestPathBytes) {
        // No path leads to its entries any more: everything from here on is counted at once.
        if (++deepPlaces > mostDeepPlaces) return { ...usageOfParts(directory), tookMs: performance.now() - began }
        addAll(partOf(current.names), usageBelow(current.path))
        break
      }
      const status = lstatSync(child.path, { throwIfNoEntry: false })
      if (!status) continue
      add(partOf(child.names), status)
      if (entry.isDirectory()) waiting.push(child)
      if (isEnough()) break
    }
  }
  if (hostUid !== undefined) for (const status of deletedFiles(hostUid, directory)) add(undefined, status)
  usage.tookMs = performance.now() - began
  return usage
}

function addUsage(usage: Usage, more: Usage): void {
  usage.bytes += more.bytes
  usage.inodes += more.inodes
}

/** A directory or file below the pod's: its path as the disk has it, and its first two names. */
interface Place {
  path: Buffer
  names: readonly string[]
}

const slash = Buffer.from('/')
/** What the kernel takes as a path, without the NUL at its end. */
const longestPathBytes = 4095

function placeOf(parent: Place, name: Buffer): Place {
  const path = Buffer.concat([parent.path, slash, name])
  return { path, names: parent.names.length < 2 ? [...parent.names, name.toString('latin1')] : parent.names }
}

/** Each costs programs that are started. A pod may have a hundred thousand of them: past these its parts are counted as wholes. */
const mostDeepPlaces = 16

function usageOfParts(directory: string): Omit<PodUsage, 'tookMs'> {
  const usage: Omit<PodUsage, 'tookMs'> = { total: { bytes: 0, inodes: 0 }, parts: {} }
  const below = (name: string): string[] =>
    [...entriesOf(`${directory}/${name}`)].map((entry) => `${name}/${entry.name.toString('utf8')}`)
  for (const part of ['home', 'tmp', ...below('volumes'), ...below('logs')]) {
    if (!statSync(`${directory}/${part}`, { throwIfNoEntry: false })) continue
    const found = usageBelow(Buffer.from(`${directory}/${part}`))
    usage.parts[part] = found
    addUsage(usage.total, found)
  }
  return usage
}

/** What lies below a directory, however deep: `du` walks by descriptors. Where it cannot tell, more than any limit. */
function usageBelow(path: Buffer): Usage {
  const count = (...flags: string[]): number => {
    // The shell gets the directory as bytes: a working directory given to spawn has to be text.
    const script = Buffer.concat([
      Buffer.from("cd '"),
      quoted(path),
      Buffer.from(`' && exec du -s -x ${flags.join(' ')} .`),
    ])
    const { stdout, status } = spawnSync('/bin/sh', {
      input: script,
      timeout: deepCountMs,
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    const found = Number(/^\d+/.exec(stdout?.toString('latin1') ?? '')?.[0])
    return status === 0 && Number.isSafeInteger(found) ? found : Number.MAX_SAFE_INTEGER
  }
  return { bytes: count('--block-size=1'), inodes: count('--inodes', '--count-links') }
}

const deepCountMs = 60_000

function quoted(path: Buffer): Buffer {
  return Buffer.from(path.toString('latin1').replaceAll("'", `'\\''`), 'latin1')
}

function partOf([top = '', name]: readonly string[]): string | undefined {
  if (top === 'home' || top === 'tmp') return top
  return (top === 'volumes' || top === 'logs') && name !== undefined ? `${top}/${name}` : undefined
}

/**
 * Read piece by piece: one directory may hold millions of names. Without root a pod could hide files from us in a directory
 * without read permission: its owner is our own user.
 */
function* entriesOf(directory: Buffer | string): Generator<Dirent<Buffer>> {
  const opened = open(directory)
  if (!opened) return
  try {
    for (let entry = opened.readSync(); entry; entry = opened.readSync()) yield entry as unknown as Dirent<Buffer>
  } catch {
    // It vanished.
  } finally {
    opened.closeSync()
  }
}

function open(directory: Buffer | string): Dir | undefined {
  // Names as bytes: Node takes this encoding here too, and gives entries as `readdir` does; only the types do not say so.
  const options = { encoding: 'buffer' as BufferEncoding, bufferSize: 256 }
  const attempt = (): Dir => opendirSync(directory as string, options)
  try {
    return attempt()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') return undefined
  }
  try {
    const { mode } = statSync(directory)
    chmodSync(directory, 0o700)
    const opened = attempt()
    chmodSync(directory, mode)
    return opened
  } catch {
    return undefined // It vanished, or belongs to another user.
  }
}

/** Files on the pod's disk without a name that a process of the user still has open or mapped: they take space until it ends. */
function* deletedFiles(hostUid: number, directory: string): Iterable<Stats> {
  const device = statSync(directory, { throwIfNoEntry: false })?.dev
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    if (statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid !== hostUid) continue
    const descriptors = [...entriesOf(`/proc/${pid}/fd`)].map(
      ({ name }) => `/proc/${pid}/fd/${name.toString('latin1')}`,
    )
    for (const path of [...descriptors, ...deletedMappings(pid)]) {
      const status = openFile(path)
      if (status?.isFile() && status.nlink === 0 && status.dev === device) yield status
    }
  }
}

/** A mapping keeps its file when the descriptor is closed. Only root may follow these links. */
function deletedMappings(pid: string): string[] {
  let maps: string
  try {
    maps = readFileSync(`/proc/${pid}/maps`, 'latin1')
  } catch {
    return [] // It has ended, or is not ours to read.
  }
  const deleted = maps.split('\n').filter((line) => line.endsWith(' (deleted)'))
  // The kernel leaves out the zeros in front.
  const link = (line: string): string => line.slice(0, line.indexOf(' ')).replace(/(^|-)0+(?=[0-9a-f])/g, '$1')
  return deleted.map((line) => `/proc/${pid}/map_files/${link(line)}`)
}

function openFile(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined // Closed in between.
  }
}

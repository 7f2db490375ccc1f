import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type Logger, SnapshotError, type SnapshotInfo } from '@corral/ports'
import { removeTree } from '../records/remove-tree.js'

/** `snapshot.json` of a snapshot. */
export interface SnapshotRecord extends SnapshotInfo {
  version: typeof formatVersion
  /** The host's uid that owns every file. */
  ownerUid: number
}

/** What a pod has of a snapshot, in `<data>/pods/<uid>/snapshot.json`. It goes with the pod's directory. */
export interface SnapshotHold {
  name: string
  /** The files were copied: they are in the pod's own directories, and nothing has to be attached again. */
  isCopied?: boolean
}

/** Raised when what is on the disk changes its meaning; snapshots of another version are not listed and can be removed. */
const formatVersion = 1
const sealing = '.sealing-'
const removing = '.removing-'

/**
 * `<data>/snapshots`: one directory for each whole snapshot, with `snapshot.json` and `tree-N` for the Nth of its paths.
 * What begins with a dot is half made or half removed: a new process sweeps it.
 */
export class SnapshotDirectory {
  readonly #root: string
  readonly #pods: string
  #unique = 0

  constructor(
    dataDir: string,
    private readonly log: Logger,
  ) {
    this.#root = join(dataDir, 'snapshots')
    this.#pods = join(dataDir, 'pods')
    mkdirSync(this.#root, { recursive: true, mode: 0o700 })
  }

  /** Removes what an earlier process left half done; what this one begins later is not touched. */
  async sweep(): Promise<void> {
    for (const name of readdirSync(this.#root).filter((entry) => entry.startsWith('.'))) {
      this.log.info('half a snapshot is removed', { name })
      await removeTree(join(this.#root, name))
    }
  }

  list(): SnapshotRecord[] {
    return readdirSync(this.#root)
      .flatMap((name) => this.find(name) ?? [])
      .sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1))
  }

  find(name: string): SnapshotRecord | undefined {
    if (name.startsWith('.') || name.includes('/')) return undefined
    const record = readJson<SnapshotRecord>(join(this.#root, name, 'snapshot.json'))
    return record?.version === formatVersion ? record : undefined
  }

  treePath(name: string, index: number): string {
    return join(this.#root, name, `tree-${index}`)
  }

  /**
   * Moves the directories in and shows the snapshot once it is whole. Until then a kill leaves nothing to be seen; where a
   * directory cannot be moved all of them are put back.
   */
  take(record: Omit<SnapshotRecord, 'version'>, sources: readonly string[]): SnapshotRecord {
    const whole: SnapshotRecord = { version: formatVersion, ...record }
    const place = join(this.#root, record.name)
    if (existsSync(place)) throw new SnapshotError('AlreadyExists', `a snapshot "${record.name}" exists already`)
    const staging = join(this.#root, `${sealing}${record.name}-${process.pid}-${this.#unique++}`)
    mkdirSync(staging, { mode: 0o700 })
    const moved: string[] = []
    try {
      for (const [index, source] of sources.entries()) {
        renameSync(source, join(staging, `tree-${index}`))
        moved.push(source)
      }
      writeDurably(join(staging, 'snapshot.json'), whole)
      syncDirectory(staging)
      renameSync(staging, place)
    } catch (cause) {
      for (const [index, source] of moved.entries()) renameSync(join(staging, `tree-${index}`), source)
      rmSync(staging, { recursive: true, force: true })
      const code = (cause as NodeJS.ErrnoException).code === 'EXDEV' ? 'NotMovable' : 'Failed'
      throw new SnapshotError(code, `snapshot "${record.name}": ${(cause as Error).message}`, { cause })
    }
    syncDirectory(this.#root)
    return whole
  }

  /** The pods that hold it. */
  inUse(name: string): string[] {
    return readdirSync(this.#pods).filter((podUid) => this.held(podUid)?.name === name)
  }

  held(podUid: string): SnapshotHold | undefined {
    return readJson(join(this.#pods, podUid, 'snapshot.json'))
  }

  /** From here on the snapshot stays until the pod's directory is gone. */
  hold(podUid: string, hold: SnapshotHold): void {
    const file = join(this.#pods, podUid, 'snapshot.json')
    writeFileSync(`${file}.new`, JSON.stringify(hold), { mode: 0o600 })
    renameSync(`${file}.new`, file)
  }

  release(podUid: string): void {
    rmSync(join(this.#pods, podUid, 'snapshot.json'), { force: true })
  }

  async remove(name: string): Promise<void> {
    const users = this.inUse(name)
    if (users.length > 0)
      throw new SnapshotError('InUse', `snapshot "${name}" is attached to ${users.length} pod(s): ${users.join(', ')}`)
    const trash = join(this.#root, `${removing}${name}-${process.pid}-${this.#unique++}`)
    try {
      renameSync(join(this.#root, name), trash)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
      throw error
    }
    await removeTree(trash)
  }
}

function readJson<T>(file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T // written by this class, in one rename
  } catch {
    return undefined
  }
}

function writeDurably(path: string, value: object): void {
  const fd = openSync(path, 'wx', 0o600)
  try {
    writeFileSync(fd, JSON.stringify(value))
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

function syncDirectory(path: string): void {
  const fd = openSync(path, 'r')
  fsyncSync(fd)
  closeSync(fd)
}

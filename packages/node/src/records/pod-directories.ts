import {
  chmodSync,
  closeSync,
  lchownSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { PodPaths } from '../launch/launch-plan.js'
import type { ContainerState } from './container-state.js'
import { removeTree } from './remove-tree.js'

/** What a pod needs to be picked up again by the next node process. */
export interface PodRecord {
  podUid: string
  namespace: string
  name: string
  hostUid: number
  podIP: string
  startTime: string
  failure?: { reason: string; message: string }
  /** It took too much of the disk: only the main processes of its containers were left alone, until it is evicted. */
  halted?: { at: string; message: string }
  containers: ContainerState[]
}

/** The directories of all pods below `<dataDir>/pods`, one per pod uid. */
export interface PodDirectories {
  paths(podUid: string): PodPaths
  /** Makes the pod's directory with its record in it. Safe to repeat. */
  begin(record: PodRecord): PodPaths
  /** Makes HOME, /tmp, `run` for sockets and the logs directory; all but the last are the pod's. Safe to repeat. */
  fill(podUid: string, hostUid: number): void
  save(record: PodRecord): void
  /** Every record that can be read; a directory without one is left over from a half-made pod and is removed. */
  load(): Promise<PodRecord[]>
  /** Removes what the pod wrote to HOME, /tmp, its own volumes and its snapshot's trees. Its logs and its record stay. */
  clear(podUid: string): Promise<void>
  remove(podUid: string): Promise<void>
}

export function podDirectories(dataDir: string): PodDirectories {
  const root = join(dataDir, 'pods')
  mkdirSync(root, { recursive: true, mode: 0o711 })

  function paths(podUid: string): PodPaths {
    const directory = join(root, podUid)
    return {
      directory,
      home: join(directory, 'home'),
      tmp: join(directory, 'tmp'),
      logs: join(directory, 'logs'),
      hosts: join(directory, 'hosts'),
    }
  }

  function save(record: PodRecord): void {
    const file = join(root, record.podUid, 'record.json')
    writeFileSync(`${file}.new`, JSON.stringify(record), { mode: 0o600 })
    renameSync(`${file}.new`, file)
  }

  return {
    paths,
    begin(record) {
      const own = paths(record.podUid)
      privateDirectory(own.directory, record.hostUid)
      save(record)
      return own
    },
    fill(podUid, hostUid) {
      const own = paths(podUid)
      mkdirSync(own.logs, { recursive: true, mode: 0o700 })
      mkdirSync(join(own.directory, 'termination'), { recursive: true, mode: 0o711 })
      mkdirSync(join(own.directory, 'volumes'), { recursive: true, mode: 0o711 })
      ownedDirectory(join(own.directory, 'run'), hostUid, 0o700)
      ownedDirectory(own.home, hostUid, 0o755)
      ownedDirectory(own.tmp, hostUid, 0o1777)
    },
    save,
    async load() {
      const records: PodRecord[] = []
      for (const entry of await readdir(root)) {
        const record = readRecord(join(root, entry, 'record.json'))
        if (record) records.push(record)
        else await removeTree(join(root, entry))
      }
      return records
    },
    async clear(podUid) {
      const own = paths(podUid)
      for (const path of [own.home, own.tmp, join(own.directory, 'volumes'), join(own.directory, 'snapshot')])
        await removeTree(path)
    },
    remove: (podUid) => removeTree(join(root, podUid)),
  }
}

/** The pod's group may pass through; only the platform's user may list and write. */
function privateDirectory(path: string, hostGid: number): void {
  mkdirSync(path, { recursive: true })
  const isRoot = process.getuid?.() === 0
  if (isRoot) lchownSync(path, 0, hostGid)
  chmodSync(path, isRoot ? 0o710 : 0o700)
}

/** A directory that belongs to `hostUid` where this process may give it away, else to this process's user. */
export function ownedDirectory(path: string, hostUid: number, mode: number): void {
  mkdirSync(path, { recursive: true })
  chmodSync(path, mode)
  giveTo(path, hostUid)
}

/** An empty file of the pod's user. */
export function ownedFile(path: string, hostUid: number): void {
  mkdirSync(dirname(path), { recursive: true })
  closeSync(openSync(path, 'w', 0o644))
  giveTo(path, hostUid)
}

/** Hands a file over to the pod’s user where this process may. A link is handed over itself, never what it points to. */
export function giveTo(path: string, hostUid: number): void {
  if (process.getuid?.() === 0) lchownSync(path, hostUid, hostUid)
}

export function removeFile(path: string): void {
  rmSync(path, { force: true })
}

function readRecord(file: string): PodRecord | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as PodRecord // written by `save` above, atomically
  } catch {
    // Missing or cut off: the pod never got as far as starting anything.
    return undefined
  }
}

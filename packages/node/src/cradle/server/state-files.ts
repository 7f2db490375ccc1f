import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PodPlan } from '../../isolation/isolation.js'
import { type CellKey, type CellRecord, cellKeyText } from '../protocol/messages.js'
import type { CgroupSupport } from './cgroups.js'

export interface PodRecord {
  podUid: string
  hostUid: number
  directory: string
}

/**
 * What a later cradle must know about this one's pods to clear up after it and to report them as lost: a small file per
 * pod and per cell, replaced whole.
 */
export class StateFiles {
  readonly #directory: string
  constructor(cradleDirectory: string) {
    this.#directory = join(cradleDirectory, 'journal')
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
  }

  writePod(pod: PodPlan): void {
    const record: PodRecord = { podUid: pod.podUid, hostUid: pod.hostUid, directory: pod.directory }
    this.#write(`pod.${pod.podUid}.json`, record)
  }

  /** Where this cradle makes its control groups: a later one, started elsewhere, may make its own in another place. */
  writeGroups(groups: CgroupSupport): void {
    this.#write('groups.json', groups)
  }

  groups(): CgroupSupport | undefined {
    return this.#read<CgroupSupport>('groups.')[0]
  }

  writeCell(cell: CellRecord): void {
    this.#write(cellFile(cell), cell)
  }

  removeCell(key: CellKey): void {
    rmSync(join(this.#directory, cellFile(key)), { force: true })
  }

  /** Forgets a pod with all its cells. */
  removePod(podUid: string): void {
    rmSync(join(this.#directory, `pod.${podUid}.json`), { force: true })
    for (const cell of this.cells()) if (cell.podUid === podUid) this.removeCell(cell)
  }

  pods(): PodRecord[] {
    return this.#read<PodRecord>('pod.')
  }

  cells(): CellRecord[] {
    return this.#read<CellRecord>('cell.')
  }

  #write(name: string, record: object): void {
    const path = join(this.#directory, name)
    try {
      writeFileSync(`${path}.new`, JSON.stringify(record), { mode: 0o600 })
      renameSync(`${path}.new`, path)
    } catch {
      // A full disk or a directory taken away costs the next cradle its memory, never this one its cells.
    }
  }

  #read<T>(prefix: string): T[] {
    const found: T[] = []
    for (const name of existsSync(this.#directory) ? readdirSync(this.#directory) : []) {
      if (!name.startsWith(prefix) || !name.endsWith('.json')) continue
      try {
        // Written by us in one rename; what does not parse is from a machine that stopped in the middle.
        found.push(JSON.parse(readFileSync(join(this.#directory, name), 'utf8')) as T)
      } catch {
        rmSync(join(this.#directory, name), { force: true })
      }
    }
    return found
  }
}

function cellFile(key: CellKey): string {
  return `cell.${encodeURIComponent(cellKeyText(key))}.json`
}

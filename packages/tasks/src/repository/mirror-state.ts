import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * What a mirror holds since its last fetch, written beside its objects. It only saves work: without it, or with another
 * answer of the repository, the mirror is fetched.
 */
export interface MirrorState {
  /** Ref of the mirror → commit it stands at. */
  refs: Record<string, string>
  /** Fingerprint of the tags the repository listed. */
  tags: string
  /** Contents of files are here only for the commits that tasks started from. */
  isPartial?: boolean
}

const fileName = 'corral-state.json'

export async function readMirrorState(directory: string): Promise<MirrorState> {
  try {
    const state = JSON.parse(await readFile(join(directory, fileName), 'utf8')) as Partial<MirrorState>
    const isPartial = state.isPartial === true
    return { refs: { ...state.refs }, tags: String(state.tags ?? ''), ...(isPartial ? { isPartial } : {}) }
  } catch {
    // Missing or cut off by a crash: the mirror is fetched once more.
    return { refs: {}, tags: '' }
  }
}

export async function writeMirrorState(directory: string, state: MirrorState): Promise<void> {
  const path = join(directory, fileName)
  await writeFile(`${path}.new`, JSON.stringify(state), { mode: 0o600 })
  await rename(`${path}.new`, path)
}

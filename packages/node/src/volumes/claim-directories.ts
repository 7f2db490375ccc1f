import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { removeLiveTree } from '../records/remove-tree.js'

/** The directories behind PersistentVolumeClaims, below `<dataDir>/volumes`, each with the host uid that owns it. */
export interface ClaimDirectories {
  path(claimUid: string): string
  /** The uid that owns the claim's files, where the claim was used before. */
  ownerOf(claimUid: string): number | undefined
  /** Every uid that owns a claim: none of them may go to a pod that does not use that claim. */
  owners(): number[]
  /** The directory, made if need be and owned by `hostUid`; answers its path. */
  claim(claimUid: string, hostUid: number): Promise<string>
  remove(claimUid: string): Promise<void>
}

export function claimDirectories(dataDir: string): ClaimDirectories {
  const root = join(dataDir, 'volumes')
  mkdirSync(root, { recursive: true, mode: 0o711 })
  const owners = new Map<string, number>()
  for (const name of readdirSync(root)) {
    if (name.endsWith('.owner')) owners.set(name.slice(0, -6), Number(readFileSync(join(root, name), 'utf8')))
  }
  const pathOf = (claimUid: string): string => join(root, claimUid)

  return {
    path: pathOf,
    ownerOf: (claimUid) => owners.get(claimUid),
    owners: () => [...new Set(owners.values())],
    async claim(claimUid, hostUid) {
      const path = pathOf(claimUid)
      if (owners.get(claimUid) === hostUid) return path
      mkdirSync(path, { recursive: true, mode: 0o700 })
      if (process.getuid?.() === 0) await giveTree(path, hostUid)
      const file = join(root, `${claimUid}.owner`)
      writeFileSync(`${file}.new`, String(hostUid), { mode: 0o600 })
      renameSync(`${file}.new`, file)
      owners.set(claimUid, hostUid)
      return path
    },
    async remove(claimUid) {
      // A pod that ends with the claim may still run.
      await removeLiveTree(pathOf(claimUid))
      await rm(join(root, `${claimUid}.owner`), { force: true })
      owners.delete(claimUid)
    },
  }
}

/** `chown -R` goes by descriptors, `-h` changes links themselves: nothing outside the volume is given away. */
async function giveTree(path: string, hostUid: number): Promise<void> {
  await promisify(execFile)('chown', ['-Rh', `${hostUid}:${hostUid}`, '--', path], { maxBuffer: 64 * 1024 * 1024 })
}

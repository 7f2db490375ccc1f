import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import type { ElectionOptions } from '@corral/tasks'
import type { DataDirectory } from './data-directory.js'

/**
 * Who asks for the lease: the data directory on this machine, which one process at a time has locked. After a crash the
 * next process on it is the same candidate and continues at once instead of waiting for the lease to run out.
 */
export function electionIdentity(directory: DataDirectory): string {
  return `${hostname()}_${createHash('sha256').update(directory.path).digest('hex').slice(0, 12)}`
}

/** On a machine of one's own a rival is rare, and each renewal is a write to the disk. */
export const quietElection: Pick<ElectionOptions, 'leaseMs' | 'renewMs' | 'retryMs'> = {
  leaseMs: 60_000,
  renewMs: 40_000,
  retryMs: 15_000,
}

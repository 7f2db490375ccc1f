/**
 * Snapshots of directory trees, kept by the node that built them and attached copy-on-write to later pods.
 *
 * How they are used:
 * 1. A build is an ordinary pod. When its set-up has ended well, `seal` ends the pod and turns some of its directories into
 *    a snapshot.
 * 2. A pod (or a claim's `additionalPodMetadata`) with the annotation `corral.dev/snapshot: NAME` gets every tree of the
 *    snapshot at the path it was taken from: before its containers start, or, when the annotation comes later, while they
 *    run. The condition `corral.dev/SnapshotAttached` says how it went. The trees stay until the pod ends; what the pod
 *    writes is in its own directory, counts as its own disk use and never reaches the snapshot.
 *
 * Names of annotation, condition and reasons: `@corral/resources`.
 */
export interface SnapshotStore {
  /**
   * Ends every process of the pod, which is over afterwards (phase Failed, reason `Sealed`), and moves the directories at
   * `paths` out of it into a new snapshot. Either all of it is there under `name` afterwards or nothing is, also after a
   * kill at any moment. Sealing a name that exists already answers that one if it was sealed from the same pod.
   *
   * Rejects with a `SnapshotError`.
   */
  seal(request: SealRequest): Promise<SnapshotInfo>
  /** Whole snapshots, the oldest first. */
  list(): SnapshotInfo[]
  find(name: string): SnapshotInfo | undefined
  /** The uids of pods that have it attached, or that wait for it. */
  inUse(name: string): string[]
  /** An absent one counts as removed. Rejects with `InUse` while a pod has it. */
  remove(name: string): Promise<void>
  /**
   * Whether a pod can rename directories that come from a snapshot. Where it cannot, `rename` fails with `EXDEV`, which surprises
   * programs that meet a snapshot they did not ask for.
   */
  readonly canRename: boolean
}

export interface SealRequest {
  podUid: string
  /** A DNS label: lower case letters, digits and `-`, at most 63 characters. */
  name: string
  /** Absolute paths of directories as the pod sees them, such as `/workspace/repo` and `/home/agent`; none inside another. */
  paths: readonly string[]
  /** No file may hold one of these values; empty ones are passed over. */
  secrets?: readonly string[]
  /** Kept with the snapshot as it is, for the caller. */
  labels?: Readonly<Record<string, string>>
  signal?: AbortSignal
}

export interface SnapshotInfo {
  name: string
  /** Pods of this namespace may have it. */
  namespace: string
  /** The pod it was made by. */
  podUid: string
  /** Where its trees go. */
  paths: string[]
  /** Allocated on the disk, counted once however many pods have it. */
  bytes: number
  /** Files, directories and links. */
  files: number
  createdAt: string
  labels: Record<string, string>
  /** What the build had left and the snapshot does not have. */
  stripped: { setuid: number; devices: number; sockets: number; attributes: number }
}

export type SnapshotErrorCode =
  /** Not a name, a path that is not absolute, or one inside another. */
  | 'Invalid'
  /** No such pod on this node, or no such directory in it. */
  | 'NotFound'
  /** Another snapshot has the name. */
  | 'AlreadyExists'
  /** A file belongs to another user than the pod's; the message names it. */
  | 'ForeignOwner'
  /** A file holds one of the secrets; the message names the file, never the value. */
  | 'SecretFound'
  /** Another file system lies below a path, or the path is on a PersistentVolumeClaim or in memory. */
  | 'NotMovable'
  /** The compiled helper is missing. */
  | 'Unsupported'
  | 'InUse'
  | 'Failed'

/** Why a snapshot was not made or removed. Callers branch on `code`. */
export class SnapshotError extends Error {
  override readonly name: string = 'SnapshotError'
  constructor(
    readonly code: SnapshotErrorCode,
    message: string,
    options: { cause?: unknown } = {},
  ) {
    super(message, options)
  }
}

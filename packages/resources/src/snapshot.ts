/** On a Pod, or in a claim's `additionalPodMetadata`: the snapshot whose trees the pod gets, once, until it ends. */
export const snapshotAnnotation = 'corral.dev/snapshot'

/**
 * The pod condition that says how the annotation was followed. Its message begins with the name of the snapshot and a colon.
 * Absent until the node has looked at the annotation.
 */
export const snapshotCondition = 'corral.dev/SnapshotAttached'

/**
 * - `Overlay` (True): copy-on-write.
 * - `Copied` (True): this machine cannot; the message says why, and the files are the pod's own copies.
 * - `NotFound`, `Forbidden` (False): no such snapshot, or one of another namespace. Tried again.
 * - `AlreadyAttached` (False): the pod has another one, which stays.
 * - `Failed` (False): the message says why. Tried again.
 */
export type SnapshotReason = 'Overlay' | 'Copied' | 'NotFound' | 'Forbidden' | 'AlreadyAttached' | 'Failed'

/** What `corral.dev/snapshot` may name: a DNS label. */
export function isSnapshotName(text: string): boolean {
  return /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text)
}

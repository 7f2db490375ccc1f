/**
 * The condition by which a node tells how a pod's network stands: its message repeats the egress annotation that is in
 * force. `Unrestricted` is its reason where the node's isolation has no network of its own to close.
 */
export const egressCondition = 'corral.dev/Egress'

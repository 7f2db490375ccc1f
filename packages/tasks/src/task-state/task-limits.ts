export const taskLimits: {
  provisioningMs: number
  sandboxLostGraceMs: number
  /** Sandboxes a task may lose before its agent has started. */
  attempts: number
  /** How often the pod of a claim that is not ready is looked at: nothing else tells of it. */
  podLookMs: number
} = {
  provisioningMs: 5 * 60_000,
  sandboxLostGraceMs: 30_000,
  attempts: 3,
  podLookMs: 2_000,
}

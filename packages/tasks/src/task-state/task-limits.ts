export const taskLimits: {
  provisioningMs: number
  /**
   * How long a sandbox may be away. Its files are still there, and go with it when it is given up: a machine that is busy may
   * need a minute to start ten of them again.
   */
  sandboxLostGraceMs: number
  /** Sandboxes a task may lose before its agent has started. */
  attempts: number
  /** How often the pod of a claim that is not ready is looked at: nothing else tells of it. */
  podLookMs: number
} = {
  provisioningMs: 5 * 60_000,
  sandboxLostGraceMs: 120_000,
  attempts: 3,
  podLookMs: 2_000,
}

import type { Usage } from './pod-usage.js'

export interface LastMeasurement {
  sinceMs: number
  /** How long it took: counting may only take a small part of the time. */
  tookMs: number
  /** What the pod could take then before a limit. */
  headroom: Usage
  /** What the whole disk has grown by since. */
  grown: Usage
}

const regularMs = 15_000
const soonestMs = 100

/**
 * Whether a pod is counted again: now and then, and as soon as half of what it may still take has gone somewhere on the
 * disk. Counting takes at most a twentieth of the time in the first case and a quarter in the second.
 */
export function isMeasurementDue({ sinceMs, tookMs, headroom, grown }: LastMeasurement): boolean {
  if (sinceMs >= Math.max(regularMs, 20 * tookMs)) return true
  const mayBeOver = grown.bytes * 2 >= Math.max(1, headroom.bytes) || grown.inodes * 2 >= Math.max(1, headroom.inodes)
  return mayBeOver && sinceMs >= Math.max(soonestMs, 4 * tookMs)
}

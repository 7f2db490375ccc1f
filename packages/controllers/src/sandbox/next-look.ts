import type { ReconcileResult } from '@corral/runtime'
import { type Expiry, immediatelyMs } from './expiry.js'

/** When a Sandbox is looked at again after its children were seen to, and what becomes of a patch that waits. */
export interface NextLook {
  result: ReconcileResult
  /** `keep`: a pass with errors says nothing about the patch; the window goes on. */
  deferral: 'begin' | 'end' | 'keep'
}

export function nextLook({
  expiry,
  deferredMs,
  hasErrors,
}: {
  expiry: Expiry
  /** How long a metadata patch of the Pod may still wait; undefined where none does. */
  deferredMs: number | undefined
  hasErrors: boolean
}): NextLook {
  const deferral = hasErrors ? 'keep' : deferredMs === undefined ? 'end' : 'begin'
  const expiryMs = expiry.expired ? immediatelyMs : expiry.requeueAfterMs
  const delays = [expiryMs, deferral === 'begin' ? deferredMs : undefined].filter((delay) => delay !== undefined)
  return { deferral, result: delays.length > 0 ? { requeueAfterMs: Math.min(...delays) } : {} }
}

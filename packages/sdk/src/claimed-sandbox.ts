import type { KubeClient } from '@corral/kube'
import {
  type Condition,
  type Sandbox,
  type SandboxClaim,
  SandboxClaims,
  Sandboxes,
  type Stored,
} from '@corral/resources'
import { readyVerdict } from './ready-verdict.js'
import { SandboxError } from './sandbox-error.js'
import { type WaitOptions, waitFor } from './wait-for.js'

/**
 * The sandbox of a claim, once it is ready. One that is made for this claim is read while its pod starts: reading it when the
 * claim is ready would be one more round trip before the first command.
 */
export async function waitForSandbox(
  kube: KubeClient,
  ref: { name: string; namespace: string },
  request: WaitOptions,
  created: Stored<SandboxClaim>,
  usesAddresses: boolean,
): Promise<Stored<Sandbox>> {
  const call = request.signal ? { signal: request.signal } : {}
  const read = (name: string) => kube.get(Sandboxes, { name, namespace: ref.namespace }, call)
  let early: Promise<Stored<Sandbox> | undefined> | undefined
  const claim = await waitForClaim(kube, ref, request, created, (name) => {
    // A warm sandbox has another name, and changes until it is adopted.
    if (name === ref.name && !usesAddresses) early ??= read(name).catch(() => undefined)
  })
  const { name, conditions } = claim
  const known = await early
  // The claim repeats the conditions of its sandbox.
  if (known && name === ref.name) return { ...known, status: { ...known.status, conditions } }
  return read(name)
}

/** The name of a claim's sandbox, once it is ready, with its conditions. `onNamed` is told of one that is not ready yet. */
export async function waitForClaim(
  kube: KubeClient,
  ref: { name: string; namespace: string },
  options: WaitOptions,
  known?: Stored<SandboxClaim>,
  onNamed: (name: string) => void = () => {},
): Promise<{ name: string; conditions: Condition[] }> {
  const judge = readyVerdict('SandboxClaim', ref.name)
  const claim: Stored<SandboxClaim> = await waitFor(
    kube,
    SandboxClaims,
    ref,
    (object) => {
      const verdict = judge(object)
      if (!verdict.done && object.status?.sandbox?.name) onNamed(object.status.sandbox.name)
      if (!verdict.done || object.status?.sandbox?.name) return verdict
      return { done: false, why: 'the claim names no sandbox yet' }
    },
    { ...options, known },
  )
  const name = claim.status?.sandbox?.name
  if (!name) throw new SandboxError('ProtocolViolation', `claim "${ref.name}" is ready without a sandbox`)
  return { name, conditions: claim.status?.conditions ?? [] }
}

import { isNotFound, type Sandbox, Sandboxes, type SandboxStatus, type Stored } from '@corral/resources'
import { mergeDiff } from '../shared/merge-diff.js'
import type { Span } from '../shared/tracing.js'
import type { SandboxPorts } from './ports.js'
import { reportTransitions } from './reports.js'
import { isNodeNameOnly } from './status.js'

/** One look at one Sandbox. */
export interface ReconcileContext {
  key: string
  sandbox: Stored<Sandbox>
  hash: string
  span: Span
  signal: AbortSignal
}

/** Writes what changed and nothing else. We are the only writer of this status, so the patch needs no lock. */
export async function writeStatus(
  context: ReconcileContext,
  status: SandboxStatus,
  ports: SandboxPorts,
): Promise<unknown[]> {
  const before = context.sandbox.status ?? {}
  const diff = mergeDiff(before, status)
  if (!diff || isNodeNameOnly(before, status, diff)) return []
  const { name, namespace = '' } = context.sandbox.metadata
  const patch = { type: 'merge', body: { status: diff } } as const
  try {
    const options = { subresource: 'status', signal: context.signal }
    ports.state.sandboxes.remember(await ports.client.patch(Sandboxes, { name, namespace }, patch, options))
    reportTransitions(context.sandbox, status, ports)
    return []
  } catch (error) {
    return isNotFound(error) ? [] : [error]
  }
}

import { type CorralError, DaemonClient, daemonPort, type Fetch } from '@corral/protocol'
import type { SandboxTransport } from '../connection/sandbox-transport.js'
import { SandboxError } from '../sandbox-error.js'
import { corralRuntime } from './corral-runtime.js'
import { type Detected, sandboxdPort } from './detect-runtime.js'
import { legacyRuntime } from './legacy-runtime.js'
import type { SandboxRuntime } from './sandbox-runtime.js'

export interface OpenRuntime {
  readonly runtime: SandboxRuntime
  /** Ends the connections of the runtime's own; the transport stays open. */
  readonly close?: (() => void) | undefined
}

/** The client of the runtime that was found. */
export async function openRuntime(
  found: Detected,
  transport: SandboxTransport,
  options: { authorize(fetch: Fetch): Fetch; onCut(failure: CorralError): Promise<void> },
): Promise<OpenRuntime> {
  const { authorize, onCut } = options
  const fetch = authorize(transport.fetchTo(found.kind === 'sandboxd' ? sandboxdPort : daemonPort))
  switch (found.kind) {
    case 'corral': {
      const { boot, lines } = found
      return { runtime: corralRuntime(new DaemonClient({ fetch }), boot, onCut, lines), close: () => lines?.close() }
    }
    case 'legacy':
      return { runtime: legacyRuntime(fetch, onCut) }
    case 'sandboxd': {
      const { dial } = transport
      if (!dial)
        throw new SandboxError('Unsupported', `gRPC does not pass through a connection of type "${transport.kind}"`)
      // Loaded when a sandbox needs it: most do not.
      const { sandboxdRuntime } = await import('./sandboxd-runtime.js')
      const runtime = sandboxdRuntime(fetch, () => dial(9090), onCut)
      return { runtime, close: () => runtime.close() }
    }
  }
}

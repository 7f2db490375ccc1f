import { type Context, strategicPatch } from './context.js'
import { at } from './kube-body.js'
import type { WatchStream } from './watch-stream.js'

/** A pod with this gate is Ready only when a Service leads to it. */
export const endpointGate = 'conformance.corral.dev/has-endpoint'

/**
 * Opens the gate of every pod that a slice of the check's namespace names. Slices follow pods a moment later, and a client
 * that takes a Ready pod for one that its Service leads to would fail now and then, on any Kubernetes.
 */
export async function openEndpointGates(t: Context): Promise<void> {
  const slices = await t.group('discovery.k8s.io/v1', 'endpointslices')
  const stream = await t.watch(`${slices}?watch=true`)
  void openEach(t, stream).catch(() => stream.close()) // the check then ends at the time limit of its pod
}

async function openEach(t: Context, stream: WatchStream): Promise<void> {
  const open = new Set<unknown>()
  const condition = { type: endpointGate, status: 'True' }
  for (let event = await stream.next(); event; event = await stream.next()) {
    for (const endpoint of (event.object.endpoints as readonly unknown[] | null) ?? []) {
      const name = String(at(endpoint, 'targetRef.name'))
      if (open.has(name)) continue
      const pod = `${await t.core('pods', name)}/status`
      const answer = await t.patch(pod, strategicPatch, { status: { conditions: [condition] } })
      if (answer.status === 200) open.add(name)
    }
  }
}

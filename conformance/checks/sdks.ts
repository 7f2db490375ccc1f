import { deepEqual, equal, ok } from 'node:assert/strict'
import { runGoClient } from '../clients/go-client.js'
import { runPython } from '../clients/python.js'
import { type Check, check } from '../harness/check.js'
import type { Context } from '../harness/context.js'
import { anyKubectl, kubectlFact } from '../harness/kubectl.js'
import { extensions } from '../harness/objects.js'
import { coolSandboxPool, startSandboxPool, warmSandboxPool } from '../harness/sandbox-pool.js'

const options = { needsNode: true, heavy: true, exclusive: true }

/**
 * What both SDKs do with a sandbox, first on an empty pool and then on a filled one: open it, work in it, give it up.
 * The second time it is the pod that was waiting. Nothing of either stays.
 */
async function coldAndWarm(t: Context, use: () => Promise<readonly string[]>): Promise<void> {
  await startSandboxPool(t)
  await opened(t, await use())
  await t.eventually('no pod left', async () => (await t.get(await t.core('pods'))).is(200).items.length === 0)
  const waiting = await warmSandboxPool(t)
  equal(await opened(t, await use()), waiting)
  await coolSandboxPool(t)
  await t.eventually('no pod left', async () => (await t.get(await t.core('pods'))).is(200).items.length === 0)
}

/** Checks what an SDK said about its sandbox, and that the claim is gone; answers the pod it worked in. */
async function opened(t: Context, lines: readonly string[]): Promise<string> {
  const [first = '', said] = lines.slice(-2)
  equal(said, 'own pod true|err|3|written through the tunnel')
  const [, claim = '', pod = ''] = /^claim (sandbox-claim-\S+) pod (\S+)$/.exec(first) ?? []
  ok(claim, first)
  await t.gone(await t.group(extensions, 'sandboxclaims', claim))
  return pod
}

export const sdks: readonly Check[] = [
  check(
    129,
    "upstream's Python SDK opens a sandbox, runs a command, writes and reads a file, deletes it: cold and from a pool",
    async (t) => {
      t.usesBinary(await kubectlFact(anyKubectl))
      const namespace = await t.ns()
      await coldAndWarm(t, async () => (await runPython(t, 'sdk', [namespace])).out.trim().split('\n'))
    },
    options,
  ),
  check(
    135,
    "upstream's Go SDK does the same over its own SPDY tunnel",
    (t) => coldAndWarm(t, () => runGoClient(t, 'sdk')),
    {
      ...options,
      needsGo: true,
    },
  ),
  check(
    136,
    'client-go: protobuf, shared informers, apply, paging, leader election, the dynamic client',
    async (t) => {
      deepEqual(await runGoClient(t, 'client-go'), ['informer', 'apply', 'pages', 'election', 'dynamic'])
    },
    { heavy: true, needsGo: true },
  ),
  check(
    137,
    'a controller on controller-runtime: election, cache, owned objects, status patches, finalizers',
    async (t) => {
      deepEqual(await runGoClient(t, 'controller'), ['created', 'repaired', 'status', 'gone'])
    },
    { heavy: true, needsGo: true },
  ),
]

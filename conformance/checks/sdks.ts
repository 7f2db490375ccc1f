import { deepEqual, equal, match } from 'node:assert/strict'
import { runGoClient } from '../clients/go-client.js'
import { runPython } from '../clients/python.js'
import { type Check, check } from '../harness/check.js'
import type { Context } from '../harness/context.js'
import { anyKubectl, kubectlFact } from '../harness/kubectl.js'
import { extensions } from '../harness/objects.js'
import { startSandboxPool } from '../harness/sandbox-pool.js'

const options = { needsNode: true, heavy: true, exclusive: true, timeoutMs: 240_000 }

/** What both SDKs report about a sandbox they opened, used and gave up; nothing of it stays. */
async function opened(t: Context, lines: readonly string[]): Promise<void> {
  const [claim = '', said] = lines.slice(-2)
  equal(said, 'own pod true|err|3|written through the tunnel')
  match(claim, /^claim sandbox-claim-/)
  await t.gone(await t.group(extensions, 'sandboxclaims', claim.replace('claim ', '')), 30_000)
  await t.eventually('no pod left', async () => (await t.get(await t.core('pods'))).is(200).items.length === 0, 30_000)
}

export const sdks: readonly Check[] = [
  check(
    129,
    "upstream's Python SDK opens a sandbox, runs a command, writes and reads a file, deletes it",
    async (t) => {
      t.usesBinary(await kubectlFact(anyKubectl))
      await startSandboxPool(t)
      const { out } = await runPython(t, 'sdk', [await t.ns()], 120_000)
      await opened(t, out.trim().split('\n'))
    },
    options,
  ),
  check(
    135,
    "upstream's Go SDK does the same over its own SPDY tunnel",
    async (t) => {
      await startSandboxPool(t)
      await opened(t, await runGoClient(t, 'sdk'))
    },
    { ...options, needsGo: true },
  ),
  check(
    136,
    'client-go: protobuf, shared informers, apply, paging, leader election, the dynamic client',
    async (t) => {
      deepEqual(await runGoClient(t, 'client-go'), ['informer', 'apply', 'pages', 'election', 'dynamic'])
    },
    { heavy: true, needsGo: true, timeoutMs: 240_000 },
  ),
  check(
    137,
    'a controller on controller-runtime: election, cache, owned objects, status patches, finalizers',
    async (t) => {
      deepEqual(await runGoClient(t, 'controller'), ['created', 'repaired', 'status', 'gone'])
    },
    { heavy: true, needsGo: true, timeoutMs: 240_000 },
  ),
]

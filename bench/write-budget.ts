import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Sandboxes } from '@corral/resources'
import { ClaimLoad, fillPool } from './claim-load.js'
import { type ManagerName, startRealStack } from './claim-stacks.js'
import { until } from './common/until.js'

/** What a manager writes per object, as the real API server's audit log has it. */
export interface WriteBudget {
  perWarmClaim: number
  perColdSandbox: number
  /** The same by verb and resource, over all objects of the run. */
  warmWrites: Record<string, number>
  coldWrites: Record<string, number>
}

interface AuditEntry {
  verb: string
  userAgent?: string
  objectRef?: { resource?: string; subresource?: string }
  responseStatus?: { code?: number }
}

const policy = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'None', verbs: ['get', 'list', 'watch'] }, { level: 'Metadata' }],
}

const count = 20
const namespace = 'default'

/** Counts the writes of one manager for warm claims (without refill) and for stand-alone Sandboxes, Events apart. */
export async function countWrites(manager: ManagerName, directory: string): Promise<WriteBudget> {
  const policyFile = join(directory, 'audit-policy.json')
  const logFile = join(directory, `audit-${manager}.log`)
  writeFileSync(policyFile, JSON.stringify(policy))
  const stack = await startRealStack({
    manager,
    directory,
    managerFlags: ['--sandbox-warm-pool-replenish-delay=1h'],
    apiserverFlags: [`--audit-policy-file=${policyFile}`, `--audit-log-path=${logFile}`],
  })
  const { client } = stack
  const load = new ClaimLoad(client)
  try {
    await load.synced
    await fillPool(client, count)
    const before = await settled(logFile)
    await load.burst('claim', count)
    const between = await settled(logFile)
    await Promise.all(
      Array.from({ length: count }, (_, index) =>
        client.create(Sandboxes, {
          metadata: { name: `cold-${index}`, namespace },
          spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'busybox:1' }] } } },
        }),
      ),
    )
    await until('cold sandboxes ready', async () => {
      const { items } = await client.list(Sandboxes, { namespace })
      const isReady = ({ metadata, status }: (typeof items)[number]): boolean =>
        metadata.name.startsWith('cold-') &&
        (status?.conditions ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True')
      return items.filter(isReady).length === count
    })
    const after = await settled(logFile)
    const entries = readEntries(logFile)
    const warmWrites = tally(entries.slice(before, between))
    const coldWrites = tally(entries.slice(between, after))
    return {
      perWarmClaim: total(warmWrites) / count,
      perColdSandbox: total(coldWrites) / count,
      warmWrites,
      coldWrites,
    }
  } finally {
    await load.stop()
    await stack.stop()
  }
}

function readEntries(file: string): AuditEntry[] {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  return lines.map((line) => JSON.parse(line) as AuditEntry) // the API server's own format
}

/** Position in the log once a manager has been silent for two seconds. */
async function settled(file: string): Promise<number> {
  const writes = (): number => Object.values(tally(readEntries(file))).reduce((sum, value) => sum + value, 0)
  let seen = writes()
  let quietSince = performance.now()
  await until('a silent manager', async () => {
    const now = writes()
    if (now !== seen) quietSince = performance.now()
    seen = now
    return performance.now() - quietSince > 2_000
  })
  return readEntries(file).length
}

function tally(entries: readonly AuditEntry[]): Record<string, number> {
  const found: Record<string, number> = {}
  for (const { verb, userAgent = '', objectRef, responseStatus } of entries) {
    if (!/^(corral-controller|agent-sandbox-controller)/.test(userAgent)) continue
    const resource = [objectRef?.resource, objectRef?.subresource].filter(Boolean).join('/')
    const outcome = (responseStatus?.code ?? 200) >= 300 ? ` (${responseStatus?.code})` : ''
    const name = `${verb} ${resource}${outcome}`
    found[name] = (found[name] ?? 0) + 1
  }
  return found
}

function total(writes: Record<string, number>): number {
  return Object.entries(writes)
    .filter(([name]) => !/ events(\/| |$)/.test(name))
    .reduce((sum, [, value]) => sum + value, 0)
}

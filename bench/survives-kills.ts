import { startEmbedded } from './common/api-target.js'
import type { LoadClient } from './common/load-client.js'

export interface KillReport {
  /** Writes the server had answered, by round. */
  acknowledged: number[]
  /** Of those, how many were not there, or not in that version, after the restart. */
  lost: number
  /** Versions that two different writes got. */
  reused: number
}

/**
 * Kills the server in the middle of writes, starts it again on the same data and looks for everything it had
 * acknowledged. Versions are compared over all rounds, so one handed out again after a crash is noticed.
 */
export async function survivesKills(options: {
  dataDir: string
  load: LoadClient
  namespace: string
  kills: number
}): Promise<KillReport> {
  const { dataDir, load, namespace } = options
  const report: KillReport = { acknowledged: [], lost: 0, reused: 0 }
  const ownerOfVersion = new Map<string, string>()
  let server = await startEmbedded(dataDir)
  try {
    for (let round = 0; round < options.kills; round += 1) {
      const prefix = `k${round}`
      const writing = load.run(server, {
        kind: 'create',
        namespace,
        prefix,
        keepAcknowledged: true,
        durationMs: 20_000,
      })
      await new Promise((resolve) => setTimeout(resolve, 150 + Math.random() * 500))
      await server.kill()
      const acknowledged = (await writing).acknowledged ?? []
      report.acknowledged.push(acknowledged.length)
      for (const [name, version] of acknowledged) {
        const owner = ownerOfVersion.get(version)
        if (owner !== undefined && owner !== name) report.reused += 1
        ownerOfVersion.set(version, name)
      }
      server = await startEmbedded(dataDir)
      const listed = new Map((await load.run(server, { kind: 'list', namespace })).acknowledged)
      for (const [name, version] of acknowledged) if (listed.get(name) !== version) report.lost += 1
      // What was written without an answer counts too: its version may not be handed out again.
      for (const [name, version] of listed) {
        const owner = ownerOfVersion.get(version)
        if (owner !== undefined && owner !== name) report.reused += 1
        ownerOfVersion.set(version, name)
      }
    }
  } finally {
    await server.stop()
  }
  return report
}

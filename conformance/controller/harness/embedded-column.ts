import { createApiServer, memoryStorage } from '@corral/apiserver'
import { parseManagerOptions, startManager } from '@corral/controllers'
import { inProcessKubeClient } from '@corral/kube'
import { embeddedCrds } from '@corral/resources'
import type { Column } from './column.js'

/** Our manager on our API server, both in this process. */
export async function startEmbeddedColumn(): Promise<Column> {
  const server = await createApiServer({ storage: memoryStorage(), crds: embeddedCrds(), schedulesPods: false })
  await server.ready
  const client = inProcessKubeClient(server)
  return {
    id: 'ours-embedded',
    title: 'ours, embedded API',
    client,
    facts: { node: process.version },
    async startManager(flags) {
      const parsed = parseManagerOptions(['--extensions', '--leader-elect=false', ...flags])
      if ('error' in parsed) throw new Error(parsed.error)
      const { endpoints: _, ...options } = parsed.command.options
      const manager = startManager({ client: inProcessKubeClient(server), options })
      await manager.ready
      return manager
    },
    async close() {
      await client.close()
      await server.close()
    },
  }
}

import { equal, match } from 'node:assert/strict'
import { join } from 'node:path'
import { startUpstreamController } from '../../../tools/oracle/index.js'
import type { Cluster } from '../harness/cluster.js'
import type { Step } from '../harness/report.js'
import type { Helm } from './install.js'
import { commandTask, succeeded } from './tasks.js'

const chart = join(import.meta.dirname, '../../../deploy/helm/corral')

/** The chart beside upstream's controller instead of ours, and back. */
export function upstreamSteps(cluster: Cluster, helm: Helm, values: string): Step[] {
  const { api, kubectl } = cluster
  const upgrade = (...args: string[]): Promise<string> =>
    helm('upgrade', 'corral', chart, '--values', values, '--wait', '--timeout', '5m', ...args)
  return [
    {
      title: 'S2-D6: a task runs on upstream’s controller instead of ours, and on ours again after the way back',
      async run() {
        await upgrade('--set', 'controllers.enabled=false')
        match((await cluster.call('get', 'deployment', 'corral-controller')).stderr, /NotFound/)
        const upstream = await startUpstreamController({ kubeconfig: cluster.kubeconfig, crds: false })
        try {
          await cluster.connect()
          const repo = await cluster.repository()
          const task = succeeded(await api.run(commandTask(repo, 'echo upstream > who.txt')))
          equal(await repo.show(task.branch!, 'who.txt'), 'upstream')
        } finally {
          await upstream.stop()
        }
        await helm('rollback', 'corral', '--wait', '--timeout', '5m')
        await kubectl('rollout', 'status', 'deployment/corral-controller', '--timeout=240s')
        await cluster.connect()
        const repo = await cluster.repository()
        succeeded(await api.run(commandTask(repo, 'echo ours > who.txt')))
        return upstream.binary.version
      },
    },
  ]
}

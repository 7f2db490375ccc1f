import { equal, match } from 'node:assert/strict'
import { get } from 'node:https'
import { join } from 'node:path'
import { waitUntil } from '@corral/testing'
import type { Cluster } from '../harness/cluster.js'
import type { Step } from '../harness/report.js'
import type { Helm } from './install.js'
import { commandTask, succeeded } from './tasks.js'

const chart = join(import.meta.dirname, '../../../deploy/helm/corral')
const group = '/apis/external.metrics.k8s.io/v1beta1'

/** The real controller manager sizes a pool by what our server tells it. */
export function scalingSteps(cluster: Cluster, helm: Helm, values: string): Step[] {
  const { api, kubectl, namespace } = cluster
  const replicas = async (): Promise<number> =>
    Number(await kubectl('get', 'sandboxwarmpool', 'default', '-o', 'jsonpath={.spec.replicas}'))
  return [
    {
      title: 'S4-P3.5: external.metrics.k8s.io is served through the aggregation layer, and to nobody else',
      async run() {
        await helm(
          ...['upgrade', 'corral', chart, '--values', values, '--values', join(chart, 'examples/autoscaling.yaml')],
          ...['--set', 'autoscaling.minReplicas=1,server.maxTasks=2', '--wait', '--timeout', '5m'],
        )
        await kubectl('rollout', 'status', 'deployment/corral-server', '--timeout=240s')
        const name = 'v1beta1.external.metrics.k8s.io'
        await kubectl('wait', '--for=condition=Available', `apiservice/${name}`, '--timeout=240s')
        match(await kubectl('get', '--raw', group), /corral_pool_demand/)
        const address = await kubectl('get', 'pods', '-l', 'app=corral', '-o', 'jsonpath={.items[0].status.podIP}')
        const status = await new Promise<number | undefined>((resolve, reject) => {
          const options = { host: address, port: 8443, path: group, rejectUnauthorized: false }
          get(options, (answer) => resolve(answer.resume().statusCode)).once('error', reject)
        })
        equal(status, 401)
        return undefined
      },
    },
    {
      title:
        'S4-P3.5 S4-P4.1: the real controller manager grows the pool with the tasks that wait, and shrinks it after',
      async run() {
        await cluster.connect()
        await waitUntil('the pool is at its least', async () => (await replicas()) === 1)
        const repo = await cluster.repository()
        const ids: string[] = []
        const waits = 'until [ -e go ]; do sleep 0.2; done; rm go; echo done > done.txt'
        for (let index = 0; index < 6; index += 1) ids.push(await api.create(commandTask(repo, waits)))
        const grown = await waitUntil('the pool grows', async () => {
          const now = await replicas()
          return now >= 3 && now
        })
        const done = new Set<string>()
        await waitUntil('every task is done', async () => {
          for (const id of ids.filter((each) => !done.has(each))) {
            const task = await api.get(id)
            if (task.status === 'SUCCEEDED') done.add(id)
            if (task.status !== 'RUNNING') continue
            const sandbox = await kubectl('get', 'sandboxclaim', id, '-o', 'jsonpath={.status.sandbox.name}')
            await cluster.call('exec', sandbox, '--', 'touch', '/workspace/repo/go')
          }
          return done.size === ids.length
        })
        for (const id of ids) succeeded(await api.get(id))
        await waitUntil('the pool shrinks', async () => (await replicas()) === 1)
        const path = `${group}/namespaces/${namespace}/corral_pool_demand`
        match(await kubectl('get', '--raw', path), /"value":"0"/)
        await helm('upgrade', 'corral', chart, '--values', values, '--wait', '--timeout', '5m')
        return `1 → ${grown} → 1`
      },
    },
  ]
}

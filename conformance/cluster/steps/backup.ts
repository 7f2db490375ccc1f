import { deepEqual, equal, match } from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskView } from '@corral/protocol'
import { runCorral, runProgram } from '@corral/testing'
import { volumeIn, volumePath } from '../harness/boot.js'
import type { Cluster } from '../harness/cluster.js'
import type { Step } from '../harness/report.js'
import type { Helm } from './install.js'
import { commandTask, succeeded } from './tasks.js'

const chart = join(import.meta.dirname, '../../../deploy/helm/corral')
const claim = 'restored'

/** What docs/cluster.md says of back-ups, with a copy of the volume where clusters have snapshots. */
export function backupSteps(cluster: Cluster, helm: Helm, values: string): Step[] {
  const { api, kubectl, namespace, directory } = cluster
  const file = join(directory, 'agenttasks.yaml')
  let before: TaskView
  let events: string
  return [
    {
      title: 'a back-up is taken while the server runs: the AgentTasks and a copy of its volume',
      async run() {
        await cluster.connect()
        const repo = await cluster.repository()
        before = succeeded(await api.run(commandTask(repo, 'echo "$CORRAL_PROMPT" >> kept.txt; echo said')))
        events = (await api.request('GET', `/tasks/${before.id}/events?follow=false`)).text
        writeFileSync(file, await kubectl('get', 'agenttasks', '-o', 'yaml'))
        const volume = await kubectl('get', 'pvc', 'corral-server', '-o', 'jsonpath={.spec.volumeName}')
        const places = [volume, claim].map((name) => volumePath(directory, name))
        const { code, stderr } = await runProgram('cp', ['-a', ...places])
        equal(code, 0, stderr)
        return undefined
      },
    },
    {
      title:
        'after the loss of the namespace the tasks are restored with their ends and records, and the server goes on',
      async run() {
        await cluster.close()
        await helm('uninstall', 'corral', '--wait', '--timeout', '5m')
        await kubectl('delete', 'namespace', namespace, '--timeout=240s')
        await kubectl('create', 'namespace', namespace)
        await cluster.apply(volumeIn(directory, claim, { namespace, name: claim }), {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          metadata: { name: claim, namespace },
          spec: {
            accessModes: ['ReadWriteOnce'],
            resources: { requests: { storage: '20Gi' } },
            volumeName: claim,
            storageClassName: '',
          },
        })
        const restore = ['server', 'restore', file, '--kubeconfig', cluster.kubeconfig, '--namespace', namespace]
        const restored = await runCorral(restore, { env: { ...process.env }, timeoutMs: 240_000 })
        equal(restored.code, 0, `${restored.stdout}${restored.stderr}`)
        await helm(
          ...['install', 'corral', chart, '--values', values, '--wait', '--timeout', '8m'],
          ...['--set', `server.persistence.existingClaim=${claim}`],
        )
        await cluster.connect()
        const after = await api.get(before.id)
        deepEqual(
          [after.status, after.branch, after.commit, after.diff_stat],
          [before.status, before.branch, before.commit, before.diff_stat],
        )
        equal((await api.request('GET', `/tasks/${before.id}/events?follow=false`)).text, events)
        match((await api.request('GET', `/tasks/${before.id}/logs`)).text, /said/)
        match((await api.request('GET', `/tasks/${before.id}/diff`)).text, /kept\.txt/)
        const repo = await cluster.repository()
        succeeded(await api.run(commandTask(repo, 'echo x > x')))
        const refused = await runCorral(restore, { env: { ...process.env }, timeoutMs: 240_000 })
        match(refused.stderr, /a server runs in namespace/)
        return restored.stdout.trim()
      },
    },
  ]
}

import { equal, match, notEqual } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { Cluster } from '../harness/cluster.js'
import type { Step } from '../harness/report.js'
import { commandTask, succeeded, templateLike } from './tasks.js'

/** Tasks in a kernel of their own, with a network stack that only the pod's address reaches. */
export function gvisorSteps(cluster: Cluster): Step[] {
  const { api, kubectl, namespace } = cluster
  return [
    {
      title: 'S2-C6 S2-P4 S4-I2: a task with the RuntimeClass gvisor runs in gVisor, reached by pod address',
      async run() {
        await cluster.connect()
        await cluster.apply(await templateLike(cluster, 'gvisor', {}, { runtimeClassName: 'gvisor' }), {
          apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
          kind: 'SandboxWarmPool',
          metadata: { name: 'gvisor', namespace },
          spec: { replicas: 1, sandboxTemplateRef: { name: 'gvisor' } },
        })
        const full = ['--for=jsonpath={.status.readyReplicas}=1', 'sandboxwarmpool/gvisor', '--timeout=240s']
        await kubectl('wait', ...full)
        const repo = await cluster.repository()
        const startedMs = Date.now()
        const task = succeeded(
          await api.run({
            ...commandTask(repo, 'cat /proc/version > version.txt; dmesg > dmesg.txt; true'),
            runtime_class_name: 'gvisor',
          }),
        )
        notEqual(await repo.show(task.branch!, 'version.txt'), readFileSync('/proc/version', 'utf8').trim())
        match(await repo.show(task.branch!, 'dmesg.txt'), /gVisor/)
        return `${Date.now() - startedMs} ms from request to end, warm`
      },
    },
    {
      title: 'the broker is reached by name from gVisor with a network stack of its own',
      async run() {
        const repo = await cluster.repository()
        const ask = `node -e 'fetch("http://corral-broker:8787/v1/messages").then(r=>console.log(r.status))' > status.txt`
        const task = succeeded(await api.run({ ...commandTask(repo, ask), runtime_class_name: 'gvisor' }))
        equal(await repo.show(task.branch!, 'status.txt'), '401')
        await kubectl('delete', 'sandboxwarmpool', 'gvisor')
        return undefined
      },
    },
  ]
}

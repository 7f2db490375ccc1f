import { equal, match, ok } from 'node:assert/strict'
import { join } from 'node:path'
import { portForward, runProgram, waitUntil } from '@corral/testing'
import type { Cluster } from '../harness/cluster.js'
import type { Step } from '../harness/report.js'

const root = join(import.meta.dirname, '../../..')
const chart = join(root, 'deploy/helm/corral')

/** Helm as a person runs it. */
export type Helm = (...args: string[]) => Promise<string>

export function helmOf(program: string, { kubeconfig, namespace }: Cluster): Helm {
  return async (...args) => {
    const all = [...args, '--kubeconfig', kubeconfig, '--namespace', namespace]
    const { code, stdout, stderr } = await runProgram(program, all, { env: process.env, timeoutMs: 600_000 })
    if (code !== 0) throw new Error(`helm ${args[0]}: ${stderr}${stdout}`)
    return stdout
  }
}

interface Deployment {
  metadata: { name: string }
  spec: { replicas: number }
  status: { availableReplicas?: number }
}

/** The chart in an empty cluster, and what an operator looks at first. */
export function installSteps(cluster: Cluster, helm: Helm, valuesFile: string): Step[] {
  const { kubectl, namespace } = cluster
  const inServer = (...args: string[]) => cluster.call('exec', 'deployment/corral-server', '--', ...args)
  return [
    {
      title: 'S4-P1.2 S4-P3.1 S4-N4a S4-N4b S4-N4c: real Helm installs the chart and everything is ready',
      async run() {
        const level = 'pod-security.kubernetes.io/enforce=restricted'
        await kubectl('create', 'namespace', namespace)
        await kubectl('label', 'namespace', namespace, level)
        const startedMs = Date.now()
        await helm('install', 'corral', chart, '--values', valuesFile, '--wait', '--timeout', '8m')
        const ms = Date.now() - startedMs
        const { items } = await cluster.json<{ items: Deployment[] }>('get', 'deployments')
        equal(
          items
            .map(({ metadata }) => metadata.name)
            .sort()
            .join(),
          'corral-controller,corral-server',
        )
        for (const { spec, status } of items) equal(status.availableReplicas, spec.replicas)
        return `ready after ${ms} ms`
      },
    },
    {
      title: 'S3-13 S4-I1 S4-P3.6: the server is not root, its root is read-only, its namespace is held to restricted',
      async run() {
        equal((await inServer('id', '-u')).stdout.trim(), '1000')
        match((await inServer('touch', '/x')).stderr, /Read-only file system/)
        match((await inServer('cat', '/proc/1/status')).stdout, /CapEff:\s+0+\n[\s\S]*NoNewPrivs:\s+1/)
        const root = ['run', 'root', '--image=corral:0.1.0', '--dry-run=server', '--overrides']
        const said = await cluster.call(...root, '{"spec":{"containers":[{"name":"x","image":"corral:0.1.0"}]}}')
        match(said.stderr, /violates PodSecurity "restricted/)
        return undefined
      },
    },
    {
      title: 'S4-P3.2: the server keeps its records on a volume of its own',
      async run() {
        equal(await kubectl('get', 'pvc', 'corral-server', '-o', 'jsonpath={.status.phase}'), 'Bound')
        match((await inServer('ls', '/var/lib/corral/data')).stdout, /tasks/)
        return undefined
      },
    },
    {
      title: 'S4-P3.3 S4-P1.4: the default pool keeps two sandboxes ready',
      async run() {
        const full = ['--for=jsonpath={.status.readyReplicas}=2', 'sandboxwarmpool/default', '--timeout=240s']
        await kubectl('wait', ...full)
        return undefined
      },
    },
    {
      title: 'metrics and probes answer on a port of their own without the API token; the API does not',
      async run() {
        await cluster.connect()
        await using metrics = await portForward(cluster.kubeconfig, 'deployment/corral-server', 9090, namespace)
        for (const path of ['/healthz', '/readyz', '/metrics'])
          equal((await fetch(`${metrics.url}${path}`)).status, 200)
        match(await (await fetch(`${metrics.url}/metrics`)).text(), /corral_tasks_waiting 0/)
        equal((await fetch(`${cluster.where().url}/tasks`)).status, 401)
        equal((await cluster.api.request('GET', '/tasks')).status, 200)
        return undefined
      },
    },
    {
      title: 'one server leads: it holds the Lease of task controllers',
      async run() {
        const holder = 'jsonpath={.spec.holderIdentity}'
        ok(await waitUntil('the lease is held', () => kubectl('get', 'lease', 'corral-task-controller', '-o', holder)))
        return undefined
      },
    },
    {
      title: 'helm test runs a task from a repository to a branch',
      async run() {
        match(await helm('test', 'corral', '--timeout', '5m'), /Phase:\s+Succeeded/)
        return undefined
      },
    },
    {
      title: 'S4-P3.6: the check of network policies sees that the network of this node enforces none',
      async run() {
        const env = { ...process.env, KUBECONFIG: cluster.kubeconfig }
        const script = join(root, 'scripts/cluster/check-policies.sh')
        const { code, stdout, stderr } = await runProgram('bash', [script, namespace], { env, timeoutMs: 600_000 })
        match(`${stdout}${stderr}`, /NOT ENFORCED: a pod that may not ask the server got an answer/)
        equal(code, 1)
        return undefined
      },
    },
  ]
}

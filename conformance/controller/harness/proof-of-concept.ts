import { match, ok, deepStrictEqual as same } from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findKubectl, portForward, runCorral, runProgram, waitUntil } from '@corral/testing'

const examples = join(import.meta.dirname, '../../../examples/poc/v1beta1')

/** Something to be done and seen; it may say a figure. */
export interface Step {
  readonly title: string
  run(): Promise<string | undefined>
}

interface Pod {
  spec: { nodeName?: string }
  status: {
    podIP?: string
    containerStatuses?: { restartCount: number; state: { terminated?: { exitCode: number; reason: string } } }[]
  }
}

/** The seed's proof of concept, step by step, as a person with kubectl does it; then its orchestrator, then a pool. */
export function proofOfConcept(cluster: { kubeconfig: string; directory: string }): Step[] {
  const program = findKubectl() ?? 'kubectl'
  const call = (...args: string[]) =>
    runProgram(program, ['--kubeconfig', cluster.kubeconfig, '-n', 'default', ...args], { timeoutMs: 240_000 })
  const kubectl = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await call(...args)
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`)
    return stdout
  }
  const json = async <T>(...args: string[]): Promise<T> => JSON.parse(await kubectl(...args, '-o', 'json')) as T
  const sandboxOf = (claim: string): Promise<string> =>
    kubectl('get', 'sandboxclaim', claim, '-o', 'jsonpath={.status.sandbox.name}')
  const post = (url: string, body: string): Promise<Response> =>
    fetch(`${url}/task`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  const readyAfterMs = async (claim: string): Promise<number> => {
    const startedMs = Date.now()
    const { code, stderr } = await call('wait', '--for=condition=Ready', `sandboxclaim/${claim}`, '--timeout=60s')
    if (code === 0) return Date.now() - startedMs
    const news = await Promise.all([call('get', 'events'), call('logs', claim)])
    throw new Error([stderr, ...news.flatMap((said) => [said.stdout, said.stderr])].join('\n'))
  }
  let sandbox = ''

  return [
    {
      title: 'S0-V1 S0-M1: template, pool and claim are applied',
      async run() {
        match(await kubectl('apply', '-f', examples), /sandboxclaim\S* created/)
        return undefined
      },
    },
    {
      title: 'S0-V2 S0-M2 S0-M3: the claim is Ready, its Pod runs on the real node, its Service is headless',
      async run() {
        const ms = await readyAfterMs('poc-test-task')
        sandbox = await sandboxOf('poc-test-task')
        const pod = await json<Pod>('get', 'pod', sandbox)
        same(pod.spec.nodeName, 'real-node')
        match(pod.status.podIP ?? '', /^10\.213\.77\./)
        same(await kubectl('get', 'service', sandbox, '-o', 'jsonpath={.spec.clusterIP}'), 'None')
        const fqdn = await kubectl('get', 'sandbox', sandbox, '-o', 'jsonpath={.status.serviceFQDN}')
        same(fqdn, `${sandbox}.default.svc.cluster.local`)
        return `Ready after ${ms} ms`
      },
    },
    {
      title: 'S0-B3: the Service finds the Pod',
      async run() {
        const { status } = await json<Pod>('get', 'pod', sandbox)
        const addresses = 'jsonpath={.items[*].endpoints[*].addresses[*]}'
        const label = `kubernetes.io/service-name=${sandbox}`
        await waitUntil('its address is published', async () =>
          (await kubectl('get', 'endpointslices', '-l', label, '-o', addresses)).includes(status.podIP ?? '?'),
        )
        return undefined
      },
    },
    {
      title: 'kubectl exec runs in the Pod, as user 1000, and hands over the exit code',
      async run() {
        same((await kubectl('exec', sandbox, '--', 'sh', '-c', 'echo $0 in')).trim(), 'sh in')
        match(await kubectl('exec', sandbox, '--', 'cat', '/proc/1/status'), /Uid:\s+1000\s/)
        same((await call('exec', sandbox, '--', 'sh', '-c', 'exit 3')).code, 3)
        return undefined
      },
    },
    {
      title: 'S0-V3 S0-V4 S0-M4 S0-M5 S0-M8: through a port-forward: healthz, a task, and no second one',
      async run() {
        await using forward = await portForward(cluster.kubeconfig, sandbox, 8888)
        const health = await fetch(`${forward.url}/healthz`)
        same([health.status, await health.text()], [200, 'ok'])
        same((await post(forward.url, 'not json')).status, 400)
        // Asked for before the task: its Pod ends soon after it, and a busy machine takes its time to begin an exec.
        const file = '/tmp/work/result-task-001.txt'
        const result = kubectl(
          'exec',
          sandbox,
          '--',
          'sh',
          '-c',
          `until [ -s ${file} ]; do sleep 0.1; done; cat ${file}`,
        )
        result.catch(() => {}) // told below, unless something else fails first
        const first = await post(forward.url, '{"taskID":"task-001","message":"Hello"}')
        same([first.status, await first.json()], [202, { status: 'accepted' }])
        same((await post(forward.url, '{"taskID":"task-002","message":"Again"}')).status, 409)
        match(await result, /task-001[\s\S]*Hello/)
        return undefined
      },
    },
    {
      title: 'S0-V7 S0-M6 S0-M7: the Pod exits with 0, the Sandbox is finished, the logs say so',
      async run() {
        await kubectl('wait', '--for=condition=Finished', `sandbox/${sandbox}`, '--timeout=30s')
        const { status } = await json<Pod>('get', 'pod', sandbox)
        const [container] = status.containerStatuses ?? []
        same([container?.restartCount, container?.state.terminated?.exitCode], [0, 0])
        const reason = 'jsonpath={.status.conditions[?(@.type=="Finished")].reason}'
        same(await kubectl('get', 'sandbox', sandbox, '-o', reason), 'PodSucceeded')
        match(await kubectl('logs', sandbox, '--tail=50'), /"taskID":"task-001"/)
        return undefined
      },
    },
    {
      title: 'S0-V5 S0-V6 S0-M9: the orchestrator claims, waits, posts and sees the exit',
      async run() {
        const args = ['orchestrate', '--local', '--kubeconfig', cluster.kubeconfig, '--task-id', 'one']
        const { code, stdout, stderr } = await runCorral(args, { timeoutMs: 240_000 })
        if (code !== 0 || stderr !== '') throw new Error(`exit code ${code}\n${stdout}${stderr}`)
        match(stdout, /"message":"done"/)
        match(await kubectl('logs', await sandboxOf('poc-one')), /"taskID":"one"/)
        return undefined
      },
    },
    {
      title: 'a pool of two fills, a claim takes a warm Pod, the pool refills',
      async run() {
        await kubectl('scale', 'sandboxwarmpool/poc-runner', '--replicas=2')
        const full = ['wait', '--for=jsonpath={.status.readyReplicas}=2', 'sandboxwarmpool/poc-runner', '--timeout=60s']
        await kubectl(...full)
        const before = await kubectl('get', 'pods', '-o', 'name')
        const manifest = join(cluster.directory, 'warm-claim.json')
        writeFileSync(manifest, JSON.stringify(warmClaim))
        await kubectl('apply', '-f', manifest)
        const ms = await readyAfterMs('warm')
        ok(before.includes(`pod/${await sandboxOf('warm')}\n`), 'its Pod ran before the claim was made')
        await kubectl(...full)
        return `Ready after ${ms} ms`
      },
    },
    {
      title: 'S0-C25: undeploy leaves no Pod',
      async run() {
        await kubectl('delete', 'sandboxclaims', '--all', '--wait=false')
        await kubectl('delete', '--ignore-not-found', '-f', examples)
        await waitUntil('every Pod is gone', async () => (await kubectl('get', 'pods', '-o', 'name')) === '', {
          timeoutMs: 240_000,
        })
        return undefined
      },
    },
  ]
}

const warmClaim = {
  apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
  kind: 'SandboxClaim',
  metadata: { name: 'warm', namespace: 'default' },
  spec: { warmPoolRef: { name: 'poc-runner' } },
}

import { type AgentSandboxClient, DaemonClient } from '@corral/agent-sandbox-sdk'
import type { KubeClient } from '@corral/kube'
import { Pods, type ResourceKind, SandboxClaims, Sandboxes, type SandboxPodTemplate, Services } from '@corral/resources'
import { ensureColdPool, runnerClaim, untilFinished } from './runner-client.js'

/** One answer to a question of the proof of concept. `value` is `n/a` where the question has no meaning here, and `how` says why. */
export interface Answer {
  id: string
  value: string | number
  samples: number[]
  how: string
}

export interface MeasureOptions {
  template: string
  namespace: string
  rounds: number
  signal: AbortSignal
}

interface Round {
  claim: string
  sandbox: string
  readyMs: number
  reachableMs: number
  finished: string
  restartCount: number
  exitCode: number | undefined
  remaining: string[]
  logAfterExit: string
}

/** Runs the proof of concept a few times and answers its ten questions from what was seen. Cleans up after itself. */
export async function measure(
  client: AgentSandboxClient,
  kube: KubeClient,
  options: MeasureOptions,
): Promise<Answer[]> {
  const pool = await ensureColdPool(client, options.template, options.namespace)
  const rounds: Round[] = []
  for (let index = 0; index < options.rounds; index++)
    rounds.push(await oneRound(client, kube, pool, `measure-${Date.now().toString(36)}-${index}`, options))
  const failure = await nonZeroExit(client, kube, options)
  const shared = await samePort(client, pool, options)
  return answers(rounds, failure, shared)
}

async function oneRound(
  client: AgentSandboxClient,
  kube: KubeClient,
  pool: string,
  name: string,
  options: MeasureOptions,
): Promise<Round> {
  const { namespace, signal } = options
  const ref = { name, namespace }
  const startedAt = performance.now()
  await client.claims.create(runnerClaim({ name, namespace, pool, shutdownTime: new Date(Date.now() + 10 * 60_000) }))
  try {
    const claim = await client.claims.waitForReady(name, { namespace, signal })
    const readyMs = performance.now() - startedAt
    const sandbox = claim.status?.sandbox?.name ?? name
    const reachableMs = await untilReachable(client, sandbox, namespace, signal)
    const connection = await client.connect({ name: sandbox, namespace }, { signal })
    await new DaemonClient({ fetch: connection.fetch }).sendTask({ taskID: name, message: 'measure' }, { signal })
    await connection.close()
    const finished = await untilFinished(client, name, namespace, signal)
    const pod = await kube.get(Pods, { name: sandbox, namespace }, { signal })
    const container = pod.status?.containerStatuses?.[0]
    const kinds: [string, ResourceKind, string][] = [
      ['claim', SandboxClaims, name],
      ['sandbox', Sandboxes, sandbox],
      ['pod', Pods, sandbox],
      ['service', Services, sandbox],
    ]
    const remaining: string[] = []
    for (const [label, kind, object] of kinds)
      if (await kube.find(kind, { name: object, namespace }, { signal })) remaining.push(label)
    let logAfterExit = ''
    for await (const chunk of kube.logs({ name: sandbox, namespace }, { signal }))
      logAfterExit += new TextDecoder().decode(chunk)
    return {
      claim: name,
      sandbox,
      readyMs,
      reachableMs,
      finished,
      restartCount: container?.restartCount ?? 0,
      exitCode: container?.state?.terminated?.exitCode,
      remaining,
      logAfterExit,
    }
  } finally {
    await client.claims.delete(ref.name, { namespace })
  }
}

async function untilReachable(
  client: AgentSandboxClient,
  name: string,
  namespace: string,
  signal: AbortSignal,
): Promise<number> {
  const startedAt = performance.now()
  const connection = await client.connect({ name, namespace }, { signal })
  try {
    const daemon = new DaemonClient({ fetch: connection.fetch })
    while (!(await daemon.health({ signal }))) signal.throwIfAborted()
    return performance.now() - startedAt
  } finally {
    await connection.close()
  }
}

/** A sandbox of its own whose only job is to end with code 3. */
async function nonZeroExit(
  client: AgentSandboxClient,
  kube: KubeClient,
  { namespace, signal }: MeasureOptions,
): Promise<string> {
  const name = `measure-fail-${Date.now().toString(36)}`
  const podTemplate: SandboxPodTemplate = {
    spec: {
      restartPolicy: 'Never',
      containers: [{ name: 'fail', image: 'busybox', command: ['/bin/sh', '-c', 'exit 3'] }],
    },
  }
  await client.sandboxes.objects.create({
    apiVersion: 'agents.x-k8s.io/v1beta1',
    kind: 'Sandbox',
    metadata: { name, namespace },
    spec: { podTemplate },
  })
  try {
    for await (const { object } of client.sandboxes.watch({
      namespace,
      fieldSelector: `metadata.name=${name}`,
      signal,
    })) {
      const finished = object.status?.conditions?.find((condition) => condition.type === 'Finished')
      if (finished?.status !== 'True') continue
      const pod = await kube.get(Pods, { name, namespace }, { signal })
      return `Finished/${finished.reason}, exit code ${pod.status?.containerStatuses?.[0]?.state?.terminated?.exitCode}`
    }
    return 'the watch ended'
  } finally {
    await client.sandboxes.delete(name, { namespace })
  }
}

/** Two sandboxes of one template listen on the same port at the same time: both must answer. */
async function samePort(
  client: AgentSandboxClient,
  pool: string,
  { namespace, signal }: MeasureOptions,
): Promise<boolean> {
  const names = [0, 1].map((index) => `measure-port-${Date.now().toString(36)}-${index}`)
  try {
    for (const name of names)
      await client.claims.create(
        runnerClaim({ name, namespace, pool, shutdownTime: new Date(Date.now() + 10 * 60_000) }),
      )
    const claims = await Promise.all(names.map((name) => client.claims.waitForReady(name, { namespace, signal })))
    await Promise.all(
      claims.map((claim) =>
        untilReachable(client, claim.status?.sandbox?.name ?? claim.metadata.name, namespace, signal),
      ),
    )
    return true
  } finally {
    for (const name of names) await client.claims.delete(name, { namespace })
  }
}

function answers(rounds: readonly Round[], failure: string, shared: boolean): Answer[] {
  const ready = rounds.map(({ readyMs }) => Math.round(readyMs))
  const reachable = rounds.map(({ reachableMs }) => Math.round(reachableMs))
  const first = rounds[0]
  const every = (test: (round: Round) => boolean): boolean => rounds.length > 0 && rounds.every(test)
  const none: number[] = []
  return [
    {
      id: 'S0-Q1',
      value: median(ready),
      samples: ready,
      how: 'milliseconds from the claim’s creation to Ready=True, seen by a watch; cold start',
    },
    {
      id: 'S0-Q2',
      value: median(reachable),
      samples: reachable,
      how: 'milliseconds from Ready=True to the first ok of /healthz through port-forward',
    },
    {
      id: 'S0-Q3',
      value: `clean exit: Finished/${first?.finished ?? '?'}, exit code ${first?.exitCode ?? '?'}; exit 3: ${failure}`,
      samples: none,
      how: 'conditions and container status after the pod ended',
    },
    {
      id: 'S0-Q4',
      value: every(({ restartCount }) => restartCount === 0) ? 'honoured: no restart' : 'not honoured',
      samples: rounds.map(({ restartCount }) => restartCount),
      how: 'restartCount of the container after its exit',
    },
    {
      id: 'S0-Q5',
      value: 'n/a',
      samples: none,
      how: 'nothing is pulled on one machine: image names stand for the host’s tools, and an event on the pod says so',
    },
    {
      id: 'S0-Q6',
      value: `remain until the claim is deleted: ${first?.remaining.join(', ') ?? '?'}`,
      samples: none,
      how: 'objects looked up after the pod finished',
    },
    {
      id: 'S0-Q7',
      value: 'n/a',
      samples: none,
      how: 'no cluster DNS on one machine: serviceFQDN is in the status, port-forward is the way in',
    },
    {
      id: 'S0-Q8',
      value: shared ? 'no conflict' : 'conflict',
      samples: none,
      how: 'two sandboxes of one template listened on port 8888 at once and both answered',
    },
    {
      id: 'S0-Q9',
      value: every(({ logAfterExit }) => logAfterExit.length > 0)
        ? 'readable until the pod object is deleted'
        : 'lost at exit',
      samples: rounds.map(({ logAfterExit }) => logAfterExit.length),
      how: 'bytes of log read through the API after the container ended',
    },
    {
      id: 'S0-Q10',
      value: 'n/a',
      samples: none,
      how: 'the types are TypeScript packages of this workspace; no foreign module is imported',
    },
  ]
}

function median(values: readonly number[]): number {
  return [...values].sort((left, right) => left - right)[Math.floor(values.length / 2)] ?? 0
}

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  findKubectl,
  type PlatformProcess,
  type ProgramResult,
  portForward,
  startPlatformProcess,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const examples = join(dirname(fileURLToPath(import.meta.url)), '../../examples/poc')
const hasKubectl = findKubectl() !== undefined

/** The seed's proof of concept as a person does it by hand, then as its orchestrator does. */
describe.skipIf(!hasKubectl)(`the proof of concept${hasKubectl ? '' : ' (kubectl is not installed)'}`, () => {
  let platform: PlatformProcess
  beforeAll(async () => {
    platform = await startPlatformProcess({ args: ['--warm', '0'] })
  })
  afterAll(() => platform?.[Symbol.asyncDispose]())

  const kubectl = async (...args: string[]): Promise<string> => {
    const result = await platform.kubectl(['-n', 'default', ...args])
    if (result.code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${result.stderr}`)
    return result.stdout
  }
  const json = async <T>(...args: string[]): Promise<T> => JSON.parse(await kubectl(...args, '-o', 'json')) as T

  interface Claim {
    metadata: { name: string }
    status?: { sandbox?: { name?: string }; conditions?: { type: string; status: string; reason: string }[] }
  }

  async function sandboxOf(claim: string): Promise<string> {
    const { status } = await json<Claim>('get', 'sandboxclaim', claim)
    return status?.sandbox?.name ?? ''
  }

  const post = (url: string, body: string): Promise<Response> =>
    fetch(`${url}/task`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })

  /** Resolves when `kubectl exec` watches the file inside the sandbox, with what it reads there once it is written. */
  async function readWhenWritten(sandbox: string, path: string): Promise<{ content: Promise<string> }> {
    const script = `echo watching; until [ -s ${path} ]; do sleep 0.02; done; cat ${path}`
    const args = ['--kubeconfig', platform.kubeconfig, '-n', 'default', 'exec', sandbox, '--', 'sh', '-c', script]
    const child = spawn(findKubectl()!, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    const ended = once(child, 'close').then(() => output)
    await new Promise<void>((resolve, reject) => {
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text
        if (output.includes('watching')) resolve()
      })
      void ended.then(() => reject(new Error(`kubectl ended: ${output}`)))
    })
    return { content: ended }
  }

  async function byHand(version: 'v1alpha1' | 'v1beta1'): Promise<void> {
    const applied = await kubectl('apply', '-f', join(examples, version))
    expect(applied).toMatch(/sandboxtemplate.*poc-runner created/)
    expect(applied).toMatch(/sandboxclaim.*poc-test-task created/)
    await kubectl('wait', '--for=condition=Ready', 'sandboxclaim/poc-test-task', '--timeout=240s')
    const sandbox = await sandboxOf('poc-test-task')

    const pod = await json<{
      spec: { containers: { name: string; resources: object; ports: object[] }[]; restartPolicy: string }
    }>('get', 'pod', sandbox)
    expect(pod.spec.restartPolicy).toBe('Never')
    expect(pod.spec.containers).toMatchObject([
      { name: 'runner', ports: [{ containerPort: 8888, protocol: 'TCP' }], resources: { limits: { memory: '128Mi' } } },
    ])
    if (version === 'v1beta1') {
      const service = await json<{ spec: { clusterIP: string } }>('get', 'service', sandbox)
      expect(service.spec.clusterIP).toBe('None')
      expect(await kubectl('get', 'sandbox', sandbox, '-o', 'jsonpath={.status.serviceFQDN}')).toBe(
        `${sandbox}.default.svc.cluster.local`,
      )
    }

    await using forward = await portForward(platform.kubeconfig, sandbox, 8888)
    const health = await fetch(`${forward.url}/healthz`)
    expect([health.status, await health.text()]).toEqual([200, 'ok'])
    const bad = await post(forward.url, 'not json')
    expect([bad.status, await bad.text()]).toEqual([400, expect.stringContaining('JSON')])
    // The runner lives two seconds from here on, less than kubectl needs to start on a busy machine.
    const result = await readWhenWritten(sandbox, '/tmp/work/result-task-001.txt')
    const first = await post(forward.url, '{"taskID":"task-001","message":"Hello"}')
    expect([first.status, await first.json()]).toEqual([202, { status: 'accepted' }])
    const again = await post(forward.url, '{"taskID":"task-002","message":"Again"}')
    expect([again.status, await again.text()]).toEqual([409, expect.stringContaining('TaskAlreadyAccepted')])
    expect(await result.content).toMatch(/task-001[\s\S]*Hello/)

    await kubectl('wait', '--for=condition=Finished', `sandbox/${sandbox}`, '--timeout=240s')
    const ended = await json<{ status: { phase: string; containerStatuses: object[] } }>('get', 'pod', sandbox)
    expect(ended.status.phase).toBe('Succeeded')
    expect(ended.status.containerStatuses).toMatchObject([
      { restartCount: 0, state: { terminated: { exitCode: 0, reason: 'Completed' } } },
    ])
    const reason = 'jsonpath={.status.conditions[?(@.type=="Finished")].reason}'
    expect(await kubectl('get', 'sandbox', sandbox, '-o', reason)).toBe('PodSucceeded')
    const log = await kubectl('logs', sandbox, '--tail=50')
    const lines = log
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { taskID?: string })
    expect(lines.some(({ taskID }) => taskID === 'task-001')).toBe(true)

    const hash = await json<{ items: { metadata: { name: string } }[] }>(
      'get',
      'pods',
      '-l',
      'agents.x-k8s.io/sandbox-name-hash',
    )
    expect(hash.items.map(({ metadata }) => metadata.name)).toContain(sandbox)
  }

  async function undeploy(version: 'v1alpha1' | 'v1beta1'): Promise<void> {
    await kubectl('delete', '--ignore-not-found', '-f', join(examples, version))
    await waitUntil('everything is gone', async () => {
      const { items } = await json<{ items: object[] }>('get', 'sandboxclaims,sandboxes,pods,services', '-l', 'app!=x')
      return items.filter((item) => (item as Claim).metadata.name !== 'kubernetes').length === 0
    })
    await kubectl('delete', '--ignore-not-found', '-f', join(examples, version))
  }

  it('S0-V1 S0-V2 S0-V3 S0-V4 S0-V7 S0-M1 S0-M2 S0-M3 S0-M4 S0-M5 S0-M6 S0-M7 S0-M8 S0-B3 S0-C15 S0-C26 S0-D2 S0-D3 S0-E1 S0-E2 S0-E3 S0-N4 S0-T3 S1-F2c S2-H8 S1-F3 S1-F6 S1-K6 S4-B4 S4-N1b S4-P1.4 S4-P1.5: by hand with kubectl, v1beta1', () =>
    byHand('v1beta1'))

  describe('the orchestrator', () => {
    const orchestrate = (taskId: string, ...more: string[]): Promise<ProgramResult> =>
      platform.corral(['orchestrate', '--local', '--task-id', taskId, '--message', `Hello ${taskId}`, ...more])

    it('S0-V5 S0-V6 S0-O1 S0-O3 S0-O6 S0-O9 S0-O10 S0-O13 S0-M9 S0-M10 S0-M11 S0-M12 S0-M13 S0-M14 S0-M15 S0-E4 S0-I1 S0-I2 S0-T2 S1-F8 S1-K3 S1-K4: runs twice, in sandboxes of their own', async () => {
      const runs = await Promise.all([orchestrate('one'), orchestrate('two')])
      for (const { code, stdout, stderr } of runs) {
        expect(stderr).toBe('')
        expect(code).toBe(0)
        const steps = stdout
          .trim()
          .split('\n')
          .map((line) => (JSON.parse(line) as { message: string }).message)
        expect(steps.filter((step) => step !== 'task not accepted yet')).toEqual([
          'claim created',
          'sandbox ready',
          'task accepted',
          'pod finished',
          'done',
        ])
      }
      const sandboxes = await Promise.all([sandboxOf('poc-one'), sandboxOf('poc-two')])
      expect(new Set(sandboxes).size).toBe(2)
      expect(await kubectl('logs', sandboxes[0]!)).toContain('"taskID":"one"')
      expect(await kubectl('logs', sandboxes[1]!)).toContain('"taskID":"two"')
      const { spec } = await json<{ spec: { lifecycle: { shutdownPolicy: string } } }>('get', 'sandboxclaim', 'poc-one')
      expect(spec.lifecycle.shutdownPolicy).toBe('Retain')
    })

    it('S0-O4 S0-O11: a claim that exists already is a failure', async () => {
      const { code, stderr } = await orchestrate('one')
      expect(code).toBe(1)
      expect(stderr).toMatch(/poc-one/)
    })

    it('S0-O2 S0-O11: one deadline bounds everything', async () => {
      const { code, stderr } = await orchestrate('late', '--template', 'no-such-template', '--timeout', '2s')
      expect(code).toBe(1)
      expect(stderr).toMatch(/no-such-template|not done within 2 s/)
    })
  })

  it('S0-Q1 S0-Q2 S0-Q3 S0-Q4 S0-Q5 S0-Q6 S0-Q7 S0-Q8 S0-Q9 S0-Q10 S0-P1 S1-F1 S1-F4a S1-F7 S4-N1d: measure answers the ten questions', async () => {
    const { code, stdout, stderr } = await platform.corral(['measure', '--json', '--rounds', '1'])
    expect(stderr).toBe('')
    expect(code).toBe(0)
    const answers = JSON.parse(stdout) as { id: string; value: string | number; samples: number[]; how: string }[]
    expect(answers.map(({ id }) => id)).toEqual(Array.from({ length: 10 }, (_, index) => `S0-Q${index + 1}`))
    for (const { value, how } of answers) expect([String(value), how].every((text) => text.length > 0)).toBe(true)
    const value = (id: string): string | number | undefined => answers.find((answer) => answer.id === id)?.value
    expect(value('S0-Q1')).toBeGreaterThan(2_000)
    expect(value('S0-Q3')).toBe(
      'clean exit: Finished/PodSucceeded, exit code 0; exit 3: Finished/PodFailed, exit code 3',
    )
    expect(value('S0-Q4')).toBe('honoured: no restart')
    expect(value('S0-Q6')).toBe('remain until the claim is deleted: claim, sandbox, pod, service')
    expect(value('S0-Q8')).toBe('no conflict')
  })

  it('S0-C13 S0-C20 S0-C25 S0-C29: the seed’s own manifests in v1alpha1, after a clean-up', async () => {
    await kubectl('delete', 'sandboxclaim', '--all')
    await undeploy('v1beta1')
    await byHand('v1alpha1')
    expect(await kubectl('get', 'sandboxwarmpools')).toContain('poc-runner')
    await undeploy('v1alpha1')
  })
})

import { join } from 'node:path'
import { Pods, RuntimeClasses, SandboxTemplates } from '@corral/resources'
import { gitRepository, type PlatformProcess, startPlatformProcess } from '@corral/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'

let platform: PlatformProcess
let repo: string

beforeAll(async () => {
  platform = await startPlatformProcess({ args: ['--warm', '0'] })
  repo = (await gitRepository(join(platform.directory, 'repo'))).path
  const kube = await platform.kube()
  for (const [name, handler] of [
    ['kata', 'kata'],
    ['own', platform.isolation],
  ] as const)
    await kube.create(RuntimeClasses, { metadata: { name }, handler })
  const standard = await kube.get(SandboxTemplates, { namespace: 'corral', name: 'default' })
  for (const runtimeClassName of ['kata', 'own', 'gvisor']) {
    const { podTemplate, ...rest } = standard.spec
    await kube.create(SandboxTemplates, {
      metadata: { namespace: 'corral', name: runtimeClassName },
      spec: { ...rest, podTemplate: { ...podTemplate, spec: { ...podTemplate.spec, runtimeClassName } } },
    })
  }
})
afterAll(() => platform?.[Symbol.asyncDispose]())

const run = async (template: string) => {
  const agent = { name: 'command', command: 'true' } as const
  return platform.api.run({ repo, task: 'x', agent, sandbox: { template } })
}

it('a task whose sandbox asks for a runtime the node has not ends with that as its cause, not after minutes', async () => {
  const { status, cause } = await run('kata')
  expect({ status, code: cause?.code }).toEqual({ status: 'FAILED', code: 'RuntimeUnavailable' })
  expect(cause?.message).toContain('no runtime for "kata" is configured (RuntimeClass "kata"); this node has')
})

it('a task whose sandbox names a RuntimeClass that does not exist says so', async () => {
  const { status, cause } = await run('gvisor')
  expect({ status, code: cause?.code }).toEqual({ status: 'FAILED', code: 'RuntimeUnavailable' })
  expect(cause?.message).toContain('pod rejected: RuntimeClass "gvisor" not found')
})

it('S2-C6: a task whose sandbox asks for the runtime of the node runs', async () => {
  expect(await run('own')).toMatchObject({ status: 'SUCCEEDED' })
})

it('a pod of a runtime the node has not stays Pending with the reason in a condition and an event', async () => {
  const pod = { metadata: { namespace: 'default', name: 'boxed' } }
  const kube = await platform.kube()
  await kube.create(Pods, {
    ...pod,
    spec: { runtimeClassName: 'kata', containers: [{ name: 'c', image: 'busybox:1', command: ['sleep', '1000'] }] },
  })
  await expect
    .poll(async () => {
      const { status } = await kube.get(Pods, { namespace: 'default', name: 'boxed' })
      return {
        phase: status?.phase,
        condition: status?.conditions?.find((c) => c.type === 'PodReadyToStartContainers'),
      }
    })
    .toMatchObject({
      phase: 'Pending',
      condition: {
        status: 'False',
        reason: 'FailedCreatePodSandBox',
        message: expect.stringContaining('no runtime for "kata" is configured'),
      },
    })
  const { stdout } = await platform.kubectl(['describe', 'pod', 'boxed', '-n', 'default'])
  expect(stdout).toMatch(/Runtime Class Name:\s+kata/)
  expect(stdout).toMatch(/Warning\s+FailedCreatePodSandBox.*no runtime for "kata" is configured/)
  expect((await platform.kubectl(['get', 'runtimeclasses'])).stdout).toMatch(/NAME +HANDLER +AGE\nkata +kata/)
  // Once the class can be given, the same pod runs.
  await kube.delete(RuntimeClasses, { name: 'kata' })
  await kube.create(RuntimeClasses, { metadata: { name: 'kata' }, handler: platform.isolation })
  await expect
    .poll(async () => (await kube.get(Pods, { namespace: 'default', name: 'boxed' })).status?.phase)
    .not.toBe('Pending')
})

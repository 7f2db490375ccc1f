import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SandboxClaims } from '@corral/resources'
import { type PlatformProcess, runProgram, startPlatformProcess, waitUntil } from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
let platform: PlatformProcess
let directory: string

beforeAll(async () => {
  platform = await startPlatformProcess({ args: ['--agent', 'command'] })
  // Below the workspace, so that packages are found by name as a user's code finds them.
  const cache = join(root, 'node_modules', '.cache')
  mkdirSync(cache, { recursive: true })
  directory = mkdtempSync(join(cache, 'programs-'))
})
afterAll(async () => {
  if (directory) rmSync(directory, { recursive: true, force: true })
  await platform?.[Symbol.asyncDispose]()
})

const environment = (): Record<string, string> => ({ ...platform.environment(), KUBECONFIG: platform.kubeconfig })
/** Compiled as it runs; `await using` is newer than Node 20. */
const program = (name: string, text: string): string[] => {
  const file = join(directory, name)
  writeFileSync(file, text)
  return ['--import', 'tsx', file]
}
const claims = async (): Promise<string[]> =>
  (await (await platform.kube()).list(SandboxClaims, { namespace: 'corral' })).items.map(
    ({ metadata }) => metadata.name,
  )

describe('the examples of the SDK’s pages', () => {
  const examples = (page: string): string[] =>
    [...readFileSync(join(root, page), 'utf8').matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text)
  /** What a reader would put in its place: this cluster has no such context and class. */
  const here = (text: string): string =>
    text
      .replace(/context: 'minikube', /, '')
      .replace(/, runtimeClassName: 'gvisor'/, '')
      .replace(/cmd: 'npm', args: \['test'\]/, `cmd: 'echo', args: ['tested']`)

  it.each([
    { page: 'packages/sdk/README.md', index: 0, says: /^0 hello\n+1\n2\n3\n$/ },
    { page: 'packages/sdk/README.md', index: 1, says: /^Linux .*runCommand|^Linux .*\[/s },
    { page: 'docs/provider.md', index: 0, says: /^tested\n0\n$/ },
  ])('run as they stand: $page, example $index', async ({ page, index, says }) => {
    const text = here(examples(page)[index] ?? '')
    const ended = page.endsWith('provider.md') ? `${text}\nawait sandbox.stop()\nawait provider.close()\n` : text
    const args = program(`example-${index}.mts`, ended)
    const { code, stdout, stderr } = await runProgram(process.execPath, args, { env: environment(), cwd: directory })
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(says)
    await waitUntil('nothing of it is left', async () => (await claims()).length === 0)
  })
})

describe('26: a program that asked for clean-up', () => {
  const make = (name: string, rest: string): string => `
    import { AgentSandboxClient } from '@corral/agent-sandbox-sdk'
    const client = new AgentSandboxClient({ namespace: 'corral', cleanupOnExit: ${name !== 'left'} })
    const sandbox = await client.sandboxes.create({ name: '${name}', pool: 'default' })
    console.log('made')
    ${rest}`

  it('and comes to its end leaves no sandbox; one that did not ask leaves it', async () => {
    for (const name of ['ended', 'left']) {
      const args = program(`${name}.mts`, make(name, 'sandbox.exec'))
      const { code, stderr } = await runProgram(process.execPath, args, { env: environment(), cwd: directory })
      expect([code, stderr]).toEqual([0, ''])
    }
    expect(await claims()).toEqual(['left'])
    await (await platform.kube()).delete(SandboxClaims, { name: 'left', namespace: 'corral' })
  })

  it.each(['SIGINT', 'SIGTERM'] as const)('and gets %s leaves none either, and ends by the signal', async (signal) => {
    const args = program('waits.mts', make('waits', 'setInterval(() => {}, 1000)'))
    const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit']
    const child = spawn(process.execPath, args, { env: environment(), cwd: directory, stdio })
    const ended = once(child, 'exit')
    await once(child.stdout, 'data')
    expect(await claims()).toEqual(['waits'])
    child.kill(signal)
    expect(await ended).toEqual([null, signal])
    expect(await claims()).toEqual([])
  })
})

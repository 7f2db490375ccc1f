import { deepEqual, equal, ok } from 'node:assert/strict'
import type { ModelBlock, ScriptedModel } from '@corral/testing'
import type { Cluster } from '../harness/cluster.js'
import type { Step } from '../harness/report.js'
import { succeeded, templateLike } from './tasks.js'

const key = `sk-ant-api03-${'corral-test-key'.repeat(3)}-AA`

/** What the model says: a file, then a command that shows everything the agent has. */
export const claudeScript: ModelBlock[][] = [
  [
    { type: 'text', text: 'I will write the file.' },
    {
      type: 'tool_use',
      name: 'Write',
      input: { file_path: '/workspace/repo/hello.txt', content: 'hello from claude\n' },
    },
  ],
  [{ type: 'tool_use', name: 'Bash', input: { command: 'env > environment.txt', description: 'look around' } }],
  [{ type: 'text', text: 'Done: hello.txt says hello.' }],
]

/** Real Claude Code in a Pod. Its model is scripted and behind the broker, which alone has the key. */
export function claudeSteps(cluster: Cluster, model: ScriptedModel, version: string): Step[] {
  const { api, kubectl } = cluster
  return [
    {
      title: 'S2-H6: real Claude Code works on a task in a Pod, its model reached through the broker alone',
      async run() {
        const name = 'corral-provider-keys'
        await kubectl('create', 'secret', 'generic', name, `--from-literal=ANTHROPIC_API_KEY=${key}`)
        await kubectl('rollout', 'restart', 'deployment/corral-server')
        await kubectl('rollout', 'status', 'deployment/corral-server', '--timeout=240s')
        await cluster.connect()
        await cluster.apply(await templateLike(cluster, 'claude', { image: `corral/claude:${version}` }))
        const repo = await cluster.repository()
        const task = succeeded(
          await api.run({
            repo: repo.url,
            task: 'Say hello in a file',
            agent: { name: 'claude', model: 'claude-sonnet-4-5-20250929' },
            sandbox: { template: 'claude' },
          }),
        )
        equal(await repo.show(task.branch!, 'hello.txt'), 'hello from claude')
        const asked = model.requests.filter(({ path }) => path.startsWith('/v1/messages'))
        ok(asked.length >= 3, 'the model was asked')
        deepEqual([...new Set(asked.map(({ headers }) => headers['x-api-key']))], [key])
        const environment = await repo.show(task.branch!, 'environment.txt')
        ok(!environment.includes(key), 'the agent never had the key')
        return `${asked.length} calls, ${task.usage?.input_tokens ?? 0} tokens in`
      },
    },
  ]
}

import { deepEqual, equal, match, ok } from 'node:assert/strict'
import type { CreateTaskRequest, TaskView } from '@corral/protocol'
import { waitUntil } from '@corral/testing'
import type { Cluster, ClusterRepository } from '../harness/cluster.js'
import type { Step } from '../harness/report.js'
import { environmentSteps } from './environments.js'

/** A task whose agent is a line of shell. */
export function commandTask(repo: ClusterRepository, command: string): CreateTaskRequest {
  return { repo: repo.url, task: 'a task of the suite', agent: { name: 'command', command } }
}

export function succeeded(task: TaskView): TaskView {
  if (task.status !== 'SUCCEEDED') throw new Error(`${task.id} ended as ${task.status}: ${JSON.stringify(task.cause)}`)
  return task
}

/** Tasks as a user has them. Needs a cluster with Corral in it and nothing else: `K8S_E2E=true npm run e2e`. */
export function taskSteps(cluster: Cluster): Step[] {
  const { api, kubectl } = cluster
  let repo: ClusterRepository
  let first: TaskView
  const post = async (path: string, body?: unknown): Promise<unknown> => {
    const { status, json, text } = await api.request('POST', path, body === undefined ? {} : { body })
    if (status >= 300) throw new Error(`POST ${path}: ${status} ${text}`)
    return json
  }
  return [
    {
      title: 'S2-X2 S4-P1.1 S4-P1.6: a task with a scripted agent goes from a repository to a pushed branch',
      async run() {
        await cluster.connect()
        repo = await cluster.repository()
        const startedMs = Date.now()
        const command = 'echo "$CORRAL_PROMPT" > said.txt; id -u > uid.txt'
        first = succeeded(await api.run(commandTask(repo, command)))
        equal(await repo.show(first.branch!, 'said.txt'), 'a task of the suite')
        equal(await repo.show(first.branch!, 'uid.txt'), '1000')
        return `${Date.now() - startedMs} ms from request to end`
      },
    },
    {
      title: 'S2-H8: kubectl shows the task and its chain while it runs, and nothing of it afterwards',
      async run() {
        const id = await api.create(commandTask(repo, 'until [ -e go ]; do sleep 0.2; done; rm go'))
        await api.untilPhase(id, 'RUNNING')
        match(await kubectl('get', 'agenttasks'), new RegExp(`${id}.*`))
        const sandbox = await kubectl('get', 'sandboxclaim', id, '-o', 'jsonpath={.status.sandbox.name}')
        equal(await kubectl('get', 'pod', sandbox, '-o', 'jsonpath={.status.phase}'), 'Running')
        await kubectl('exec', sandbox, '--', 'sh', '-c', 'touch /workspace/repo/go')
        succeeded(await api.untilEnded(id))
        await waitUntil('its claim and its pod are gone', async () => {
          const left = await Promise.all([cluster.call('get', 'sandboxclaim', id), cluster.call('get', 'pod', sandbox)])
          return left.every(({ stderr }) => stderr.includes('NotFound'))
        })
        return undefined
      },
    },
    {
      title: 'a follow-up goes on where the task ended, on the same branch',
      async run() {
        const { id } = (await post(`/tasks/${first.id}/messages`, { task: 'and more' })) as { id: string }
        const next = succeeded(await api.untilEnded(id))
        deepEqual([next.branch, next.base_commit], [first.branch, first.commit])
        equal(await repo.show(first.branch!, 'said.txt'), 'and more')
        return undefined
      },
    },
    {
      title: 'a cancelled task ends, keeps its work and gives its sandbox back',
      async run() {
        const id = await api.create(commandTask(repo, 'echo kept > kept.txt; sleep 600'))
        await api.untilPhase(id, 'RUNNING')
        const sandbox = await kubectl('get', 'sandboxclaim', id, '-o', 'jsonpath={.status.sandbox.name}')
        await waitUntil('its work is there', async () => {
          const { stdout } = await cluster.call('exec', sandbox, '--', 'cat', '/workspace/repo/kept.txt')
          return stdout.trim() === 'kept'
        })
        await post(`/tasks/${id}/cancel`)
        equal((await api.untilEnded(id)).status, 'CANCELLED')
        await waitUntil('its claim is gone', async () =>
          (await cluster.call('get', 'sandboxclaim', id)).stderr.includes('NotFound'),
        )
        return undefined
      },
    },
    {
      title: 'a sandbox of the default template reaches the broker by name; without a token it is refused',
      async run() {
        const ask = `node -e 'fetch("http://corral-broker:8787/v1/messages").then(r=>console.log(r.status))' > status.txt`
        const task = succeeded(await api.run(commandTask(repo, ask)))
        equal(await repo.show(task.branch!, 'status.txt'), '401')
        return undefined
      },
    },
    {
      title: 'a sandbox has no account of the cluster',
      async run() {
        const task = succeeded(
          await api.run(commandTask(repo, 'ls /var/run/secrets/kubernetes.io > account.txt 2>&1; true')),
        )
        match(await repo.show(task.branch!, 'account.txt'), /No such file/)
        return undefined
      },
    },
    {
      title: 'egress by name is refused with EgressUnsupported',
      async run() {
        const body = { ...commandTask(repo, 'true'), egress: ['example.com:443'] }
        const { status, json } = await api.request('POST', '/tasks', { body })
        const code =
          status === 201
            ? (await api.untilEnded((json as { id: string }).id)).cause?.code
            : (json as { error: { code: string } }).error.code
        equal(code, 'EgressUnsupported')
        return undefined
      },
    },
    {
      title: 'a task with a RuntimeClass that is not there ends with RuntimeUnavailable',
      async run() {
        const body = { ...commandTask(repo, 'true'), runtime_class_name: 'none-such' }
        const { status, json } = await api.request('POST', '/tasks', { body })
        const code =
          status === 201
            ? (await api.untilEnded((json as { id: string }).id)).cause?.code
            : (json as { error: { code: string } }).error.code
        equal(code, 'RuntimeUnavailable')
        return undefined
      },
    },
    {
      title: 'a pod that cannot start shows its waiting reason in the task, which gives up in time',
      async run() {
        await cluster.apply(await templateLike(cluster, 'no-image', { image: 'corral/none:1' }))
        const startedMs = Date.now()
        const id = await api.create({ ...commandTask(repo, 'true'), sandbox: { template: 'no-image' } })
        const { waiting } = await api.until(id, 'a reason', (task) => task.waiting !== undefined)
        match(waiting?.reason ?? '', /^(ErrImagePull|ImagePullBackOff)$/)
        const shownMs = Date.now() - startedMs
        const { status, cause } = await api.untilEnded(id)
        deepEqual([status, cause?.code], ['FAILED', 'ImagePullFailed'])
        ok(Date.now() - startedMs < 4 * 60_000, 'it gave up within four minutes')
        return `${waiting?.reason} after ${shownMs} ms, given up after ${Date.now() - startedMs} ms`
      },
    },
    {
      title: 'a held sandbox takes the follow-up over; sandboxes, pools and objects are shown; a task is removed',
      async run() {
        const read = async (path: string): Promise<string> => {
          const { status, text } = await api.request('GET', path)
          equal(status, 200, `${path}: ${text}`)
          return text
        }
        const request = { ...commandTask(repo, 'echo "$CORRAL_PROMPT" >> held.txt'), hold_sandbox_seconds: 300 }
        const held = succeeded(await api.run(request))
        match(await read('/sandboxes'), /"sandboxes"/)
        match(await read('/pools'), /"default"/)
        const pod = (
          await kubectl('get', 'pods', '-l', 'app=corral', '-o', 'jsonpath={.items[0].metadata.name}')
        ).trim()
        const sandbox = await kubectl('get', 'sandboxclaim', held.id, '-o', 'jsonpath={.status.sandbox.name}')
        const shown = [`pod/${pod}`, 'sandboxwarmpool/default', 'sandboxtemplate/default', `sandbox/${sandbox}`]
        for (const path of shown) match(await read(`/objects/${path}`), /metadata:/)
        equal((await api.request('PATCH', '/pools/default', { body: { replicas: 2 } })).status, 200)
        const { id } = (await post(`/tasks/${held.id}/messages`, { task: 'once more' })) as { id: string }
        const next = succeeded(await api.untilEnded(id))
        equal(await repo.show(next.branch!, 'held.txt'), 'a task of the suite\nonce more')
        equal((await api.request('DELETE', `/tasks/${id}`)).status < 300, true)
        await waitUntil('it is gone', async () => (await api.request('GET', `/tasks/${id}`)).status === 404)
        return undefined
      },
    },
    {
      title: 'projects are made, read, changed and removed',
      async run() {
        const made = await api.request('POST', '/projects', { body: { name: 'suite', repo: repo.url } })
        equal(made.status, 201, made.text)
        const { name } = made.json as { name: string }
        equal((await api.request('GET', '/projects')).status, 200)
        equal((await api.request('GET', `/projects/${name}`)).status, 200)
        const changed = await api.request('PATCH', `/projects/${name}`, { body: { instructions: 'Be brief.' } })
        equal(changed.status, 200, changed.text)
        const task = succeeded(
          await api.run({ task: 'of a project', project: name, agent: { name: 'command', command: 'echo x > x' } }),
        )
        ok(task.branch)
        equal((await api.request('DELETE', `/projects/${name}`)).status < 300, true)
        return undefined
      },
    },
    ...environmentSteps(cluster),
    {
      title: 'an environment is asked for, shown and removed',
      async run() {
        const made = await api.request('POST', '/environments', { body: { repo: repo.url, ref: 'main' } })
        ok(made.status < 300, made.text)
        const { name } = made.json as { name: string }
        for (const path of ['/environments', `/environments/${name}`])
          match((await api.request('GET', path)).text, new RegExp(name))
        const again = await api.request('POST', `/environments/${name}/build`, { body: { no_cache: true } })
        ok(again.status < 300, again.text)
        ok((await api.request('DELETE', `/environments/${name}`)).status < 300)
        return undefined
      },
    },
  ]
}

interface Template {
  spec: { podTemplate: { spec: { containers: object[] } } }
}

/** The default template under another name, with some of its container and pod changed. */
export async function templateLike(
  cluster: Cluster,
  name: string,
  container: object,
  pod: object = {},
): Promise<object> {
  const { spec } = await cluster.json<Template>('get', 'sandboxtemplate', 'default')
  const { containers, ...rest } = spec.podTemplate.spec
  const podSpec = { ...rest, ...pod, containers: [{ ...containers[0], ...container }] }
  return {
    apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
    kind: 'SandboxTemplate',
    metadata: { name, namespace: cluster.namespace },
    spec: { ...spec, podTemplate: { ...spec.podTemplate, spec: podSpec } },
  }
}

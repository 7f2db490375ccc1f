import { equal, match, notEqual, ok } from 'node:assert/strict'
import type { EnvironmentView } from '@corral/protocol'
import { waitUntil } from '@corral/testing'
import type { Cluster, ClusterRepository } from '../harness/cluster.js'
import type { Step } from '../harness/report.js'

const environmentFile = `version: 1
setup: |
  mkdir -p deps/bin ~/cache/module
  cat /proc/sys/kernel/random/uuid > deps/stamp
  i=0; while [ $i -lt 2000 ]; do echo $i > deps/file-$i; i=$((i + 1)); done
  printf '#!/bin/sh\\necho runs\\n' > deps/bin/tool; chmod 755 deps/bin/tool
  echo cached > ~/cache/module/file; chmod 555 ~/cache/module
`
/** Fails where anything of set-up is missing; what it found becomes a file of the branch. */
const look = '{ cat deps/stamp; deps/bin/tool; cat ~/cache/module/file; ls deps | wc -l; } > found.txt'

/** What the repository declares, built once in the cluster and found by later tasks. */
export function environmentSteps(cluster: Cluster): Step[] {
  const { api, kubectl } = cluster
  let repo: ClusterRepository
  let stamp: string
  let name: string
  const environments = async (): Promise<EnvironmentView[]> =>
    ((await api.request('GET', '/environments')).json as { environments: EnvironmentView[] }).environments
  const run = async (): Promise<{ found: string; events: string; ms: number }> => {
    const startedMs = Date.now()
    const task = await api.run({
      repo: repo.url,
      task: 'with its environment',
      environment_file: 'environment',
      agent: { name: 'command', command: look },
    })
    const events = JSON.stringify(await api.allEvents(task.id))
    equal(task.status, 'SUCCEEDED', events)
    const ms = Date.now() - startedMs
    const [found = '', ...rest] = (await repo.show(task.branch!, 'found.txt')).split('\n')
    equal(rest.join(' '), 'runs cached 2002')
    return { found, events, ms }
  }
  return [
    {
      title:
        'an Environment is built once as a sandbox of its own, and the task that asked for it finds its dependencies',
      async run() {
        repo = await cluster.repository({
          '.gitignore': 'deps/\n',
          'package-lock.json': '{"lockfileVersion": 3}\n',
          environment: environmentFile,
        })
        const { found, ms } = await run()
        stamp = found
        const [built] = (await environments()).filter((each) => each.repo === repo.url)
        ok(built?.built, JSON.stringify(built))
        equal(built.build?.number, 1)
        name = built.name
        match(await kubectl('get', 'environments'), new RegExp(name))
        const [snapshot] = built.snapshots
        return `${snapshot?.files} files, ${Math.round((snapshot?.size_bytes ?? 0) / 1e6)} MB kept on the server's volume; ${ms} ms from request to end`
      },
    },
    {
      title: 'a later task finds the same dependencies in place and runs no set-up',
      async run() {
        const { found, events, ms } = await run()
        equal(found, stamp)
        match(events, /set up already: snapshot/)
        return `${ms} ms from request to end`
      },
    },
    {
      title: 'another build makes a new snapshot, which later tasks get; the Environment goes with all it has',
      async run() {
        const again = await api.request('POST', `/environments/${name}/build`, { body: { no_cache: true } })
        ok(again.status < 300, again.text)
        await waitUntil('the second snapshot', async () => {
          const found = (await environments()).find((each) => each.name === name)
          return found?.build?.number === 2 && found.build.state === 'Succeeded' && found.snapshots.length === 2
        })
        const { found } = await run()
        notEqual(found, stamp)
        equal((await api.request('DELETE', `/environments/${name}`)).status < 300, true)
        await waitUntil('it is gone', async () =>
          (await cluster.call('get', 'environment', name)).stderr.includes('NotFound'),
        )
        return undefined
      },
    },
  ]
}

import { equal, ok } from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runProgram, waitUntil } from '@corral/testing'
import { freePorts, startProgram, untilReady } from '../../../tools/oracle/index.js'
import { ensurePrometheus } from '../../../tools/oracle/node-packages.js'
import type { Cluster } from '../harness/cluster.js'
import type { Step } from '../harness/report.js'

const monitoring = join(import.meta.dirname, '../../../deploy/monitoring')
const rules = join(monitoring, 'corral-rules.yaml')

interface Answer {
  status: string
  error?: string
  data?: { result: { metric: Record<string, string>; value: [number, string] }[] }
}

/** What a real Prometheus makes of the figures, the rules and the dashboard. */
export function monitoringSteps(cluster: Cluster): Step[] {
  const { kubectl, namespace, directory } = cluster
  return [
    {
      title: 'S4-N4d: promtool accepts the rules and the figures',
      async run() {
        const { promtool } = await ensurePrometheus()
        const checked = await runProgram(promtool, ['check', 'rules', rules])
        equal(checked.code, 0, checked.stderr)
        const address = await addressOf(cluster, 'app=corral')
        const text = await (await fetch(`http://${address}:9090/metrics`)).text()
        // Those of Node itself are named by its library.
        const ours = text.split('\n').filter((line) => /^(# \w+ )?(corral|agent_sandbox|controller)_/.test(line))
        const figures = await runProgram(promtool, ['check', 'metrics'], { stdin: `${ours.join('\n')}\n` })
        equal(figures.code, 0, `${figures.stdout}${figures.stderr}`)
        return checked.stdout.match(/\d+ rules found/)?.[0]
      },
    },
    {
      title: 'S4-P3.4 S4-N4d: a real Prometheus has the figures of the tasks that ran, and every graph has its query',
      async run() {
        const { prometheus } = await ensurePrometheus()
        const [port = 0] = await freePorts(1)
        const place = join(directory, 'prometheus')
        mkdirSync(place)
        const targets = [`corral.${namespace}`, `corral-controller.${namespace}`]
        const [server, controller] = await Promise.all(
          ['corral', 'corral-controller'].map((name) =>
            kubectl('get', 'service', name, '-o', 'jsonpath={.spec.clusterIP}'),
          ),
        )
        const scrape = [`${server}:9090`, `${controller}:8080`].map((target, index) => ({
          job_name: targets[index],
          static_configs: [{ targets: [target] }],
        }))
        const config = join(place, 'prometheus.yml')
        const every = { scrape_interval: '1s', evaluation_interval: '1s' }
        writeFileSync(config, JSON.stringify({ global: every, rule_files: [rules], scrape_configs: scrape }))
        const program = startProgram({
          name: 'prometheus',
          path: prometheus,
          args: [
            `--config.file=${config}`,
            `--storage.tsdb.path=${join(place, 'data')}`,
            `--web.listen-address=127.0.0.1:${port}`,
          ],
          logFile: join(directory, 'logs', 'prometheus.log'),
        })
        try {
          const url = `http://127.0.0.1:${port}`
          const isReady = async (): Promise<boolean> => (await fetch(`${url}/-/ready`)).ok
          await untilReady('prometheus', [program], isReady, { timeoutMs: 240_000 })
          const ask = async (query: string): Promise<Answer> =>
            (await fetch(`${url}/api/v1/query?${new URLSearchParams({ query })}`)).json() as Promise<Answer>
          const value = async (query: string): Promise<number> =>
            Number((await ask(query)).data?.result[0]?.value[1] ?? Number.NaN)
          await waitUntil('both are scraped', async () => (await value('sum(up)')) === 2)
          await waitUntil('tasks are counted', async () => (await value('sum(corral_tasks_finished_total)')) > 0)
          for (const name of ['corral_tasks_waiting', 'corral_tasks_running', 'corral_tasks_oldest_waiting_seconds'])
            equal(await value(name), 0, name)
          ok((await value('sum(corral_task_stage_duration_seconds_count{stage="sandbox"})')) > 0)
          ok((await value('sum(agent_sandbox_claim_creation_total{launch_type="warm"})')) > 0, 'warm starts')
          ok((await value('sum(agent_sandboxes)')) > 0, 'sandboxes')
          const graphs = expressions()
          for (const graph of graphs) {
            const { status, error } = await ask(graph)
            equal(status, 'success', `${graph}: ${error}`)
          }
          const alerts = (await (await fetch(`${url}/api/v1/rules`)).json()) as {
            data: { groups: { rules: { health: string; name: string }[] }[] }
          }
          await waitUntil('the rules were evaluated', async () =>
            alerts.data.groups.flatMap((group) => group.rules).every(({ health }) => health !== 'err'),
          )
          return `${graphs.length} queries of the dashboard`
        } finally {
          await program.stop()
        }
      },
    },
  ]
}

/** Every query of the dashboard, with its variables as Grafana fills them. */
function expressions(): string[] {
  const found: string[] = []
  JSON.parse(readFileSync(join(monitoring, 'corral-dashboard.json'), 'utf8'), (key, value: unknown) => {
    if (key === 'expr' && typeof value === 'string') found.push(value.replaceAll(/\$__rate_interval|\$\w+/g, '5m'))
    return value
  })
  return found
}

async function addressOf({ kubectl }: Cluster, selector: string): Promise<string> {
  return kubectl('get', 'pods', '-l', selector, '-o', 'jsonpath={.items[0].status.podIP}')
}

/** The part of `npm run e2e:cluster` that runs in namespaces of its own. */
import { writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startScriptedModel, startTraceCollector } from '@corral/testing'
import { chromiumPath } from '../../tests/web/browser.js'
import { nodeAddress } from '../../tools/oracle/index.js'
import { startCollector } from '../../tools/otlp/collector.js'
import { proofOfConcept } from '../controller/harness/proof-of-concept.js'
import { requestsOf } from './harness/audit.js'
import { bootCluster, languagesImage, type RealCluster, smallValues, surroundings, version } from './harness/boot.js'
import { openCluster } from './harness/cluster.js'
import { Report } from './harness/report.js'
import { backupSteps } from './steps/backup.js'
import { laptopJourney, serverJourney } from './steps/browser.js'
import { claudeScript, claudeSteps } from './steps/claude.js'
import { gvisorSteps } from './steps/gvisor.js'
import { helmOf, installSteps } from './steps/install.js'
import { languageSteps } from './steps/languages.js'
import { localClusterSteps } from './steps/local-clusters.js'
import { monitoringSteps } from './steps/monitoring.js'
import { permissionSteps } from './steps/permissions.js'
import { rolloutSteps, uninstallSteps } from './steps/rollout.js'
import { scalingSteps } from './steps/scaling.js'
import { taskSteps } from './steps/tasks.js'
import { tracingSteps } from './steps/tracing.js'
import { upstreamSteps } from './steps/upstream.js'

const { values: flags } = parseArgs({
  options: {
    only: { type: 'string' },
    amend: { type: 'boolean' },
    built: { type: 'boolean' },
    logs: { type: 'string' },
    'without-gvisor': { type: 'string' },
  },
})
const withoutGvisor = flags['without-gvisor']

process.exitCode = await main()

async function main(): Promise<number> {
  const report = new Report(flags.only)
  const load = (): string =>
    loadavg()
      .map((each) => each.toFixed(1))
      .join(' ')
  const loadBefore = load()
  const real = await bootCluster({
    hasGvisor: withoutGvisor === undefined,
    hasLanguages: true,
    audited: 'system:serviceaccounts:corral',
  })
  try {
    await rows(report, real)
  } finally {
    if (flags.logs) real.keepLogs(flags.logs)
    const left = await real.stop()
    await report.row([
      {
        title: 'nothing is left of the node: no process, mount, cgroup, interface or namespace',
        run: () => (left.length === 0 ? Promise.resolve(undefined) : Promise.reject(new Error(left.join('; ')))),
      },
    ])
  }
  if (flags.amend) report.amend()
  else if (!flags.only)
    report.write('npm run e2e:cluster', { ...real.facts, 'load before': loadBefore, 'load after': load() })
  return report.hasFailed ? 1 : 0
}

/** Where there is no Chromium, that is told and nothing of it is run. */
async function journey(report: Report, { steps, close }: ReturnType<typeof serverJourney>): Promise<void> {
  if (!chromiumPath) {
    for (const { title } of steps) report.notRun(title, 'there is no Chromium; `npm run test:web` brings it')
    return
  }
  try {
    await report.row(steps)
  } finally {
    await close()
  }
}

async function rows(report: Report, { plane, helm: helmProgram }: RealCluster): Promise<void> {
  const { kubeconfig, directory } = plane
  const cluster = openCluster({ kubeconfig, directory, namespace: 'corral', image: `corral:${version}` })
  const helm = helmOf(helmProgram, cluster)
  await using model = await startScriptedModel(claudeScript, { host: nodeAddress })
  await using collector = await startTraceCollector({ host: nodeAddress })
  const controllersCollector = await startCollector(nodeAddress)
  try {
    await cluster.apply(...surroundings(plane))
    const values = join(directory, 'values.json')
    const tracing = { endpoint: collector.url, grpcEndpoint: controllersCollector.url }
    writeFileSync(values, JSON.stringify(smallValues(model.url, tracing)))
    if (!(await report.row(installSteps(cluster, helm, values)))) return
    await report.row(taskSteps(cluster))
    await report.row(rolloutSteps(cluster))
    await report.row(claudeSteps(cluster, model, version))
    await report.row(proofOfConcept({ kubeconfig, directory }))
    if (withoutGvisor === undefined) await report.row(gvisorSteps(cluster))
    else for (const { title } of gvisorSteps(cluster)) report.notRun(title, withoutGvisor)
    await report.row(languageSteps(cluster, languagesImage))
    const laptop = openCluster({ kubeconfig, directory, namespace: 'laptop', image: `corral:${version}` })
    await journey(report, serverJourney(cluster, withoutGvisor === undefined ? 'gvisor' : undefined))
    await journey(report, laptopJourney(cluster, laptop))
    await report.row(monitoringSteps(cluster))
    await report.row(tracingSteps(cluster, { collector, controllersCollector }))
    await report.row(scalingSteps(cluster, helm, values))
    // Before the controllers are taken away: their roles go first then, and their last requests are refused.
    await report.row(permissionSteps(cluster, () => requestsOf(plane)))
    await report.row(upstreamSteps(cluster, helm, values))
    await report.row(backupSteps(cluster, helm, values))
    await report.row(uninstallSteps(cluster, helm))
    await report.row(localClusterSteps(cluster, helmProgram, withoutGvisor === undefined))
  } finally {
    await cluster.close()
    await controllersCollector.close()
  }
}

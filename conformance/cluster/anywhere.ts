/**
 * The tasks of the suite on any cluster that has Corral in it: `K8S_E2E=true npm run e2e`. The cluster is the one of
 * `KUBECONFIG` (else ~/.kube/config), the namespace `CORRAL_NAMESPACE` (else corral), the image of the Pod that serves
 * repositories `CORRAL_IMAGE` (else corral:VERSION). It makes and removes what it needs and leaves Corral as it was.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { openCluster } from './harness/cluster.js'
import { Report } from './harness/report.js'
import { taskSteps } from './steps/tasks.js'

process.exitCode = await main()

async function main(): Promise<number> {
  const { env } = process
  if (env.K8S_E2E !== 'true') {
    process.stderr.write('e2e: nothing was run: it needs a cluster with Corral in it, and K8S_E2E=true to use it\n')
    return 0
  }
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as {
    version: string
  }
  const directory = mkdtempSync(join(tmpdir(), 'corral-e2e-'))
  const cluster = openCluster({
    kubeconfig: env.KUBECONFIG ?? join(homedir(), '.kube/config'),
    namespace: env.CORRAL_NAMESPACE ?? 'corral',
    image: env.CORRAL_IMAGE ?? `corral:${version}`,
    directory,
  })
  const report = new Report()
  try {
    await report.row(taskSteps(cluster))
  } finally {
    await cluster.removeRepositories()
    await cluster.call('delete', 'sandboxtemplate', 'no-image', '--ignore-not-found')
    await cluster.close()
    rmSync(directory, { recursive: true, force: true })
  }
  return report.hasFailed ? 1 : 0
}

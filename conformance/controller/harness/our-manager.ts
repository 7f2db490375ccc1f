import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { KubeClient } from '@corral/kube'
import { CustomResourceDefinitions, crdManifests } from '@corral/resources'
import { type ControlPlane, freePorts } from '../../../tools/oracle/index.js'
import { startProgram, untilReady } from '../../../tools/oracle/program.js'
import { type Account, accountKubeconfig, applyPermissions } from './service-account.js'

const repository = join(import.meta.dirname, '../../..')
const tsxLoader = createRequire(import.meta.url).resolve('tsx')

/** Who `corral controller` is in a cluster that was set up with `config/`. */
export const ourAccount: Account = { namespace: 'corral-system', name: 'corral-controller' }

/** A `corral controller` that runs as a process of its own. */
export interface OurManager {
  readonly pid: number
  readonly metricsUrl: string
  stop(): Promise<void>
}

/**
 * Puts CRDs and permissions of `config/` into a cluster and answers how to start `corral controller` there, with no more
 * rights than they give.
 */
export async function installOurManager(
  plane: ControlPlane,
  client: KubeClient,
): Promise<(flags: readonly string[]) => Promise<OurManager>> {
  await installOurCrds(client)
  for (const file of ['service-account', 'controller', 'extensions', 'leader-election'])
    await applyPermissions(client, join(repository, 'config/rbac', `${file}.yaml`))
  const kubeconfig = await accountKubeconfig(client, plane, ourAccount)
  return async (flags) => {
    const [metricsPort = 0, healthPort = 0] = await freePorts(2)
    const program = startProgram({
      name: 'corral-controller',
      path: process.execPath,
      args: [
        ...['--conditions=corral-source', '--import', tsxLoader, join(repository, 'packages/cli/src/corral.ts')],
        ...['controller', `--kubeconfig=${kubeconfig}`, '--extensions'],
        `--metrics-bind-address=127.0.0.1:${metricsPort}`,
        `--health-probe-bind-address=127.0.0.1:${healthPort}`,
        ...['--leader-elect=true', `--leader-election-namespace=${ourAccount.namespace}`, ...flags],
      ],
      logFile: join(plane.directory, 'logs', 'corral-controller.log'),
    })
    const isReady = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${healthPort}/readyz`)).ok
    await untilReady('corral-controller', [program], isReady, { timeoutMs: 240_000, signal: undefined })
    return { pid: program.pid, metricsUrl: `http://127.0.0.1:${metricsPort}/metrics`, stop: () => program.stop() }
  }
}

async function installOurCrds(client: KubeClient): Promise<void> {
  const crds = crdManifests('cluster')
  for (const crd of crds)
    await client.apply(CustomResourceDefinitions, crd, { fieldManager: 'conformance', force: true })
  const deadlineMs = Date.now() + 240_000
  for (const name of crds.map(({ metadata }) => metadata?.name ?? '')) {
    for (;;) {
      const { status } = await client.get(CustomResourceDefinitions, { name })
      if (status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True')) break
      if (Date.now() > deadlineMs) throw new Error(`${name} is not established`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

import { readFileSync } from 'node:fs'
import { ensureCertificates } from '@corral/apiserver'
import { kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { pickIsolation, startKubeletServer, startNode, subjectAccess, thawPods } from '@corral/node'
import { systemClock } from '@corral/ports'
import { CliError } from '../cli-error.js'
import { jsonLogger } from '../output/logger.js'
import { daemonImages } from './daemon-image.js'
import {
  dataDirectoryOf,
  letSandboxesRead,
  lockDataDirectory,
  makeDataDirectory,
  prepareDataDirectory,
} from './data-directory.js'
import { brokerService, brokerServicePort, platformNamespace } from './names.js'
import { startPackageMirror } from './package-mirror.js'
import { announce, type PartOptions } from './part.js'
import { requireRoom } from './require-room.js'
import { installRuntime, isolationFiles, usageThread } from './runtime-files.js'
import { untilStopSignal } from './until-stop-signal.js'

export interface NodeCommandOptions extends PartOptions {
  kubeconfig: string
  name: string
  kubeletPort: number
  broker?: string
  packageCache: number
  podPids?: number
  clientCa?: string
  isolation?: 'bubblewrap' | 'process'
}

/** `corral node`. */
export async function runNode(options: NodeCommandOptions): Promise<void> {
  const stop = untilStopSignal()
  letSandboxesRead()
  const directory = dataDirectoryOf(options)
  makeDataDirectory(directory.path)
  const lock = await lockDataDirectory(directory)
  const log = jsonLogger(options.logLevel)
  requireRoom(directory, log)
  prepareDataDirectory(directory)
  const access = await loadKubeConfig({ path: options.kubeconfig })
  const client = kubeClientFromConfig(access)
  const clientCa = options.clientCa ? readFileSync(options.clientCa, 'utf8') : access.tls.ca
  if (!clientCa)
    throw new CliError('nothing says which clients the kubelet routes may trust', {
      exitCode: 2,
      hint: 'Give --client-ca, or a kubeconfig with the certificate authority of the cluster.',
    })
  const runtime = installRuntime(directory.runtime)
  const isolationOptions = { dataDir: directory.path, ...isolationFiles(runtime), log }
  const { isolation } = await pickIsolation({ ...isolationOptions, tier: options.isolation })
  const [brokerHost, brokerPort] = (options.broker ?? `127.0.0.1:${brokerServicePort}`).split(':')
  const mirror = await startPackageMirror({ directory, budgetBytes: options.packageCache, env: process.env, log })
  const node = await startNode({
    client,
    isolation,
    dataDir: directory.path,
    nodeName: options.name,
    ...(options.podPids === undefined ? {} : { pidsLimit: options.podPids }),
    images: daemonImages(runtime, directory),
    services: [
      {
        names: [brokerService, `${brokerService}.${platformNamespace}`],
        port: brokerServicePort,
        target: { host: brokerHost ?? '127.0.0.1', port: Number(brokerPort) },
      },
      mirror.service,
    ],
    ...usageThread(),
    supervisorPath: runtime.supervisor ?? null,
    onDiskChecked: () => thawPods(directory.path),
    kubeletPort: options.kubeletPort,
    hostIP: '127.0.0.1',
    clock: systemClock,
    log,
  })
  const { server } = await ensureCertificates(directory.tls, ['127.0.0.1'])
  const kubelet = await startKubeletServer({
    node,
    port: options.kubeletPort,
    tls: { cert: server.cert, key: server.key, clientCa },
    authorize: subjectAccess(client, options.name),
    log,
  })
  await node.ready
  announce(options, { node: options.name, isolation: isolation.tier, pid: process.pid })
  await stop
  await kubelet.close()
  await node.stop({ endPods: true })
  await isolation.close({ endPods: true })
  await mirror.close()
  await client.close()
  await lock.release()
}
